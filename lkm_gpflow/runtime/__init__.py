"""How work is run: executors, budgets, journals, whole files, quiet imports, lists in words.

Nothing of the field: another package could use this room as it is.
May import: nothing of the package above gp.
"""
