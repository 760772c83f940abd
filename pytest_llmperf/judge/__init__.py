"""Pure: two measurements and gates in, verdicts out; deterministic, bit for bit."""
