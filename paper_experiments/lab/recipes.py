"""From the publishers' files to the tables of the benchmark, for those whose files are plain text.

A recipe takes the paths of its files, in the order of `benchmark.yml`, and returns the table.
Each is checked to the last digit by the SHA-256 of the table it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

Recipe = Callable[[Sequence[Path]], pd.DataFrame]


def _snake(columns: pd.Index) -> list[str]:
    return [str(c).lower().replace("-", "_").replace(" ", "_").replace(".", "") for c in columns]


def _fred(first: str, last: str, columns: str) -> Recipe:
    def recipe(paths: Sequence[Path]) -> pd.DataFrame:
        raw = pd.read_csv(paths[0], float_precision="round_trip")
        raw = raw[raw.iloc[:, 0] != "Transform:"]
        dates = pd.to_datetime(raw.iloc[:, 0], format="%m/%d/%Y")
        return raw.set_index(pd.DatetimeIndex(dates))[columns.split()].loc[first:last]

    return recipe


def _commodities(first: str, last: str, columns: Sequence[str]) -> Recipe:
    def recipe(paths: Sequence[Path]) -> pd.DataFrame:
        raw = pd.read_csv(
            paths[0], index_col="Date", parse_dates=True, float_precision="round_trip"
        )
        named = raw[list(columns)].set_axis(_snake(pd.Index(columns)), axis=1)
        return named.loc[first:last]

    return recipe


def _fx_daily_2018(paths: Sequence[Path]) -> pd.DataFrame:
    raw = pd.read_csv(paths[0], index_col="YYYY/MM/DD", parse_dates=True)
    raw = raw.loc["2018-01-01":"2018-12-31"]
    names = ["CAD", "EUR", "JPY", "GBP", "CHF", "AUD", "NZD", "KRW", "MXN"]
    return raw[[f"{name}/USD" for name in names]].set_axis(names, axis=1)


def _fx_daily_1985(paths: Sequence[Path]) -> pd.DataFrame:
    raw = pd.read_csv(paths[0], float_precision="round_trip")
    raw.index = pd.DatetimeIndex([f"19{date}" for date in raw["date"]])
    return raw.loc["1985-01-02":, ["dm", "bp", "cd", "dy", "sf"]].iloc[:250]


def _fx_monthly(paths: Sequence[Path]) -> pd.DataFrame:
    raw = pd.read_csv(paths[0], parse_dates=["Date"], float_precision="round_trip")
    wide = raw.pivot(index="Date", columns="Country", values="Exchange rate")
    wide.columns = pd.Index(_snake(wide.columns))
    names = "australia canada japan new_zealand norway sweden switzerland united_kingdom"
    return wide[names.split()].loc["1990-01":"2001-12"]


def _beverages_sugar(paths: Sequence[Path]) -> pd.DataFrame:
    raw = pd.read_csv(paths[0], index_col="date", parse_dates=True, float_precision="round_trip")
    return raw.loc["1995-01":"2006-12", "coffee_arabica":"sugar_world"]


def _ercot_load(paths: Sequence[Path]) -> pd.DataFrame:
    raw = pd.read_csv(paths[0], parse_dates=["timestamp"], float_precision="round_trip")
    wide = raw.pivot(index="timestamp", columns="unique_id", values="value")
    wide = wide[[c for c in wide.columns if c != "ERCOT"]].sort_index(axis=1)
    return wide.set_axis(_snake(wide.columns), axis=1).loc["2021-07-26":"2021-08-04"]


def _uk_road_casualties(paths: Sequence[Path]) -> pd.DataFrame:
    raw = pd.read_csv(paths[0])
    raw.index = pd.date_range("1969-01-01", periods=len(raw), freq="MS")
    return raw[["DriversKilled", "drivers", "front", "rear", "VanKilled", "kms"]]


def _montreal_bikes(paths: Sequence[Path]) -> pd.DataFrame:
    raw = pd.read_csv(
        paths[0], sep=";", encoding="latin1", index_col="Date", parse_dates=["Date"], dayfirst=True
    )
    counted = raw.dropna(axis=1, how="all")
    names = "berri cote_sainte_catherine maisonneuve_1 maisonneuve_2 du_parc pierre_dupuy rachel"
    return counted.set_axis(names.split(), axis=1).loc["2012-04-02":"2012-10-07"]


def _uk_temperature(paths: Sequence[Path]) -> pd.DataFrame:
    stations = {path.stem.split("+")[-1].removesuffix("data"): _station(path) for path in paths}
    return pd.DataFrame(stations).loc["2005-01":"2016-12"]


def _station(path: Path) -> pd.Series[float]:
    """Mean daily maximum by month; an asterisk marks an estimate, dashes a missing month."""
    found: dict[pd.Timestamp, float] = {}
    for line in path.read_text(encoding="latin1").splitlines():
        words = line.split()
        if len(words) >= 3 and words[0].isdigit() and len(words[0]) == 4:
            value = words[2].rstrip("*")
            found[pd.Timestamp(int(words[0]), int(words[1]), 1)] = (
                np.nan if value == "---" else float(value)
            )
    return pd.Series(found)


def _great_lakes(paths: Sequence[Path]) -> pd.DataFrame:
    raw = pd.read_csv(paths[0])
    months = [f"{m.title()} {y}" for m, y in zip(raw["month"], raw["year"], strict=True)]
    raw.index = pd.to_datetime(months, format="%b %Y")
    lakes = raw.loc[:, "Superior":"Ontario"]
    return lakes.set_axis(_snake(lakes.columns), axis=1).loc["1998-01":"2009-12"]


def _us_city_temperature(paths: Sequence[Path]) -> pd.DataFrame:
    stations = {}
    for path in paths:
        raw = pd.read_csv(path, index_col="date", parse_dates=True)
        stations[path.stem.split("+")[-1].lower()] = raw["actual_mean_temp"]
    return pd.DataFrame(stations).loc["2014-09-01":].iloc[:200]


def _walking_phone(paths: Sequence[Path]) -> pd.DataFrame:
    raw = pd.read_csv(paths[0], header=None, float_precision="round_trip").iloc[100:340]
    raw.columns = pd.Index([f"{what}_{axis}" for what in ("acc", "gyr", "mag") for axis in "xyz"])
    return raw.set_index(_clock(len(raw), 1e6 / 60.0))


def _chickenpox_hungary(paths: Sequence[Path]) -> pd.DataFrame:
    raw = pd.read_csv(paths[0], index_col="Date", parse_dates=["Date"], dayfirst=True)
    raw.columns = raw.columns.str.lower()
    names = ["budapest", "pest", "bacs", "borsod", "gyor", "hajdu", "szabolcs", "fejer"]
    return raw.loc["2005-01-03":, names].iloc[:208]


def _covid_portugal(paths: Sequence[Path]) -> pd.DataFrame:
    raw = pd.read_csv(paths[0], index_col="data", parse_dates=["data"], dayfirst=True)
    names = ["arsnorte", "arscentro", "arslvt", "arsalentejo", "arsalgarve", "acores", "madeira"]
    counts = raw[[f"confirmados_{name}" for name in names]].set_axis(names, axis=1)
    return counts.diff().loc["2020-09-15":].iloc[:200]


def _clock(rows: int, microseconds: float) -> pd.DatetimeIndex:
    """Return a nominal clock, in whole microseconds."""
    steps = pd.to_timedelta(np.round(np.arange(rows) * microseconds), unit="us")
    return pd.Timestamp("2000-01-01") + steps


RECIPES: dict[str, Recipe] = {
    "us_housing": _fred(
        "1984-01",
        "1995-12",
        "HOUSTNE HOUSTMW HOUSTS HOUSTW PERMITNE PERMITMW PERMITS PERMITW",
    ),
    "us_unemployment": _fred(
        "1990-01", "2001-12", "UNRATE UEMPMEAN UEMPLT5 UEMP5TO14 UEMP15T26 UEMP27OV CLAIMSx"
    ),
    "us_rates": _fred("1986-01", "1997-12", "FEDFUNDS TB3MS TB6MS GS1 GS5 GS10 AAA BAA"),
    "us_prices": _fred(
        "1999-01",
        "2010-12",
        "CPIAPPSL CPITRNSL CPIMEDSL CUSR0000SAD CUSR0000SAS PCEPI WPSFD49207 WPSID62",
    ),
    "us_industry": _fred(
        "1972-01", "1983-12", "IPDCONGD IPNCONGD IPBUSEQ IPDMAT IPNMAT IPFUELS IPB51222S"
    ),
    "metals": _commodities(
        "2002-01", "2013-12", ["Aluminum", "Copper", "Lead", "Nickel", "Tin", "Zinc"]
    ),
    "oilseeds": _commodities(
        "1988-01",
        "1999-12",
        [
            "Rapeseed oil",
            "Palm oil",
            "Soybean Oil",
            "Sunflower oil",
            "Soybeans",
            "Soybean Meal",
            "Fishmeal",
        ],
    ),
    "fx_daily_2018": _fx_daily_2018,
    "fx_daily_1985": _fx_daily_1985,
    "fx_monthly": _fx_monthly,
    "beverages_sugar": _beverages_sugar,
    "ercot_load": _ercot_load,
    "uk_road_casualties": _uk_road_casualties,
    "montreal_bikes": _montreal_bikes,
    "uk_temperature": _uk_temperature,
    "great_lakes": _great_lakes,
    "us_city_temperature": _us_city_temperature,
    "walking_phone": _walking_phone,
    "chickenpox_hungary": _chickenpox_hungary,
    "covid_portugal": _covid_portugal,
}
