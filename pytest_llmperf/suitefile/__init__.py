"""YAML text -> Suite -> cases; every mistake at once, each with file, line, value and what would be right."""
