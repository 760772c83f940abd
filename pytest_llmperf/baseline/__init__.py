"""The store of accepted results: canonical text that diffs well, and never a silent change."""
