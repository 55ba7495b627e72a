"""What a chat says about itself: the status line, a summary when it is resumed, and what to do about an error."""

from __future__ import annotations

from dataclasses import dataclass

from leporello.conversation import Conversation
from leporello.errors import LeporelloError
from leporello.messages import calls_of, role_of, text_of
from leporello.present.text import one_line
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import CallFailed
from leporello.redact import redact

GAUGE = 10
_EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True, slots=True)
class ChatStatus:
    """What the line says."""

    model: str
    used: int = 0
    window: int = 0
    cost: float | None = None
    hit_rate: float | None = None
    folds: int = 0
    warning: str = ""
    """Something that is wrong and stays so; it comes right behind the model."""
    assumed: bool = False
    """Whether the window is a guess."""
    note: str = ""
    """Stands in for the numbers while there are none."""

    @property
    def share(self) -> float:
        """How full the window is, 0 to 1."""
        return min(1.0, self.used / self.window) if self.window else 0.0


def short_count(tokens: int) -> str:
    """`812`, `12.3K`, `1.05M`."""
    if tokens < 1_000:
        return str(tokens)
    if tokens < 999_950:
        return f"{tokens / 1_000:.1f}K".replace(".0K", "K")
    return f"{tokens / 1_000_000:.2f}M".replace(".00M", "M")


def gauge(share: float, width: int = GAUGE) -> str:
    """A bar in eighths of a column; whatever is used shows at least a sliver."""
    eighths = round(min(1.0, max(0.0, share)) * width * 8)
    if share > 0:
        eighths = max(1, eighths)
    full, part = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[part] if part else "")).ljust(width, "░")


def parts(status: ChatStatus) -> list[str]:
    """The line in pieces, the most important first."""
    pieces = [status.model or "no model"]
    if status.note:
        return [*pieces, status.note]
    if status.warning:
        pieces.append(f"! {status.warning}")
    if status.window:
        used = f"{short_count(status.used)}/{short_count(status.window)}{' assumed' if status.assumed else ''}"
        pieces.append(f"{gauge(status.share)} {status.share:.0%} {used}")
    if status.cost is not None:
        pieces.append(f"${status.cost:.4f}" if status.cost < 1 else f"${status.cost:.2f}")
    if status.hit_rate is not None:
        pieces.append(f"cache {status.hit_rate:.0%}")
    if status.folds:
        pieces.append(f"folded {status.folds}×")
    return pieces


def status_line(status: ChatStatus, width: int) -> str:
    """As many pieces as fit; the model's name gives way first, then pieces from the right."""
    pieces = parts(status)
    line = " · ".join(pieces)
    if len(line) > width and len(pieces[0]) > 12:
        spare = max(12, len(pieces[0]) - (len(line) - width))
        pieces[0] = pieces[0][: spare - 1] + "…" if spare < len(pieces[0]) else pieces[0]
    while len(pieces) > 1 and len(" · ".join(pieces)) > width:
        pieces.pop()
    if len(pieces) == 1 and status.window:
        # Too narrow for the gauge: how full the window is still stands there in figures.
        figure = f" {status.share:.0%}"
        return pieces[0][: max(0, width - len(figure))] + figure
    return " · ".join(pieces)[:width]


SHOWN_ASK = 200
SHOWN_ANSWER = 1_200


@dataclass(frozen=True, slots=True)
class ResumeSummary:
    """The newest request, its answer when there is one, and how the conversation stands."""

    ask: str
    answer: str
    unanswered: bool
    line: str


def resume_summary(talk: Conversation) -> ResumeSummary:
    """Read from the newest messages only."""
    lines = talk.view.lines
    ask = ""
    answer = ""
    for line in reversed(lines):
        if line.fold:
            continue
        role = role_of(line.message)
        if role == "assistant" and not answer and not ask and not calls_of(line.message):
            answer = text_of(line.message).strip()
        elif role == "user":
            ask = text_of(line.message)
            break
    count = talk.view.last
    folded = f", folded {talk.compressions}×" if talk.compressions else ""
    return ResumeSummary(
        _cut(one_line(redact(ask)), SHOWN_ASK),
        _cut(redact(answer), SHOWN_ANSWER),
        bool(ask) and not answer,
        f"{talk.id} · {count:,} {'message' if count == 1 else 'messages'}{folded}",
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rstrip() + " …"


KEPT = "Your message is kept: say `go on` to send it again."
_UNKNOWN_MODEL = ("model_not_found", "not_found_error", "model_not_supported", "invalid_model")


def error_hint(error: LeporelloError, model: str, provider: str, address: str = "", *, in_chat: bool = True) -> str:
    """The sentence and the remedy; other errors speak for themselves. Outside a chat there is no message to keep."""
    if not isinstance(error, CallFailed):
        return str(error)
    verdict = error.verdict
    said = f" It said: {verdict.message}" if verdict.message else ""
    where = f"{provider} at {address}" if address else provider
    again = KEPT if in_chat else "Nothing was kept: try again."
    setting = " (model.base_url)" if in_chat else ""
    how = ": /model NAME" if in_chat else ""
    another = "Take another one: /model NAME." if in_chat else "Give another one: --model NAME."
    if verdict.kind is ErrorKind.AUTH:
        return f"{where} refused the key. Enter another one with: leporello setup.{said}"
    if verdict.cause == "connection":
        return f"There is no connection to {where}. Check the network and the address{setting}. {again}"
    if verdict.cause == "timeout":
        return f"{where} did not answer in time. {again}"
    if verdict.kind is ErrorKind.QUOTA:
        return f"The account at {where} has no credit left. Top it up, or take another model{how}.{said}"
    if verdict.kind is ErrorKind.RATE_LIMIT:
        return f"{where} is being asked too often. Wait a little. {again}"
    if verdict.status == 404 or verdict.code in _UNKNOWN_MODEL:
        return f"{where} does not know the model {model}. {another}{said}"
    if verdict.kind is ErrorKind.TRANSIENT:
        return f"{where} failed for the moment. {again}{said}"
    return str(error)
