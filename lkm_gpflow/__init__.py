"""Latent Kernel Models for several time series, on GPflow."""
