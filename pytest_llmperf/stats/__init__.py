"""Small pure functions on plain floats: t and binomial tails, variance by session, least squares, multiplicity, series.

Everything is deterministic: sums are exactly rounded (``math.fsum``), so the order of values never shows, and nothing
is resampled. Of scipy only the special functions of the distributions are used, which are fast.
"""
