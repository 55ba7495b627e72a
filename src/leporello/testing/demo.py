"""A long coding session, folded again and again as it grows: `make demo`, or `python -m leporello.testing.demo`.

No key, no network, no model. The session is generated; the folding, the counts, the search and the bill are real.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import click

from leporello.engines.compressor import ContextCompressor
from leporello.messages import Message, is_instruction, role_of, text_of
from leporello.models import model_facts
from leporello.models.cost import cost
from leporello.recall.memory import MemoryRecall
from leporello.records import CompactionReport
from leporello.summary.fold import is_fold
from leporello.testing import checks
from leporello.testing.bill import Meter
from leporello.testing.sessions import Fact, FactKind, GeneratedSession, generate
from leporello.tokens import TokenCounter
from leporello.turns import open_group, validate

MODEL = "claude-sonnet-4-5"
WINDOW = 128_000
SECONDS_PER_CALL = 15.0
SEARCH_TOKENS = 300


@dataclass(slots=True)
class Play:
    """The session as an agent would live through it: append, call, fold when due."""

    session: GeneratedSession
    engine: ContextCompressor
    context: list[Message] = field(default_factory=list)
    folded: Meter = field(default_factory=lambda: Meter(MODEL))
    whole: Meter = field(default_factory=lambda: Meter(MODEL))

    def run(self) -> Iterator[tuple[int, CompactionReport]]:
        """Play the whole session; yields each compaction with the message after which it came."""
        system: Message = {"role": "system", "content": self.session.system}
        for index, message in enumerate(self.session.messages):
            if role_of(message) == "assistant":
                now = index * SECONDS_PER_CALL
                self.folded.call([system, *self.context], now)
                self.whole.call([system, *self.session.messages[:index]], now)
            self.context.append(message)
            self.engine.observe(message)
            if open_group(self.context) is None and self.engine.should_compress_preflight(self.context):
                self.context = self.engine.compress(self.context)
                assert self.engine.last_report is not None
                yield index + 1, self.engine.last_report
                self.engine.update_from_response({})


def main() -> None:
    """Generate, play, show."""
    started = time.perf_counter()
    session = generate(seed=2026, messages=1_000, tokens=400_000, languages=("en", "zh", "de", "es", "ja"))
    counter = TokenCounter.for_model(MODEL)
    total = counter.messages(session.messages)
    play = Play(session, ContextCompressor(WINDOW, counter=counter))
    click.echo(click.style("Leporello: one long coding session in a small window", bold=True))
    click.echo(
        f"{len(session.messages):,} messages, {total:,} tokens by the count of {MODEL}. The window is {WINDOW:,},\n"
        f"folding starts at {play.engine.threshold_tokens:,}. No model is called: the messages are all there is.\n"
    )
    _show_compactions(play.run())
    _show_survivors(session, play.context)
    _show_context(play.context, counter)
    _show_search(session, play.context)
    _show_bill(play)
    click.echo(f"\nDone in {time.perf_counter() - started:.1f} s. On a file of your own: leporello compress FILE")


def _heading(text: str) -> None:
    click.echo("\n" + click.style(text, bold=True))


def _show_compactions(done: Iterable[tuple[int, CompactionReport]]) -> None:
    click.echo("  after    tokens before -> after   saved   messages before -> after   took")
    for count, report in done:
        saved = 1 - report.tokens_after / report.tokens_before
        bar = "#" * round(report.tokens_after / report.tokens_before * 20)
        click.echo(
            f"  m{count:<6} {report.tokens_before:>10,} -> {report.tokens_after:<9,} {saved:>5.0%}   "
            f"{report.messages_before:>9} -> {report.messages_after:<9} {report.seconds:>9.2f} s   |{bar:<20}|"
        )


def _show_survivors(session: GeneratedSession, context: list[Message]) -> None:
    _heading("What the user ordered, decided and asked")
    text = checks.context_text(context)
    rules = [fact for fact in session.live_rules() if fact.plain]
    kept = [fact for fact in rules if checks.plain(fact.text) in text]
    click.echo(f"  rules in force   {len(kept)} of {len(rules)} word for word in the context, for example")
    for fact in kept[:4]:
        click.echo(f"                   m{fact.index + 1}: {fact.text}")
    for kind in (FactKind.DECISION, FactKind.IDENTIFIER, FactKind.ERROR):
        facts = [fact for fact in session.of(kind) if fact.alive()]
        held = sum(checks.plain(fact.text) in text for fact in facts)
        click.echo(f"  {kind.value + 's':<16} {held} of {len(facts)} in the context, all of them in the log")
    secrets = list(session.of(FactKind.SECRET))
    folds = "\n".join(text_of(message) for message in context if is_fold(message))
    leaked = sum(fact.text in folds for fact in secrets)
    click.echo(f"  secrets          {len(secrets)} passed through the session, {leaked} are in the summary")


def _show_context(context: list[Message], counter: TokenCounter) -> None:
    _heading("What the model sees now")
    found = checks.fold_in(context)
    if found is None:
        return
    place, fold = found
    parts = (
        ("head", [m for m in context[:place] if not is_instruction(m)]),
        ("fold", context[place : place + 1]),
        ("tail", context[place + 1 :]),
    )
    for name, messages in parts:
        click.echo(f"  {name}   {len(messages):>4} messages {counter.messages(messages):>9,} tokens")
    state = "valid for every provider" if not validate(context) else "NOT VALID"
    click.echo(f"  the list is {state}; the fold stands for {fold.span}. Its first lines:")
    body = text_of(context[place]).partition("\n---\n")[2]
    for line in body.splitlines()[:12]:
        click.echo(f"    {line[:110]}")


def _show_search(session: GeneratedSession, context: list[Message]) -> None:
    text = checks.context_text(context)
    lost = next((fact for fact in _asked_for(session) if checks.plain(fact.text) not in text), None)
    fact = lost or next(_asked_for(session))
    _heading("A fact that is not in the context any more" if lost else "A fact from the beginning")
    recall = MemoryRecall()
    for number, message in enumerate(session.messages, 1):
        recall.add(number, message)
    answer = recall.answer(fact.question, SEARCH_TOKENS)
    hit = next((line.strip() for line in answer.splitlines() if fact.text in line), "")
    click.echo(f"  asked   {fact.question}")
    click.echo(f"  {'found' if hit else 'NOT FOUND'}   {fact.text}, of m{fact.index + 1}, by one search of the log")
    click.echo(f"          {hit[:110]}")


def _asked_for(session: GeneratedSession) -> Iterator[Fact]:
    """Identifiers whose question names what it asks for."""
    return (fact for fact in session.of(FactKind.IDENTIFIER) if "'" in fact.question)


def _show_bill(play: Play) -> None:
    _heading(f"The bill for input by {MODEL}'s prices and cache rules, simulated call by call")
    facts = model_facts(MODEL)
    for name, meter in (("folded", play.folded), ("never folded", play.whole)):
        usage = meter.total
        share = usage.cache_read_tokens / max(1, usage.prompt_tokens)
        dollars = cost(usage, facts)
        price = f"${dollars:,.2f}" if dollars is not None else "no known price"
        click.echo(
            f"  {name:<13} {meter.calls:>4} calls, {usage.prompt_tokens / 1e6:>7.1f} M prompt tokens, "
            f"{share:.0%} read from the cache, {price}, largest request {meter.largest:,}"
        )


if __name__ == "__main__":
    main()
