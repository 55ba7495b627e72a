"""`python -m benchmarks [NAME ...] [--quick | --write]`: measure and print; with --write the docs get the new figures.

Without a name those that together take a few minutes; `--full`: all. --quick takes less data where there is much: it
shows that a benchmark works, not what it would find. --messages=N is the size of the store benchmark, which otherwise
takes most of an hour. --earlier=FOLDER names the sources of release 0.1.0, to be measured beside these. --write with
--full and --earlier makes every table of the page.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import (
    clients,
    compare,
    dashboard,
    decision,
    field,
    gateway,
    gateway_memory,
    linear,
    opening,
    overhead,
    scaleout,
    sizes,
    startup,
    steady,
    store,
    turns,
    usage,
)

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "benchmarks.md"
BILL = PAGE.with_name("bill.md")
GUIDES = PAGE.parent.parent / "guides"
PAGES = {
    "scaleout": GUIDES / "deploy.md",
    "dashboard": GUIDES / "dashboard.md",
    "field": BILL,
    "usage": BILL,
    "clients": BILL,
    "decision": PAGE.with_name("policy.md"),
}
"""Where figures stand that are not among the benchmarks."""
PARTS: dict[str, Callable[[], str]] = {
    "compress": compare.run,
    "linear": linear.run,
    "steady": steady.run,
    "overhead": overhead.run,
    "startup": startup.run,
    "opening": opening.run,
    "turns": turns.run,
    "gateway": gateway.run,
    "memory": gateway_memory.run,
    "sizes": sizes.run,
    "store": store.run,
    "dashboard": dashboard.run,
    "scaleout": scaleout.run,
    "usage": usage.run,
    "field": field.run,
    "clients": clients.run,
    "decision": decision.run,
}
SHORT = ("compress", "steady", "overhead", "startup", "sizes")
"""What `make bench` runs: under ten minutes."""
BESIDE_EARLIER = {"compress": compare.run, "startup": startup.run, "opening": opening.run}
FULL = PARTS | {"sizes": sizes.run_full}
QUICK = PARTS | {
    "linear": linear.run_quick,
    "sizes": sizes.run_quick,
    "opening": opening.run_quick,
    "turns": turns.run_quick,
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
    parts = QUICK if quick else FULL if "--full" in arguments else PARTS
    for argument in arguments:
        if argument.startswith("--messages="):
            parts = parts | {"store": partial(store.run_sized, int(argument.partition("=")[2]))}
        if argument.startswith("--earlier="):
            earlier = Path(argument.partition("=")[2]).resolve()
            parts = parts | {name: partial(run, earlier) for name, run in BESIDE_EARLIER.items()}
    names = [argument for argument in arguments if not argument.startswith("--")]
    names = names or list(PARTS if "--full" in arguments else SHORT)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"There is no benchmark {unknown[0]!r}; there are: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    where = machine()
    print(where)
    for name in names:
        print(f"\n## {name}\n", flush=True)
        began = time.perf_counter()
        result = parts[name]()
        print(f"{result}\n\n{name} took {time.perf_counter() - began:.0f} s.", flush=True)
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
