"""How work is run: executors, budgets, journals, whole files, progress bars, quiet imports, words.

Nothing of the field: another package could use this room as it is.
May import: nothing of the package above numerics.
"""
