"""Any forecaster of sktime or statsforecast as a comparator: "sktime:VAR", "statsforecast:AutoCES".

Both libraries are optional extras and are imported when a method of theirs is asked for.  A step is
a row of the table, whatever time it takes.  Series are z-scored, as by `Table`.  Where a method has
no missing observations, gaps are filled by linear interpolation in time.  Methods for one series
get its rows from its first to its last observation; methods for several (such as sktime's VECM)
need all rows, and the first and last value stand before and after: they then take for observed what
is not, and their sds are too small.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from ..data.tables import Table
from ..gp.types import Floats
from ..runtime.text import did_you_mean
from .gaps import Ahead, fit_alone
from .registry import register
from .scaled import MIN_SD, ScaledForecast
from .statistical import LEVEL, normal_moments


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what every forecaster of sktime 1.2 announces about its next version."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


@register("sktime")
@dataclass(frozen=True)
class SktimeForecaster:
    """A forecaster of sktime that has forecast variances.

    Multivariate ones see all series, others each series alone.

    Parameters
    ----------
    name
        Of its class, such as "VAR".
    settings
        Arguments of its constructor.

    Raises
    ------
    ValueError
        If sktime has no such forecaster, or one without variances.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        forecaster = self._make()
        if not forecaster.get_tag("capability:pred_int"):
            raise ValueError(
                f"expected a forecaster with variances, sktime's {self.name} gives means alone: "
                "'sktime:AutoETS' and 'sktime:VAR' give both"
            )

    @_quiet()
    def _make(self) -> Any:
        lookup = _imported("sktime.registry").all_estimators
        known = dict(lookup("forecaster", return_names=True, as_dataframe=False))
        if self.name not in known:
            raise ValueError(
                f"expected a forecaster of sktime (sktime.registry.all_estimators('forecaster') "
                f"lists them), got {self.name!r}{did_you_mean(self.name, known)}"
            )
        return known[self.name](**self.settings)

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Fit it to the rows as steps 0, 1, ...; `seed` is its `random_state`, if it has one."""
        table = Table.of(train)
        tags = self._make()
        passes_over_gaps = tags.get_tag("capability:missing_values")
        if not (passes_over_gaps or tags.get_tag("capability:multivariate")):
            return fit_alone(table, lambda n, z: self._learn(z[:, None], seed))
        ahead = self._learn(
            table.observations.table[1] if passes_over_gaps else table.observations.filled, seed
        )

        def predict(x: Floats) -> tuple[Floats, Floats]:
            mean, sd = ahead(len(x))
            return mean, np.square(np.maximum(sd, MIN_SD))

        return ScaledForecast(table, predict)

    @_quiet()
    def _learn(self, values: Floats, seed: int) -> Ahead:
        """Fit it to series, [D, N]."""
        forecaster = self._make()
        if "random_state" in forecaster.get_params():
            forecaster.set_params(random_state=seed)
        # sktime's VAR finds its columns by parts of their names, so that none may hold another.
        names = [f"series_{n:06d}" for n in range(values.shape[1])]
        y = pd.DataFrame(values, columns=names)
        in_fit = forecaster.get_tag("requires-fh-in-fit")
        forecaster.fit(y, fh=[1] if in_fit else None)

        @_quiet()
        def ahead(h: int) -> tuple[Floats, Floats]:
            steps = list(range(1, h + 1))
            if in_fit:
                forecaster.fit(y, fh=steps)
            mean = forecaster.predict(fh=steps).to_numpy()
            return mean, np.sqrt(forecaster.predict_var(fh=steps).to_numpy())

        return ahead


@register("statsforecast")
@dataclass(frozen=True)
class StatsforecastModel:
    """A model of statsforecast that has forecast intervals, each series alone.

    Its sd is half of a central 90% interval over its normal quantile.

    Parameters
    ----------
    name
        Of its class, such as "AutoCES".
    settings
        Arguments of its constructor.

    Raises
    ------
    ValueError
        If statsforecast has no such model.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._make()

    def _make(self) -> Any:
        models = _imported("statsforecast.models")
        known = [name for name in getattr(models, "__all__", dir(models)) if name[:1].isupper()]
        if self.name not in known:
            raise ValueError(
                f"expected a model of statsforecast among {', '.join(known)}, "
                f"got {self.name!r}{did_you_mean(self.name, known)}"
            )
        return getattr(models, self.name)(**self.settings)

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Fit it to every series."""
        return fit_alone(Table.of(train), lambda n, z: self._learn(z))

    def _learn(self, z: Floats) -> Ahead:
        fitted = self._make().fit(z)

        def ahead(h: int) -> tuple[Floats, Floats]:
            told = fitted.predict(h, level=[LEVEL])
            if f"lo-{LEVEL}" not in told:
                raise ValueError(
                    f"expected a model with intervals, statsforecast's {self.name} has none"
                )
            return normal_moments(told)

        return ahead


def _imported(module: str) -> Any:
    library = module.split(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        extra = {"sktime": "sktime", "statsforecast": "comparators"}[library]
        raise ModuleNotFoundError(
            f"expected the library {library} for methods of its name: "
            f"pip install '.[{extra}]' in a clone of lkm_gpflow"
        ) from error
