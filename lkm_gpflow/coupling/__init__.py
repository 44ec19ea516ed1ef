"""Series that know of each other: density, correlations, their learning, joint conditionals.

May import: forecast and what lies below.
"""
