"""Who shares what, and how sure that is: components matched over fits, probabilities, intervals.

May import: coupling and what lies below.
"""
