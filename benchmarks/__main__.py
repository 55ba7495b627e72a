"""`python -m benchmarks [NAME ...] [--quick | --write]`: measure and print; with --write the docs get the new figures.

--quick takes less data where there is much: it shows that a benchmark works, not what it would find. --messages=N is
the size of the store benchmark, which otherwise takes most of an hour.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import compare, dashboard, gateway, gateway_memory, overhead, scaleout, startup, steady, store

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "benchmarks.md"
PAGES = {"scaleout": PAGE.with_name("deploy.md"), "dashboard": PAGE.with_name("dashboard.md")}
"""Where figures stand that are not among the benchmarks."""
PARTS: dict[str, Callable[[], str]] = {
    "compress": compare.run,
    "steady": steady.run,
    "overhead": overhead.run,
    "startup": startup.run,
    "gateway": gateway.run,
    "memory": gateway_memory.run,
    "store": store.run,
    "dashboard": dashboard.run,
    "scaleout": scaleout.run,
}
QUICK = PARTS | {
    "dashboard": dashboard.run_quick,
    "store": store.run_quick,
    "gateway": gateway.run_quick,
    "memory": gateway_memory.run_quick,
    "scaleout": scaleout.run_quick,
}


def machine() -> str:
    """One line about where and when this ran."""
    day = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return (
        f"Measured {day} on {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, load "
        f"{os.getloadavg()[0]:.1f} at the start."
    )


def main(arguments: list[str]) -> int:
    """Run what was asked for; everything without a name."""
    quick = "--quick" in arguments
    write = "--write" in arguments and not quick
    parts = QUICK if quick else PARTS
    for argument in arguments:
        if argument.startswith("--messages="):
            parts = parts | {"store": partial(store.run_sized, int(argument.partition("=")[2]))}
    names = [argument for argument in arguments if not argument.startswith("--")] or list(PARTS)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"There is no benchmark {unknown[0]!r}; there are: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    where = machine()
    print(where)
    for name in names:
        print(f"\n## {name}\n", flush=True)
        result = parts[name]()
        print(result, flush=True)
        if write:
            page = PAGES.get(name, PAGE)
            page.write_text(replaced(page, name, f"{where}\n\n{result}"), encoding="utf-8")
    return 0


def replaced(path: Path, name: str, text: str) -> str:
    """The page with the text between the marks of one part replaced."""
    page = path.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"{path.name} has no place for {name}: it needs <!-- {name} --> and <!-- /{name} -->")
    return pattern.sub(lambda match: f"{match[1]}\n{text}\n\n{match[2]}", page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
