"""Case -> measurement -> verdicts: the one place where all parts meet."""
