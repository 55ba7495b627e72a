"""The invented project that a session works on: source files, a branch, commits, failing tests; words to name them."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from leporello.testing.sessions import output
from leporello.testing.sessions.source import SUFFIXES, source
from leporello.testing.sessions.vocabulary import DOMAINS, PROJECTS, THINGS, VERBS, digits, hexes, name

FILES = 40


@dataclass(slots=True)
class World:
    """State of the project; every method draws from the one random source."""

    rng: Random
    project: str = ""
    branch: str = ""
    files: dict[str, list[str]] = field(default_factory=dict)
    commits: list[tuple[str, str]] = field(default_factory=list)
    failing: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.project = self.rng.choice(PROJECTS)
        self.branch = f"release-{digits(self.rng, 4)}"
        while len(self.files) < FILES:
            suffix = self.rng.choice(SUFFIXES)
            path = f"src/{self.rng.choice(DOMAINS)}/{self.rng.choice(VERBS)}_{self.rng.choice(THINGS)}{suffix}"
            self.files.setdefault(path, source(self.rng, suffix, self.rng.randrange(40, 260)))

    @property
    def paths(self) -> tuple[str, ...]:
        """All file paths."""
        return tuple(self.files)

    def numbered(self, path: str, start: int, count: int) -> str:
        """Lines of a file as a reading tool shows them."""
        lines = self.files[path][start : start + count]
        return "\n".join(f"{start + offset + 1:6}|{line}" for offset, line in enumerate(lines))

    def edit(self, path: str) -> tuple[str, str]:
        """Change a few lines of a file; the old and the new text."""
        lines = self.files[path]
        start = self.rng.randrange(max(1, len(lines) - 6))
        count = self.rng.randrange(2, 6)
        suffix = "." + path.rsplit(".", 1)[1]
        fresh = source(self.rng, suffix, count)[: count + self.rng.randrange(4)]
        old = lines[start : start + count]
        lines[start : start + count] = fresh
        return "\n".join(old), "\n".join(fresh)

    def create(self, lines: int) -> tuple[str, str]:
        """Write a new file; its path and text."""
        suffix = self.rng.choice(SUFFIXES)
        path = f"src/{self.rng.choice(DOMAINS)}/{name(self.rng)}{suffix}"
        self.files[path] = source(self.rng, suffix, lines)
        return path, "\n".join(self.files[path])

    def break_test(self) -> tuple[str, str]:
        """A test starts to fail: its name and its error line."""
        failure = (f"tests/test_{self.rng.choice(THINGS)}.py::test_{name(self.rng)}", output.error_line(self.rng))
        self.failing.append(failure)
        return failure

    def commit(self, subject: str) -> str:
        """Commit; the full hash."""
        commit = hexes(self.rng, 40)
        self.commits.append((commit, subject))
        return commit
