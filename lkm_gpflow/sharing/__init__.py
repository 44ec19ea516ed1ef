"""Who shares what, and how sure that is: components matched over fits, draws of a posterior.

May import: coupling and what lies below.
"""
