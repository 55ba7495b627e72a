"""Puts Leporello's engines into another host: a small plugin folder that the host's own loader finds."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from leporello.errors import InputError

CODE = '''\
"""Leporello's context engines. Written by `leporello plugins install`; it may be overwritten."""


def register(ctx):
    from leporello.adapters.hermes import register as register_engine

    register_engine(ctx)
'''
MANIFEST = """\
name: leporello
version: {version}
description: "Context engines leporello and leporello-lcm: fold a conversation, lose nothing."
"""
NEXT = """\
Install Leporello where Hermes runs:     python -m pip install leporello
Then, in {config}:

plugins:
  enabled: [leporello]
context:
  engine: leporello        # or leporello-lcm
"""
HOSTS = ("hermes",)


@dataclass(frozen=True, slots=True)
class Installed:
    folder: Path
    next: str


def install(host: str, home: Path) -> Installed:
    """Write the plugin folder into the home of another host; doing it again brings it up to date."""
    if host not in HOSTS:
        raise InputError(f"Leporello can be installed into {', '.join(HOSTS)}, not into {host!r}.")
    folder = home.expanduser() / "plugins" / "leporello"
    known = folder / "__init__.py"
    if known.exists() and "leporello" not in known.read_text(encoding="utf-8", errors="replace").lower():
        raise InputError("There is a plugin of that name which is not ours; nothing was written.", str(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plugin.yaml").write_text(MANIFEST.format(version=version("leporello")), encoding="utf-8")
        known.write_text(CODE, encoding="utf-8")
    except OSError as error:
        raise InputError(f"The plugin can't be written: {error.strerror}.", str(folder)) from None
    return Installed(folder, NEXT.format(config=home.expanduser() / "config.yaml"))
