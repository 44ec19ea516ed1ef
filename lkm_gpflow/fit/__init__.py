"""One structure from data: starting values, moves, hyperparameters, Z.

`training.fit` is the way in; the structure is given.
May import: data and what lies below.
"""
