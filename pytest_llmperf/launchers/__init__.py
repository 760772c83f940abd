"""A command in, a live process out, and nothing left of it afterwards."""
