"""`make demo`: a few hundred turns of a real agent in a small window. Nothing is called but this program itself."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import click

import leporello
from leporello.cli.output import note, progress
from leporello.config import Home
from leporello.store import open_store
from leporello.store.base import StoreOptions
from leporello.testing import demo_pages
from leporello.testing.demo_play import ID, WORK, Moment, Play

TURNS = 300
MARK = ".leporello-demo"
"""Says that a folder is an earlier demo's and may be thrown away."""


@click.command()
@click.option(
    "--turns", default=TURNS, show_default=True, type=click.IntRange(40, 2_000), help="Length of the session."
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the demo may work. [LEPORELLO_HOME if empty, else a temporary folder]",
)
def main(turns: int, folder: Path | None) -> None:
    """Play a long session in a small window, then show what became of it."""
    started = time.perf_counter()
    place = _fresh(folder or _place())
    note(f"Everything is written below {place}.")
    play = Play(place, Path(leporello.__file__).parent, turns)
    try:
        show(play)
    finally:
        play.close()
        # What the scripted server refused says nothing about the real model of that name.
        play.home.limits_file.unlink(missing_ok=True)
    note(f"Took {time.perf_counter() - started:.1f} s.")


def show(play: Play) -> None:
    """Play, and print what happens and what became of it."""
    demo_pages.opening(play)
    with progress("turn") as line:

        def told(moment: Moment) -> None:
            line.close()
            demo_pages.moment(moment)

        play.run(told, lambda number: line.update(number, play.count))
    demo_pages.ending(play)


def _place() -> Path:
    """`LEPORELLO_HOME` when it is set and holds nothing but an earlier demo, else a folder for temporary files."""
    named = Home.named()
    own = Path(tempfile.gettempdir()) / "leporello-demo"
    if named is None:
        return own
    if not _may_use(named.path):
        note(f"{named.path} (LEPORELLO_HOME) holds something else: it is left alone.")
        return own
    return named.path


def _may_use(folder: Path) -> bool:
    """Whether a folder is empty, or an earlier demo's in which nobody has begun a conversation since."""
    if not folder.exists() or not any(folder.iterdir()):
        return True
    if not (folder / MARK).is_file() or folder.stat().st_uid != os.getuid():
        return False
    if not Home(folder).database.exists():
        return True
    with open_store(Home(folder).store_url, StoreOptions(read_only=True)) as store:
        return all(record.id == ID for record in store.conversations.page(limit=2).conversations)


def _fresh(folder: Path) -> Path:
    """The folder without what an earlier demo wrote there; anything else is left alone."""
    if not _may_use(folder):
        raise click.ClickException(f"{folder} is not a folder of an earlier demo. Name another one with --dir.")
    home = Home(folder)
    for path in (folder / WORK, home.outputs_dir):
        if path.is_dir():
            shutil.rmtree(path)
    database = [home.database.with_name(home.database.name + ending) for ending in ("", "-wal", "-shm")]
    for path in (*database, home.limits_file):
        path.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / MARK).touch()
    return folder.resolve()


if __name__ == "__main__":
    sys.exit(main())
