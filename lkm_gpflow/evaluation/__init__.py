"""How well a method forecasts: scores (`metrics`) and rolling origins (`backtesting`).

A method is any comparator, ours among them.
May import: comparators and what lies below.
"""
