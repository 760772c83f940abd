"""Small pure functions on plain floats: t distribution, variance by session, least squares, multiplicity.

Everything is deterministic: sums are exactly rounded (``math.fsum``), so the order of values never shows, and nothing
is resampled. Only ``student`` needs scipy, for the two special functions of the t distribution.
"""
