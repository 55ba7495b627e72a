"""Stored records, reports and errors in one form each: as JSON for programs, as one line for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from msgspec import structs

from leporello.errors import LeporelloError
from leporello.events import CompactionReport, Outcome, runs
from leporello.messages import Message, PartKind, calls_of, parts_of, result_id, role_of
from leporello.present.text import duration, iso, percent, plural, short, words_of
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import CallFailed
from leporello.redact import redact
from leporello.redact.messages import masked
from leporello.store.records import Attempt, Hit, Insights, SessionRecord, StoredFold, StoredMessage, UsageTotals, View
from leporello.usage import money

ROUTINE = (Outcome.NOTHING_TO_DO, Outcome.NO_GAIN)
"""Automatic attempts that found nothing to do: not worth telling a person."""
_REPEATED = 2  # from this many compactions on, the user is told how many there were
_UNKNOWN_MODEL = ("model_not_found", "not_found_error", "model_not_supported", "invalid_model")

# -- JSON


def message_json(stored: StoredMessage) -> dict[str, Any]:
    """A message as it was appended, for the command line."""
    return {"id": stored.id, "at": iso(stored.created_at), "message": stored.message}


def api_message(stored: StoredMessage) -> dict[str, Any]:
    """The same over HTTP, where times are epoch seconds."""
    return {"id": stored.id, "created_at": stored.created_at, "message": stored.message}


def totals_json(totals: UsageTotals) -> dict[str, Any]:
    return {
        "calls": totals.calls,
        **asdict(totals.usage),
        "prompt_tokens": totals.usage.prompt_tokens,
        "cache_hit_rate": round(totals.cache_hit_rate, 4),
        "cost": round(totals.cost, 9),
        "unpriced_calls": totals.unpriced_calls,
    }


def fold_json(fold: StoredFold) -> dict[str, Any]:
    return {
        "id": fold.id,
        "covered": str(fold.covered),
        "generation": fold.generation,
        "children": list(fold.children),
        "text": fold.text,
    }


def session_json(session: SessionRecord, totals: UsageTotals) -> dict[str, Any]:
    return {
        "id": session.id,
        "parent": session.parent_session_id,
        "started_at": iso(session.started_at),
        "ended_at": None if session.ended_at is None else iso(session.ended_at),
        "end_reason": session.end_reason,
        "first_message": f"m{session.first}",
        "model": session.metadata.model,
        "usage": totals_json(totals),
    }


def compaction_json(report: CompactionReport) -> dict[str, Any]:
    """What every JSON form of a compaction says about it."""
    return {
        "outcome": report.outcome.value,
        "reason": report.reason,
        "covered": None if report.covered is None else str(report.covered),
        "tokens_before": report.tokens_before,
        "tokens_after": report.tokens_after,
    }


def attempt_json(attempt: Attempt) -> dict[str, Any]:
    report = attempt.report
    return {
        "at": iso(attempt.at),
        **compaction_json(report),
        "trigger": report.trigger,
        "engine": report.engine,
        "summariser": report.summariser,
        "generation": attempt.generation,
        "cost": report.cost,
        "seconds": report.seconds,
    }


def hit_json(hit: Hit) -> dict[str, Any]:
    return {
        "conversation": hit.conversation,
        "id": hit.id,
        "role": hit.role,
        "tool": hit.tool,
        "at": iso(hit.created_at),
        "score": round(hit.score, 4),
        "snippet": hit.snippet,
        "text": hit.text,
    }


def insights_json(insights: Insights) -> dict[str, Any]:
    groups = {
        "by_day": insights.by_day,
        "by_model": insights.by_model,
        "by_platform": insights.by_platform,
        "by_purpose": insights.by_purpose,
    }
    return {
        "conversations": insights.conversations,
        "sessions": insights.sessions,
        "messages": insights.messages,
        "totals": totals_json(insights.totals),
        **{name: {key: totals_json(totals) for key, totals in group.items()} for name, group in groups.items()},
        "by_tool": {name: structs.asdict(use) for name, use in insights.by_tool.items()},
        "compactions": structs.asdict(insights.compactions),
    }


# -- lines


def cost_text(totals: UsageTotals) -> str:
    """`$0.25`, `$0.25+` when the price of some calls is not known, `unknown` when none is."""
    if totals.calls <= totals.unpriced_calls:
        return "unknown"
    return money(totals.cost) + ("+" if totals.unpriced_calls else "")


def usage_line(totals: UsageTotals) -> str:
    if not totals.calls:
        return "no calls"
    parts = [
        plural(totals.calls, "call"),
        f"{totals.usage.prompt_tokens:,} prompt tokens ({percent(totals.cache_hit_rate)} from the cache)",
        f"{totals.usage.output_tokens:,} output tokens",
    ]
    if totals.calls > totals.unpriced_calls:
        parts.append(money(totals.cost))
    if totals.unpriced_calls:
        parts.append(f"{plural(totals.unpriced_calls, 'call')} without a known price")
    return ", ".join(parts)


def message_line(message: Message, columns: int) -> str:
    """Role and beginning of a message in one safe line, secrets masked."""
    message = masked(message)
    role = short(role_of(message) or "?", 20)
    pieces = [part.text or f"[{part.kind.value}]" for part in parts_of(message) if part.kind is not PartKind.THINKING]
    pieces += [f"{call.name}({call.arguments})" for call in calls_of(message)]
    if role_of(message) in ("tool", "function"):
        role += f" {short(str(message.get('name') or result_id(message)), 40)}"
    return f"{role}: {words_of(redact(' '.join(pieces)), columns)}"


def compaction_line(report: CompactionReport, compactions: int = 0) -> str:
    """One line about an attempt; from the second compaction of a conversation on, it says how many there were."""
    if report.outcome is Outcome.COMMITTED:
        saved = 1 - report.tokens_after / max(1, report.tokens_before)
        line = (
            f"Folded {report.covered}: {report.tokens_before:,} → {report.tokens_after:,} tokens "
            f"({percent(saved)} less) in {duration(report.seconds)}, {report.summariser or 'model-free'}"
        )
        if compactions >= _REPEATED:
            line += f"; folded {compactions} times so far: /search reaches all of it, /new starts a new conversation"
        return "\n".join([" ".join(filter(None, (f"{line}.", pointers_line(report)))), *report.warnings])
    words = {
        Outcome.NOTHING_TO_DO: "Nothing to fold yet.",
        Outcome.NO_GAIN: "Not folded: it would not have helped.",
        Outcome.BLOCKED: "Folding is not possible now.",
        Outcome.FAILED: "Folding failed; nothing was changed.",
    }
    return " ".join([words[report.outcome], report.reason, *report.warnings]).strip()


def pointers_line(report: CompactionReport) -> str:
    """What a compaction shortened beside the span that it folded; empty where nothing was."""
    if not report.pruned:
        return ""
    is_shown = "is shown as a pointer" if report.pruned == 1 else "are shown as pointers"
    return f"{plural(report.pruned, 'long tool output')} behind it {is_shown}."


def undo_line(before: View, after: View) -> str:
    """What an undo brought back, and which folds stay."""
    shown = {line.number: line.shortened for line in before.lines if line.number is not None}
    back = runs(line.number for line in after.lines if line.number is not None and line.number not in shown)
    whole = sum(not line.shortened and shown.get(line.number or 0, False) for line in after.lines)
    folds = [line.fold for line in after.lines if line.fold]
    parts = []
    if back:
        one = len(back) == 1 and back[0].first == back[0].last
        parts.append(f"{', '.join(map(str, back))} {'is' if one else 'are'} shown again")
    if whole:
        parts.append(f"{plural(whole, 'shortened message')} {'is' if whole == 1 else 'are'} whole again")
    stay = (
        f"{plural(len(folds), 'earlier fold')} {'stays' if len(folds) == 1 else 'stay'}" if folds else "no fold is left"
    )
    return f"The last compaction is undone: {'; '.join([*parts, stay])}."


def error_hint(error: LeporelloError, model: str, provider: str, address: str = "", *, in_chat: bool = True) -> str:
    """The sentence and the remedy; other errors are given as they are. Outside a chat there is no message to keep."""
    if not isinstance(error, CallFailed):
        return str(error)
    verdict = error.verdict
    said = f" It said: {verdict.message}" if verdict.message else ""
    where = f"{provider} at {address}" if address else provider
    again = "Your message is kept: write `go on` to send it again." if in_chat else "Nothing was saved: try again."
    setting = " (model.base_url)" if in_chat else ""
    how = ": /model NAME" if in_chat else ""
    another = "Use another one: /model NAME." if in_chat else "Use another one: --model NAME."
    if verdict.kind is ErrorKind.AUTH:
        return f"{where} refused the key. Enter another one with: leporello setup.{said}"
    if verdict.cause == "connection":
        return f"There is no connection to {where}. Check the network and the address{setting}. {again}"
    if verdict.cause == "timeout":
        return f"{where} did not answer in time. {again}"
    if verdict.kind is ErrorKind.QUOTA:
        return f"The account at {where} has no credit left. Add credit, or use another model{how}.{said}"
    if verdict.kind is ErrorKind.RATE_LIMIT:
        return f"Requests to {where} come too often. Wait a little. {again}"
    if verdict.status == 404 or verdict.code in _UNKNOWN_MODEL:
        return f"{where} does not know the model {model}. {another}{said}"
    if verdict.kind is ErrorKind.TRANSIENT:
        return f"{where} is temporarily failing. {again}{said}"
    return str(error)
