"""Forecasts: fits, walks and a vector autoregression, weighted by windows of the past.

May import: search and what lies below.
"""
