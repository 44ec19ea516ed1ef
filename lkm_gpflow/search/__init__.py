"""Many structures: algorithm 1 (`search`), its ledger, the weights of fits, many series.

`pipeline` puts these together.
May import: fit and what lies below.
"""
