"""Words: the common English words that prompts are made of."""

from __future__ import annotations

WORDS: tuple[str, ...] = tuple(
    """
    the of and to in a is that it was for on are as with his they at be this from have or by one had not but what all
    were when we there can an your which their said if do will each about how up out them then she many some so these
    would other into has more her two like him see time could no make than first been its who now people my made over
    did down only way find use may water long little very after called just where most know get through back much
    before go good new write our me man too any day same right look think also around another came come work three
    word must because does part
    """.split()  # noqa: SIM905 (one word a line would be 160 lines)
)
"""Distinct, lower case; every one of them is one token for the embedded engine's model."""
