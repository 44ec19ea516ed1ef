"""Linear algebra: batched Gaussian log densities with their gradients, and low rank.

Arrays in, arrays out: nothing here knows of kernels or series.
May import: nothing of the package.
"""
