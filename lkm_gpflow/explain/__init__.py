"""What a discovery means: its components, where forecasts come from, how certain it is, in words.

Numbers and sentences, no pictures.
May import: discovery and what lies below.
"""
