"""Pure: a run's records in, one number per metric out."""
