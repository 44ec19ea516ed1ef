"""Who shares what, and how sure that is: components matched over fits, probabilities, intervals.

Imports from: coupling, forecast, search, fit and what is below them.
"""
