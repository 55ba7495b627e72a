"""`make demo`: a few hundred turns of a real agent in a small window. Nothing is called but this program itself.

    python -m leporello.testing.demo [--turns N] [--dir FOLDER]

What is scripted: the user's messages and the model's answers. What is real: the agent's loop, its tools, the store,
the counts, the folds, the recovery, the search, and the bill, which a simulator of the vendor's cache computes call by
call. The same source gives the same output.
"""

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
from leporello.testing import demo_pages
from leporello.testing.demo_play import Moment, Play

TURNS = 300
MARK = ".leporello-demo"
"""Says that a folder is an earlier demo's and may be thrown away."""


@click.command()
@click.option(
    "--turns", default=TURNS, show_default=True, type=click.IntRange(40, 2_000), help="Length of the session."
)
@click.option("--dir", "folder", type=click.Path(file_okay=False, path_type=Path), help="Where the demo may work.")
def main(turns: int, folder: Path | None) -> None:
    """Play a long session in a small window, then show what became of it."""
    started = time.perf_counter()
    place = _fresh(folder or Path(tempfile.gettempdir()) / "leporello-demo")
    play = Play(place, Path(leporello.__file__).parent, turns)
    try:
        show(play)
    finally:
        play.close()
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


def _fresh(folder: Path) -> Path:
    """An empty folder; one of an earlier demo is emptied, anything else is left alone."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).is_file() or folder.stat().st_uid != os.getuid():
            raise click.ClickException(f"{folder} is not a folder of an earlier demo. Name another one with --dir.")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / MARK).touch()
    return folder.resolve()


if __name__ == "__main__":
    sys.exit(main())
