"""Forecasts: fits, walks and a vector autoregression, weighted by windows of the past.

Imports from: search, fit and what is below them.
"""
