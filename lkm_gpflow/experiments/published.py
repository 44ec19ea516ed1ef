"""The numbers that the paper printed, to stand beside ours."""

from __future__ import annotations

from io import StringIO

import pandas as pd

_TABLE_1 = """\
method     dataset        rmse rmse_sd  mnlp mnlp_sd
spike-slab stocks        10.07    0.12  2.87  0.05
spike-slab houses        10.85    0.46  6.92  0.09
spike-slab currencies   174.71   14.52  4.09  0.10
spike-slab gonu           1.07    0.08  2.36  0.11
gprn       stocks         6.11    0.09  2.78  0.14
gprn       houses         8.96    0.17  6.64  0.46
gprn       currencies   193.13   49.40  4.24  0.20
gprn       gonu           1.16    0.12  2.46  0.28
lmc        stocks         8.20    0.53  2.24  0.23
lmc        houses        11.31    1.04  5.90  0.46
lmc        currencies   394.83   40.54  4.90  0.15
lmc        gonu           1.01    0.14  1.43  0.11
mosm       stocks         5.48    1.01  2.97  0.01
mosm       houses         8.15    1.51  5.90  0.20
mosm       currencies   318.26  101.52  3.93  0.15
mosm       gonu           0.84    0.18  3.13  1.06
abcd       stocks         8.37    0.03  2.58  0.05
abcd       houses         7.98    0.03  5.61  0.05
abcd       currencies   325.58    8.64  4.47  0.04
abcd       gonu           0.86    0.01  2.21  0.03
r-abcd     stocks         4.88    0.03  1.95  0.05
r-abcd     houses         3.17    0.10  6.07  0.09
r-abcd     currencies   208.32    5.02  3.62  0.03
r-abcd     gonu           0.97    0.03  2.01  0.10
lkm-paper  stocks         4.58    0.16  1.87  0.10
lkm-paper  houses         4.37    0.16  5.54  0.40
lkm-paper  currencies   133.00   16.92  3.61  0.16
lkm-paper  gonu           0.76    0.07  1.90  0.25
"""


def table_1() -> pd.DataFrame:
    """Table 1 of Tong and Choi (2019): means and standard deviations of five runs.

    Returns
    -------
    DataFrame with index (method, dataset), by our names, and columns rmse, rmse_sd, mnlp, mnlp_sd.
    The paper's own row is "lkm-paper".
    """
    table = pd.read_csv(StringIO(_TABLE_1), sep=r"\s+")
    return table.set_index(["method", "dataset"])
