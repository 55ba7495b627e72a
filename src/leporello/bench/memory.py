"""Public memory exams, LoCoMo and BEAM: is the evidence for a question still there?

Both ask about long conversations and name the turns that an answer rests on. The evidence is, in each of those turns,
the sentence that shares most content words with question and answer. No model is needed to score it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leporello.bench.bank import WordIndex, read_json_file, sentences_of, texts_of, words_of
from leporello.bench.exam import SearchFactory, SessionScore, replay, search_texts, share
from leporello.engines.base import ContextEngine
from leporello.errors import InputError
from leporello.lazy_regex import lazy_regex
from leporello.messages import Message
from leporello.text_features.words import STOP_WORDS

_OTHER_SHAPE = (KeyError, TypeError, AttributeError, ValueError)
"""What reading a file raises that has other fields than the published ones."""


@dataclass(frozen=True, slots=True)
class MemoryQuestion:
    """A question, and the sentences of the conversation that its answer rests on."""

    kind: str
    question: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryAnswer:
    """For each sentence of a question's evidence: whether it is in the context, and whether the search brings it."""

    question: MemoryQuestion
    closed: tuple[bool, ...]
    search: tuple[bool, ...]

    @property
    def recovered(self) -> tuple[bool, ...]:
        """Whether each sentence is in one or the other."""
        return tuple(map(max, self.closed, self.search))


@dataclass(frozen=True, slots=True)
class MemoryExam:
    id: str
    session: str
    messages: tuple[Message, ...]
    questions: tuple[MemoryQuestion, ...]

    def sit(self, engine: ContextEngine, make_search: SearchFactory) -> SessionScore[MemoryAnswer]:
        """Every sentence of evidence, in the final context and in what one search call brings."""
        final = replay(self.messages, engine)
        context = WordIndex(texts_of(final.messages))
        search = make_search(self.messages)
        answers = []
        for question in self.questions:
            brought = WordIndex(search_texts(search, question.question))
            closed = tuple(map(context.has, question.evidence))
            answers.append(MemoryAnswer(question, closed, tuple(map(brought.has, question.evidence))))
        return final.score(self.session, tuple(answers))


def memory_rates(answers: Sequence[MemoryAnswer]) -> dict[str, Any]:
    """Shares of sentences; `all_found` is the share of questions with several that one search call answers whole."""
    several = [answer for answer in answers if len(answer.search) > 1]
    return {
        "questions": len(answers),
        "sentences": sum(len(answer.closed) for answer in answers),
        "closed": share(found for answer in answers for found in answer.closed),
        "search": share(found for answer in answers for found in answer.search),
        "recovered": share(found for answer in answers for found in answer.recovered),
        "with_several": len(several),
        "all_found": share(all(answer.search) for answer in several),
    }


def memory_misses(answers: Sequence[MemoryAnswer]) -> list[dict[str, Any]]:
    """Every sentence that is not in the context, and whether the search brings it."""
    return [
        {"kind": answer.question.kind, "recovered": brought, "question": answer.question.question, "gold": sentence}
        for answer in answers
        for sentence, closed, brought in zip(answer.question.evidence, answer.closed, answer.search, strict=True)
        if not closed
    ]


def evidence_in(text: str, hint: str) -> str:
    """The sentence of a turn that shares most content words with a hint; the longest of several. May be empty."""
    wanted = _content_words(hint)
    words = {sentence: _content_words(sentence) for sentence in sentences_of(text)}
    return max(words, key=lambda sentence: (len(wanted & words[sentence]), len(words[sentence])), default="")


def _content_words(text: str) -> set[str]:
    return set(words_of(text)) - STOP_WORDS


def _question(kind: str, asked: str, hint: str, turns: Iterable[str]) -> MemoryQuestion | None:
    """None when no turn of its evidence is known: there is nothing to look for."""
    evidence = tuple(filter(None, (evidence_in(turn, hint) for turn in turns)))
    return MemoryQuestion(kind, asked, evidence) if evidence else None


def _exam(
    name: str, session: str, messages: Iterable[Message], questions: Iterable[MemoryQuestion | None]
) -> MemoryExam:
    answerable = tuple(question for question in questions if question is not None)
    if not answerable:
        raise ValueError("no question has evidence")
    return MemoryExam(name, session, tuple(messages), answerable)


# -- LoCoMo: one file for each conversation of two people, or one with all of them

_LOCOMO_KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
"""Category 5 is left out: its questions have no answer in the conversation."""
_TURN_ID = lazy_regex(r"D\d+:\d+")


def load_locomo(path: Path) -> list[MemoryExam]:
    """The conversations of a LoCoMo file, or of every JSON file in a folder."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    return [exam for file in files for exam in _locomo_file(file)]


def _locomo_file(path: Path) -> Iterator[MemoryExam]:
    value = read_json_file(path)
    for sample in value if isinstance(value, list) else [value]:
        try:
            yield _locomo(sample, str(sample.get("sample_id") or path.stem))
        except _OTHER_SHAPE as error:
            fields = '"session_1", ... and "qa" are expected as published'
            raise InputError(f"is not a LoCoMo conversation: {fields} ({error!r})", str(path)) from None


def _locomo(sample: Mapping[str, Any], name: str) -> MemoryExam:
    talk = sample.get("conversation", sample)
    messages: list[Message] = []
    turns: dict[str, str] = {}
    number = 1
    while f"session_{number}" in talk:
        opening = f"[{talk.get(f'session_{number}_date_time', '')}] "
        for turn in talk[f"session_{number}"]:
            turns[turn["dia_id"]] = turn["text"]
            picture = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            role = "user" if turn["speaker"] == talk["speaker_a"] else "assistant"
            messages.append({"role": role, "content": f"{opening}{turn['speaker']}: {turn['text']}{picture}"})
            opening = ""
        number += 1
    asked = (_locomo_question(raw, turns) for raw in sample["qa"])
    return _exam(name, f"locomo-{name}", messages, asked)


def _locomo_question(raw: Mapping[str, Any], turns: Mapping[str, str]) -> MemoryQuestion | None:
    kind = _LOCOMO_KINDS.get(raw["category"])
    if kind is None:
        return None
    # Some entries name several turns in one text.
    ids = dict.fromkeys(_TURN_ID.findall(" ".join(raw.get("evidence", []))))
    hint = f"{raw['question']} {raw.get('answer', '')}"
    return _question(kind, raw["question"], hint, (turns[one] for one in ids if one in turns))


# -- BEAM: a folder for each conversation with an assistant

_BEAM_LEFT_OUT = ("abstention", "summarization")  # their answers rest on no sentence, or on all of them
_BEAM_HINTS = (
    "answer",
    "ideal_answer",
    "question",
    "instruction_being_tested",
    "preference_being_tested",
    "key_facts_tested",
)
_PLAN_MARK = lazy_regex(r"->->\s?[\d,.]{1,40}\s{0,9}\Z")  # the generator's own note behind a user's message
_QUESTIONS = Path("probing_questions", "probing_questions.json")


def load_beam(path: Path) -> list[MemoryExam]:
    """The conversation of a BEAM `chat.json` or its folder, or of every folder below one."""
    folder = path.parent if path.is_file() else path
    chats = [folder] if (folder / "chat.json").is_file() else [file.parent for file in folder.glob("*/chat.json")]
    return [_beam(chat) for chat in sorted(chats, key=lambda chat: (len(chat.name), chat.name))]


def _beam(folder: Path) -> MemoryExam:
    try:
        return _beam_exam(folder.name, read_json_file(folder / "chat.json"), read_json_file(folder / _QUESTIONS))
    except _OTHER_SHAPE as error:
        files = f"chat.json and {_QUESTIONS} are expected as published"
        raise InputError(f"is not a BEAM conversation: {files} ({error!r})", str(folder)) from None


def _beam_exam(name: str, batches: Any, asked: Any) -> MemoryExam:
    messages: list[Message] = []
    turns: dict[int, str] = {}
    for batch in batches:
        said = [message for turn in batch["turns"] for message in turn]
        date = next((message["time_anchor"] for message in said if message.get("time_anchor")), "")
        opening = f"[{date}] " if date else ""
        for message in said:
            turns[message["id"]] = text = _PLAN_MARK.sub("", message["content"]).rstrip()
            messages.append({"role": message["role"], "content": opening + text})
            opening = ""
    questions = (
        _beam_question(kind, raw, turns) for kind, group in asked.items() if kind not in _BEAM_LEFT_OUT for raw in group
    )
    return _exam(name, f"beam-{name}", messages, questions)


def _beam_question(kind: str, raw: Mapping[str, Any], turns: Mapping[int, str]) -> MemoryQuestion | None:
    ids = dict.fromkeys(_numbers_in(raw.get("source_chat_ids")))
    hint = " ".join(str(raw.get(key, "")) for key in _BEAM_HINTS)
    return _question(kind, raw["question"], hint, (turns[one] for one in ids if one in turns))


def _numbers_in(value: Any) -> Iterator[int]:
    """The numbers of a value that is a number, a list of them, or lists by name."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _numbers_in(item)
