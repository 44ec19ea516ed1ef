"""A table of series: read from a file, checked, and scaled to arrays.

Everything that can be wrong with a table is found here.
May import: gp, runtime.
"""
