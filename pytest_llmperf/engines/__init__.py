"""Adapters: an arm in, a command line and counter names out. No adapter imports its engine."""
