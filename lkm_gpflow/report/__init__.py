"""Reports: what series share, in words, numbers and pictures.

Every report is data first (`to_dict`), then Markdown (`text`), then HTML: in a notebook by itself,
or as one file (`to_html`) that needs no network.
May import: plotting and what lies below.
"""

from .group import GroupReport, group_report, pattern_table
from .page import Report
from .pairwise import AllPairs, PairReport, all_pairs, pair_report

__all__ = [
    "AllPairs",
    "GroupReport",
    "PairReport",
    "Report",
    "all_pairs",
    "group_report",
    "pair_report",
    "pattern_table",
]
