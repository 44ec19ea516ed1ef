"""`LKMForecaster`: the latent kernel model behind sktime's interface of forecasters."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sktime.forecasting.base import BaseForecaster

from ..data.transforms import Transform
from ..discovery.discover import discover
from ..discovery.given_kernels import learn
from ..discovery.keywords import Averaging
from ..gp.likelihoods import unit_quantile, unit_scale
from ..gp.types import Floats
from ..kernels.grammar import EXTENDED_BASES


class LKMForecaster(BaseForecaster):
    r"""Forecast several series by the kernels that they share (Tong and Choi 2019).

    Each series is a Gaussian process whose kernel is a sum of components, and an Indian Buffet
    Process decides which series has which; see `lkm_gpflow.discover`.  A forecast is a
    Student-t of v degrees of freedom with mean m and standard deviation s:

    .. math:: y_{nt} \sim m_{nt} + s_{nt} \sqrt{1 - 2 / v}\; t_v

    with v = 6 after a search; normal if the kernels are given.  Of a series with the transform
    "log" the logarithm is normal, or nearly so: quantiles are those of the logarithm,
    exponentiated, and mean and variance those of the lognormals that are averaged.

    Parameters
    ----------
    kernels
        Components such as ``["SE", "PER x SE"]``, whose hyperparameters are learnt
        (`lkm_gpflow.learn`).  None: they are searched for (`lkm_gpflow.discover`), which takes
        minutes.
    bases, depth
        Of the search; see `lkm_gpflow.discover`.
    restarts, alpha, priors
        As of `lkm_gpflow.discover` and `lkm_gpflow.learn`.
    averaging
        Of the search: "stacked", "tempered", "none"; None: its default.
    transform
        "none"; "log": the logarithms of the series, which must be positive, are modelled; "auto",
        or one for each of some series: see `lkm_gpflow.discover`.
    seed
        Everything random follows from it.

    Attributes
    ----------
    found_ : lkm_gpflow.Discovery
        What was found, with components, probabilities and reports.

    Examples
    --------
    >>> from lkm_gpflow.sktime import LKMForecaster
    >>> forecaster = LKMForecaster(["SE", "LIN"])
    >>> forecaster.fit(y, fh=[1, 2, 3]).predict_interval(coverage=0.9)    # doctest: +SKIP
    """

    _tags = {  # noqa: RUF012
        "authors": "The lkm_gpflow contributors",
        "maintainers": "The lkm_gpflow contributors",
        "capability:multivariate": True,
        "capability:exogenous": False,
        "capability:insample": True,
        "capability:pred_int": True,
        "capability:pred_int:insample": True,
        "capability:missing_values": True,
        "y_inner_mtype": "pd.DataFrame",
        "requires-fh-in-fit": False,
    }

    _config = {"remember_data": True}  # noqa: RUF012

    def __init__(
        self,
        kernels: Sequence[str] | None = None,
        bases: Sequence[str] = EXTENDED_BASES,
        depth: int = 2,
        restarts: int = 3,
        alpha: float = 1.0,
        priors: bool = True,
        averaging: Averaging | None = None,
        transform: Transform = "none",
        seed: int = 0,
    ) -> None:
        self.kernels = kernels
        self.bases = bases
        self.depth = depth
        self.restarts = restarts
        self.alpha = alpha
        self.priors = priors
        self.averaging = averaging
        self.transform = transform
        self.seed = seed
        with warnings.catch_warnings():
            # sktime 1.2 announces that it will forget data by default; the line above keeps them.
            warnings.simplefilter("ignore", FutureWarning)
            super().__init__()

    def _fit(self, y: pd.DataFrame, X: object, fh: object) -> LKMForecaster:
        common: dict[str, Any] = {
            "transform": self.transform, "restarts": self.restarts, "alpha": self.alpha,
            "priors": self.priors, "seed": self.seed, "progress": False,
        }  # fmt: skip
        if self.kernels is not None:
            self.found_ = learn(y, self.kernels, **common)
        else:
            # Its distributions are normal, lognormal or Student-t.
            self.found_ = discover(
                y, bases=self.bases, depth=self.depth, averaging=self.averaging,
                likelihood="scaled", **common,
            )  # fmt: skip
        return self

    def _told(self, fh: Any, *columns: str, modelled: bool = False) -> list[Floats]:
        """Columns of the prediction of new observations, in the units or as modelled, [M, N]."""
        predict = self.found_.predict_modelled if modelled else self.found_.predict
        told = predict(fh.to_absolute_index(self.cutoff))
        N = self.found_.table.frame.shape[1]
        return [told[column].to_numpy().reshape(N, -1).T for column in columns]

    def _table(self, fh: Any, values: Floats, columns: Any = None) -> pd.DataFrame:
        index = fh.get_expected_pred_idx(cutoff=self.cutoff)
        return pd.DataFrame(values, index, self._get_columns() if columns is None else columns)

    def _predict(self, fh: Any, X: object) -> pd.DataFrame:
        return self._table(fh, *self._told(fh, "mean"))

    def _predict_var(self, fh: Any, X: object = None, cov: bool = False) -> pd.DataFrame:
        if cov:
            raise NotImplementedError(
                "expected cov=False: forecasts are of each time and series by itself"
            )
        return self._table(fh, np.square(self._told(fh, "sd")[0]), self._get_varnames())

    def _predict_quantiles(self, fh: Any, X: object, alpha: Sequence[float]) -> pd.DataFrame:
        mean, sd, degrees = self._told(fh, "mean", "sd", "degrees", modelled=True)
        unit = unit_quantile(np.asarray(alpha)[:, None, None], degrees)
        modelled = mean + sd * unit
        quantiles = self.found_.table.transforms.back(modelled).transpose(1, 2, 0)
        columns = pd.MultiIndex.from_product([self._get_varnames(), alpha])
        return self._table(fh, quantiles.reshape(len(mean), -1), columns)

    def _predict_proba(self, fh: Any, X: object, marginal: bool = True) -> Any:
        from skpro.distributions import LogNormal, Normal, TDistribution

        mean, sd, degrees = self._told(fh, "mean", "sd", "degrees", modelled=True)
        told = {"index": fh.get_expected_pred_idx(cutoff=self.cutoff),
                "columns": self._get_columns()}  # fmt: skip
        is_log = self.found_.table.transforms.is_log
        if is_log.all():
            return LogNormal(mu=mean, sigma=sd, **told)
        if not is_log.any() and np.isinf(degrees).all():
            return Normal(mu=mean, sigma=sd, **told)
        if not is_log.any():
            return TDistribution(mu=mean, sigma=sd * unit_scale(degrees), df=degrees, **told)
        raise NotImplementedError(
            "expected all series or none on a log scale, for one family of distributions, got "
            f"{is_log.sum()} of {len(is_log)}: use predict_quantiles or predict_interval, or "
            "transform='none' or 'log'"
        )

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return settings with which a fit takes a second, for sktime's tests of all forecasters.

        Parameters
        ----------
        parameter_set
            There is one set.
        """
        return [
            {"kernels": ["SE"], "restarts": 1},
            {"kernels": ["RW", "LIN"], "restarts": 1, "transform": "none", "seed": 1},
        ]
