"""Question banks: what a session's reader should still know, each question with the words that prove it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from leporello.decoding import decode_text
from leporello.errors import InputError
from leporello.messages import parse_json

KINDS = ("rule", "decision", "identifier", "error", "outcome", "path", "order")


@dataclass(frozen=True, slots=True)
class Question:
    """One question; `gold` is text of the session, word for word."""

    id: str
    kind: str
    question: str
    gold: str
    line: int = 0
    position: float = 0.0


@dataclass(frozen=True, slots=True)
class Bank:
    """The questions about one session; `session` is its file, relative to the sessions folder."""

    session: str
    questions: tuple[Question, ...]
    path: Path | None = None

    def as_dict(self) -> dict[str, Any]:
        """The form it has on disk."""
        return {"session": self.session, "questions": [asdict(question) for question in self.questions]}


def load_bank(path: str | Path) -> Bank:
    """Read one bank file."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror or error}", str(path)) from error
    value = parse_json(decode_text(data, str(path)).text)
    if not isinstance(value, dict) or not isinstance(value.get("questions"), list):
        raise InputError('is not a question bank: {"session", "questions": [...]} is expected', str(path))
    questions = tuple(_question(raw, number, path) for number, raw in enumerate(value["questions"], 1))
    if not questions:
        raise InputError("has no questions", str(path))
    return Bank(str(value.get("session") or ""), questions, path)


def _question(raw: Any, number: int, path: Path) -> Question:
    where = f"{path}: question {number}"
    if not isinstance(raw, dict):
        raise InputError("is not an object", where)
    for key in ("question", "gold"):
        if not isinstance(raw.get(key), str) or not raw[key].strip():
            raise InputError(f"has no {key}", where)
    line, position = raw.get("line"), raw.get("position")
    return Question(
        id=str(raw.get("id") or f"q{number:02}"),
        kind=str(raw.get("kind") or "other"),
        question=raw["question"],
        gold=raw["gold"],
        line=line if isinstance(line, int) else 0,
        position=float(position) if isinstance(position, int | float) else 0.0,
    )


def session_file(bank: Bank, folder: Path) -> Path:
    """The session a bank is about: under the folder as the bank names it, or by its file name alone."""
    candidates = [folder / bank.session, folder / Path(bank.session).name]
    if bank.path is not None:
        candidates.append(bank.path.parent / bank.session)
    for candidate in candidates:
        if bank.session and candidate.is_file():
            return candidate
    raise InputError(f"its session {bank.session!r} is not under {folder}", str(bank.path or "bank"))
