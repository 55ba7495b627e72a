"""What the environment says about the terminal."""

from __future__ import annotations

import os
from collections.abc import Mapping


def colours_wanted(environ: Mapping[str, str] | None = None) -> bool:
    """False when `NO_COLOR` is set or the terminal is dumb; whether there is a terminal is for the caller to ask."""
    variables = os.environ if environ is None else environ
    return not variables.get("NO_COLOR") and variables.get("TERM") != "dumb"


def can_redraw(environ: Mapping[str, str] | None = None) -> bool:
    """False for a terminal that only prints lines; whether there is a terminal is for the caller to ask."""
    variables = os.environ if environ is None else environ
    return variables.get("TERM", "") not in ("dumb", "unknown")
