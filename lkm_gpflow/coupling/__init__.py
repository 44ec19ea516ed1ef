"""Series that know of each other: density, correlations, their learning, joint conditionals.

Imports from: forecast, search, fit and what is below them.
"""
