"""The benchmark: all methods on tables of six domains, two origins each.

May import: what `experiments` may.
"""
