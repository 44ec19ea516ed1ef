"""The latent kernel model (`lkm`), its IBP prior, its posteriors over Z, and its relatives.

GPflow models, with plain GPflow training: none of them knows how a search learns it.
May import: kernels and what lies below.
"""
