"""Forecasts: draws or fits, and walks, weighted by windows of the past.

How a discovery calls it::

    stacking.hold_out(fits, observations, settings, ledger)
    members = stacking.weigh(fits, settings, ledger)            # the forecasters and their weights
    ensemble = Ensemble(table, tuple(counting(members)), predictors, averages=True)
    forecast = ensemble.at(times)                               # a MixtureForecast
    forecast.frame(level, quantiles), .samples(count, seed), .aggregate(weights, level),
    forecast.mean, .variance, .sd, .modelled, .quantile(q), .cdf(values), .given(known)

- `mixture`: the forecast of some cells, a mixture of what several forecasters say.
- `forecasters`: fits, draws and walks as forecasters, and the ensemble of all.
- `held_out`: windows of the past, forecast by what is learnt from before them, and scored.
- `stacking`: weights by how all forecast these windows, and by how well fits explain.
- `predictors`: what a fit says of any times, by NumPy; `by_model`: by TensorFlow.

May import: search and what lies below.
"""
