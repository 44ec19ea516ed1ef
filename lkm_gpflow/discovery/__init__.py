"""What users call, `discover` and `learn`, and what they get: a `Discovery` (`result`).

It forecasts and is saved here; explaining and drawing it are the matter of the rooms above.
May import: sharing and what lies below.
"""
