"""Do the tests bite? A seeded sample of small faults in the centre of the program, each against its closest tests.

    python scripts/mutants.py --seed 1                     # 300 mutants; hours on one core, so not in CI
    python scripts/mutants.py --seed 1 --resume FILE       # go on where it stopped, or show the table
    python scripts/mutants.py --resume FILE --again tests/store/test_new.py     # the survivors against new tests

The sample takes as many from each area, and stays the same where the source does: other changes don't move it. The
closest tests of a mutant are those that run its line, quickest first, up to `--budget` seconds of them. Which those are
is measured once (`coverage`) and kept in `--cache`, by function, so that it holds while the source moves. Everything
happens in a copy of the work tree. Survivors that change nothing anybody could see stand with their reasons in
`tests/repo/accepted_mutants.txt`.

Not `mutmut`: it leaves out constants, properties and whatever is decorated, which is where this program keeps its
numbers. Not `cosmic-ray`: it changes the tree in place and runs all tests for each mutant.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from mutations import Mutant, is_python, mutants

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/leporello")
ACCEPTED = ROOT / "tests/repo/accepted_mutants.txt"
AREAS = {
    "compaction": ("compaction", "conversation/compact.py"),
    "policy": ("policy.py", "policy", "engines/base.py", "engines/guard.py", "conversation/compactor.py"),
    "recovery": ("conversation/recovery.py",),
    "turns": ("turns.py",),
    "store": ("store",),
    "fingerprint": ("fingerprint.py",),
}
NEAR = (
    *("fingerprint", "messages", "policy", "compaction", "conversation", "promises", "testing/test_engine_contract.py"),
    *("engines/test_base.py", "plugins/test_guard.py"),
    *("store/test_sqlite_contract.py", "store/test_sqlite_faults.py", "store/test_sqlite_costs.py"),
    *("store/test_copying.py", "store/test_durability.py", "store/test_opening.py", "store/test_schema.py"),
)
"""Below `tests`: whose tests may be somebody's closest. What PostgreSQL alone runs is left to its own tests."""
QUICK = ("-p", "no:cacheprovider", "-p", "pytest_asyncio.plugin", "-p", "pytest_timeout", "-p", "no:logging")
START_SECONDS = 8
STANDS = ("survived", "uncovered")
SLOWDOWN = 2
"""A mutant may take so many times the processor time that its tests take; then it hangs."""
PATIENCE = 4
"""And so many times as long by the clock: on a busy machine that alone says little."""


def files_of(area: str, tree: Path) -> Iterator[Path]:
    """The modules of an area that there are."""
    for name in AREAS[area]:
        path = tree / PACKAGE / name
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path] * path.exists()


def sample(tree: Path, seed: int, count: int) -> list[tuple[str, Mutant]]:
    """As many of each area, in an order that depends on nothing but the seed and the mutant itself."""
    chosen: list[tuple[str, Mutant]] = []
    for number, area in enumerate(AREAS):
        sources = {str(path.relative_to(tree / PACKAGE)): path.read_bytes() for path in files_of(area, tree)}
        found = [mutant for path, source in sources.items() for mutant in mutants(path, source)]
        found.sort(key=lambda mutant: hashlib.sha256(f"{seed} {mutant.name}".encode()).digest())
        share = count * (number + 1) // len(AREAS) - count * number // len(AREAS)
        usable = (mutant for mutant in found if is_python(mutant.applied(sources[mutant.path])))
        chosen.extend((area, mutant) for mutant in islice(usable, share))
    return chosen


def copy_tree(into: Path) -> Path:
    """The files of the work tree as they are now, without what git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    for name in listed:
        if (ROOT / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, into / name)
    return into


# -- closest tests


@dataclass(frozen=True, slots=True)
class Closest:
    """Which tests ran what: by module, function and line within it."""

    seconds: dict[str, float]
    lines: dict[str, dict[str, dict[int, list[str]]]]

    @classmethod
    def of(cls, cache: Path, tree: Path, new: Sequence[str] = ()) -> Closest:
        """From the cache; measured first when there is none. What `new` tests run is measured and added."""
        kept = cache / "closest.json"
        if not kept.exists():
            kept.write_text(json.dumps(measure(tree, [f"tests/{name}" for name in NEAR])), encoding="utf-8")
        found = json.loads(kept.read_text(encoding="utf-8"))
        if new:
            found = merged(found, measure(tree, new))
            kept.write_text(json.dumps(found), encoding="utf-8")
        lines = {
            path: {where: {int(line): tests for line, tests in ran.items()} for where, ran in functions.items()}
            for path, functions in found["lines"].items()
        }
        return cls(found["seconds"], lines)

    def tests(self, mutant: Mutant, source: str, budget: float) -> list[str]:
        """Quickest first; those of the line, else those of the functions that name what is defined there."""
        found: set[str] = set()
        where, first = enclosing(ast.parse(source), mutant.line)
        ran = self.lines.get(mutant.path, {}).get(where, {}) if where else {}
        for line in range(mutant.line - first, mutant.line - first + mutant.old.count("\n") + 1):
            found.update(ran.get(line, ()))
        if not found:
            found.update(*ran.values())
        if not found:
            found.update(self._users(mutant, source))
        chosen: list[str] = []
        total = 0.0
        for test in sorted(found, key=lambda test: (self.seconds[test], test)):
            total += self.seconds[test]
            if chosen and total > budget:
                break
            chosen.append(test)
        return chosen

    def _users(self, mutant: Mutant, source: str) -> Iterator[str]:
        """Of a constant or a field: the functions of its module that name it, or the whole module."""
        functions = self.lines.get(mutant.path, {})
        name = mutant.where.rpartition(".")[2]
        rows, tree = source.splitlines(), ast.parse(source)
        using = {
            enclosing(tree, number)[0]
            for number, row in enumerate(rows, 1)
            if re.search(rf"\b{re.escape(name)}\b", row) and number != mutant.line
        }
        chosen = [functions[where] for where in (using | {mutant.where}) - {""} if where in functions]
        chosen = chosen or [ran for where, ran in functions.items() if where]
        for ran in chosen:
            for tests in ran.values():
                yield from tests


def enclosing(tree: ast.Module, line: int) -> tuple[str, int]:
    """The function in whose body a line stands, and where it begins; nothing for what runs on import."""
    found, first = "", 1
    names: list[str] = []
    inside: list[ast.AST] = [tree]
    while inside:
        for node in ast.iter_child_nodes(inside.pop()):
            if not isinstance(node, ast.stmt) or not node.lineno <= line <= (node.end_lineno or node.lineno):
                continue
            inside.append(node)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.append(node.name)
                if not isinstance(node, ast.ClassDef) and line >= node.body[0].lineno:
                    found, first = ".".join(names), node.lineno
    return found, first


def merged(known: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Both measurements; the newer one of a test counts."""
    lines = known["lines"]
    for path, functions in new["lines"].items():
        for where, ran in functions.items():
            place = lines.setdefault(path, {}).setdefault(where, {})
            for line, tests in ran.items():
                place[str(line)] = sorted({*place.get(str(line), ()), *tests})
    return {"seconds": known["seconds"] | new["seconds"], "lines": lines}


def measure(tree: Path, tests: Sequence[str]) -> dict[str, Any]:
    """One run of some tests under coverage."""
    data = tree / ".coverage"
    measured = ",".join(str(path) for area in AREAS for path in files_of(area, tree))
    command = [sys.executable, "-m", "coverage", "run", "--rcfile=/dev/null", f"--data-file={data}"]
    command.append(f"--include={measured}")
    print("Measuring which tests run which lines (once)", file=sys.stderr, flush=True)
    plugins = ("-p", "no:xdist", "-p", "coverage_by_test")
    subprocess.run(
        [*command, "-m", "pytest", "-q", *plugins, *tests, "-m", "not extended and not soak", "-k", "not breaks"],
        cwd=tree,
        env=environment(tree) | {"PYTHONPATH": f"{tree / 'src'}:{tree / 'scripts'}"},
        stdout=sys.stderr,
        check=False,
    )
    return read_coverage(tree, data)


def read_coverage(tree: Path, data: Path) -> dict[str, Any]:
    """What coverage noted, by function."""
    import coverage  # noqa: PLC0415 - only whoever measures needs it

    seconds: dict[str, float] = json.loads((tree / "seconds.json").read_text(encoding="utf-8"))
    if not seconds:
        sys.exit("No test passed without any change; nothing was measured.")
    noted = coverage.CoverageData(basename=str(data))
    noted.read()
    lines: dict[str, dict[str, dict[int, list[str]]]] = {}
    for area in AREAS:
        for path in files_of(area, tree):
            parsed = ast.parse(path.read_bytes())
            functions: dict[str, dict[int, list[str]]] = defaultdict(dict)
            for line, contexts in noted.contexts_by_lineno(str(path)).items():
                where, first = enclosing(parsed, line)
                functions[where][line - first] = [test for test in contexts if test in seconds]
            lines[str(path.relative_to(tree / PACKAGE))] = functions
    return {"seconds": seconds, "lines": lines}


def environment(tree: Path) -> dict[str, str]:
    """No recorded sessions: they make tests longer, not sharper."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LEPORELLO_", "PYTEST_"))}
    return {**kept, "PYTHONPATH": str(tree / "src"), "HYPOTHESIS_PROFILE": "fast", "PYTHONDONTWRITEBYTECODE": "1"}


# -- one mutant


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs mutants in a copy of the tree."""

    tree: Path
    unsound: set[str] = field(default_factory=set)
    """Tests that fail by themselves, here or in this order: they kill nothing."""

    def run(self, mutant: Mutant, tests: Sequence[str], seconds: float) -> dict[str, Any]:
        """What became of one mutant under these tests."""
        began = time.monotonic()
        sound = [test for test in tests if test not in self.unsound]
        outcome, by = self._with(mutant, sound, START_SECONDS + SLOWDOWN * seconds) if sound else ("uncovered", "")
        return {"outcome": outcome, "by": by, "tests": len(sound), "seconds": round(time.monotonic() - began, 1)}

    def check(self, killers: Sequence[str]) -> None:
        """Run the tests that killed something without any change."""
        left = [test for test in killers if "::" in test and test not in self.unsound]
        while left:
            outcome, by = self._pytest(left, 200 * START_SECONDS)
            if outcome == "survived":
                return
            if by not in left:
                # A test that is gone, for one: it was measured before.
                sys.exit(f"Without any change: {outcome} {by}")
            self.unsound.add(by)
            left = left[left.index(by) + 1 :]

    def _with(self, mutant: Mutant, tests: Sequence[str], limit: float) -> tuple[str, str]:
        module = self.tree / PACKAGE / mutant.path
        source = module.read_bytes()
        module.write_bytes(mutant.applied(source))
        try:
            return self._pytest(tests, limit)
        finally:
            module.write_bytes(source)

    def _pytest(self, tests: Sequence[str], limit: float) -> tuple[str, str]:
        listed = self.tree / "tests-of-this-mutant.txt"
        listed.write_text("\n".join(tests), encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-rfE", *QUICK, f"@{listed}"],
            cwd=self.tree,
            env=environment(self.tree) | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (round(limit), round(limit) + 5)),
        )
        try:
            output, _ = process.communicate(timeout=PATIENCE * limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return "hung", ""
        if process.returncode == 0:
            return "survived", ""
        if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return "hung", ""
        failed = re.search(r"^(?:FAILED|ERROR) (.+)$", output, re.MULTILINE)
        told = failed[1] if failed else output.strip()[-200:]
        # A test's id may hold what pytest puts between it and the reason.
        return "killed", max((test for test in tests if f"{told} ".startswith(f"{test} ")), key=len, default=told)


# -- all of them


@dataclass(frozen=True, slots=True)
class Results:
    """One line of JSON for each run; the last one of a mutant counts."""

    path: Path

    def read(self) -> dict[str, dict[str, Any]]:
        """By the name of the mutant."""
        rows = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        return {row["mutant"]: row for row in map(json.loads, rows)}

    def add(self, row: dict[str, Any]) -> None:
        """Written through, so that a stopped run loses nothing."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def accepted() -> dict[str, str]:
    """The mutants that may survive, and why: a line each, the reason indented below it."""
    rows = ACCEPTED.read_text(encoding="utf-8").splitlines() if ACCEPTED.exists() else []
    names: dict[str, str] = {}
    name = ""
    for row in rows:
        if row.startswith("    "):
            names[name] = f"{names[name]} {row.strip()}".strip()
        elif row and not row.startswith("#"):
            name = row
            names[name] = ""
    return names


def table(rows: Iterable[dict[str, Any]]) -> str:
    """What became of the mutants of each area."""
    fine = accepted()
    counts: dict[str, Counter[str]] = {area: Counter() for area in (*AREAS, "all")}
    for row in rows:
        outcome = "equivalent" if row["outcome"] in STANDS and row["mutant"] in fine else row["outcome"]
        counts[row["area"]][outcome] += 1
        counts["all"][outcome] += 1
    text = [
        "| area | mutants | killed | equivalent | survived | killed of those that change behaviour |",
        "|---" * 6 + "|",
    ]
    for area, count in counts.items():
        total, killed = count.total(), count["killed"] + count["hung"]
        share = f"{killed / (total - count['equivalent']):.1%}" if total > count["equivalent"] else ""
        survived = count["survived"] + count["uncovered"]
        text.append(f"| {area} | {total} | {killed} | {count['equivalent']} | {survived} | {share} |")
    return "\n".join(text)


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--budget", type=float, default=20, help="seconds of tests for each mutant (20)")
    parser.add_argument("--resume", type=Path, help="the file of results; a new one in --cache otherwise")
    parser.add_argument("--measure", nargs="+", metavar="TEST", default=(), help="tests that are new or were changed")
    parser.add_argument(
        "--again", nargs="*", metavar="TEST", help="run survivors again, against these or their closest"
    )
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "leporello-mutants")
    parser.add_argument("--table", action="store_true", help="only show what --resume holds")
    return parser.parse_args()


def run_all(tree: Path, chosen: Sequence[tuple[str, Mutant]], results: Results, asked: argparse.Namespace) -> None:
    """Run what is left to run; then look whether the tests that killed something pass without a change."""
    closest, runner = Closest.of(asked.cache, tree, asked.measure), Runner(tree)
    while True:
        for number, (area, mutant) in enumerate(chosen, 1):
            done = results.read().get(mutant.name)
            stands = done is not None and done["outcome"] in STANDS and mutant.name not in accepted()
            if not (stands if asked.again is not None else done is None or done["by"] in runner.unsound):
                continue
            source = (tree / PACKAGE / mutant.path).read_text(encoding="utf-8")
            tests = asked.again or closest.tests(mutant, source, asked.budget)
            took = runner.run(mutant, tests, sum(closest.seconds.get(test, 10) for test in tests))
            results.add({"mutant": mutant.name, "area": area, "line": mutant.line, **took})
            print(f"{number:>4} {took['outcome']:<9} {took['seconds']:>6} s  {mutant.name}", flush=True)
        known = len(runner.unsound)
        runner.check(sorted({row["by"] for row in results.read().values() if row["outcome"] == "killed"}))
        if len(runner.unsound) == known:
            return


def main() -> None:
    """Run what is left to run, then show the table."""
    asked = arguments()
    os.nice(10)
    asked.cache.mkdir(parents=True, exist_ok=True)
    results = Results(asked.resume or asked.cache / f"results-{asked.seed}.jsonl")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = copy_tree(Path(folder))
        chosen = sample(tree, asked.seed, asked.count)
        if not asked.table:
            run_all(tree, chosen, results, asked)
    found = results.read()
    rows = [found[mutant.name] for _, mutant in chosen if mutant.name in found]
    for row in rows:
        if row["outcome"] in STANDS and row["mutant"] not in accepted():
            print(f"{row['outcome']}: {row['mutant']} (line {row['line']})")
    print(table(rows))
    print(f"Results: {results.path}")


if __name__ == "__main__":
    main()
