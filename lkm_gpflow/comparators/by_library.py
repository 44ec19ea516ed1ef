"""Any forecaster of sktime or statsforecast as a comparator: "sktime:VAR", "statsforecast:AutoCES".

Both libraries are optional extras and are imported when a method of theirs is asked for.  A step is
a row of the table, whatever time it takes.  Series are z-scored, as by `Table`.  Where a method has
no missing observations, gaps are filled by linear interpolation in time, and the first and last
value stand before and after.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from ..data.tables import Table
from ..numerics.types import Floats
from ..runtime.text import did_you_mean
from .protocol import register_library
from .scaled import ScaledForecast

_LEVEL = 90

_MIN_SD = 1e-3
"""Smallest forecast sd, in sds of the series."""


@register_library("sktime")
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

    def _make(self) -> Any:
        lookup = _imported("sktime.registry").all_estimators
        known = dict(lookup("forecaster", return_names=True, as_dataframe=False))
        if self.name not in known:
            raise ValueError(
                f"expected a forecaster of sktime (sktime.registry.all_estimators('forecaster') "
                f"lists them), got {self.name!r}{did_you_mean(self.name, known)}"
            )
        with warnings.catch_warnings():
            # What every forecaster of sktime 1.2 announces about its next version.
            warnings.simplefilter("ignore", FutureWarning)
            return known[self.name](**self.settings)

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Fit it to the rows as steps 0, 1, ...; `seed` is its `random_state`, if it has one."""
        table = Table.of(train)
        forecaster = self._make()
        if "random_state" in forecaster.get_params():
            forecaster.set_params(random_state=seed)
        gaps = forecaster.get_tag("capability:missing_values")
        values = _scaled(table) if gaps else _filled(table)
        # sktime's VAR finds its columns by parts of their names, so that none may hold another.
        names = [f"series_{n:06d}" for n in range(values.shape[1])]
        y = pd.DataFrame(values, columns=names)
        forecaster.fit(y, fh=[1] if forecaster.get_tag("requires-fh-in-fit") else None)

        def predict(x: Floats) -> tuple[Floats, Floats]:
            steps = list(range(1, len(x) + 1))
            if forecaster.get_tag("requires-fh-in-fit"):
                forecaster.fit(y, fh=steps)
            mean = forecaster.predict(fh=steps).to_numpy()
            variance = forecaster.predict_var(fh=steps).to_numpy()
            return mean, np.maximum(variance, _MIN_SD**2)

        return ScaledForecast(table, predict)


@register_library("statsforecast")
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
        table = Table.of(train)
        fitted = [self._make().fit(y) for y in _filled(table).T.copy()]

        def predict(x: Floats) -> tuple[Floats, Floats]:
            told = [model.predict(len(x), level=[_LEVEL]) for model in fitted]
            if f"lo-{_LEVEL}" not in told[0]:
                raise ValueError(
                    f"expected a model with intervals, statsforecast's {self.name} has none"
                )
            mean, lower, upper = (
                np.column_stack([each[key] for each in told])
                for key in ("mean", f"lo-{_LEVEL}", f"hi-{_LEVEL}")
            )
            sd = (upper - lower) / (2.0 * norm.ppf(0.5 + _LEVEL / 200))
            return mean, np.square(np.maximum(sd, _MIN_SD))

        return ScaledForecast(table, predict)


def _imported(module: str) -> Any:
    library = module.split(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        extra = {"sktime": "sktime", "statsforecast": "comparators"}[library]
        raise ModuleNotFoundError(
            f"expected the library {library} for methods of its name: "
            f"pip install 'lkm_gpflow[{extra}]'"
        ) from error


def _scaled(table: Table) -> Floats:
    """Return the z-scores, [D, N], NaN where missing."""
    return table.observations.table[1]


def _filled(table: Table) -> Floats:
    """Return the z-scores with gaps filled, [D, N]."""
    own = table.observations
    rows = [
        np.interp(own.x, own.x[mask == 1.0], y[mask == 1.0])
        for y, mask in zip(own.Y, own.mask, strict=True)
    ]
    return np.column_stack(rows)
