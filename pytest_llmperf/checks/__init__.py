"""Pure: facts in, findings out. Preconditions, validity of runs, comparability."""
