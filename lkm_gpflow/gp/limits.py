"""What exact mathematics takes on at most, and what weights it leaves out."""

from __future__ import annotations

LONG = 300
"""Of so many time points each value says so much less than all that a search may do less: see
`training`, `structure_search` and `held_out`."""

LONGEST = 4000
"""Most time points of a dense covariance: there N = K = 4 take 15 s of processor and 7 GB for one
relaxed bound."""

LONGEST_REGULAR = 10_000
"""The same where times are regular and no dense covariance is needed: a year of hours has 8,760."""

MAX_ENUMERATED_COMPONENTS = 12
"""2^K rows of Z are held for at most so many components."""

MIN_WEIGHT = 1e-4
"""Rows of Z of a smaller posterior probability have no part in predictions."""
