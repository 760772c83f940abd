"""Pure: numbers in, numbers out. Knows nothing of engines, metrics or cases."""
