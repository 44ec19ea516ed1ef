"""One structure from data: starting values, moves, hyperparameters, Z.

`training.fit` is the way in; the structure is given.
May import: data, models and what lies below.
"""
