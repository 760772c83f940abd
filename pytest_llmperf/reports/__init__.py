"""Case results in, text out; one writer writes."""
