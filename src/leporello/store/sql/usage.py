"""Usage counters: one row per session, day, model and purpose. Rows are only added to; reports are sums of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from leporello.store.records import (
    CompactionTotals,
    DayUse,
    Insights,
    InsightsQuery,
    ModelCall,
    Reservation,
    SessionUsage,
    ToolUse,
    UsageTotals,
)
from leporello.store.sql.database import (
    KEY_OF_NAME,
    STORE_ITSELF,
    Conditions,
    Database,
    Locked,
    Row,
    StorePart,
    Transaction,
    integer,
    key_of,
    locate,
    unknown,
)
from leporello.store.sql.encoding import dollars, millis, name_key, nanos, pack, pack_key, seconds, unpack
from leporello.store.sql.schema import COLUMNS, insert
from leporello.usage import CanonicalUsage

MILLIS_PER_DAY = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_COUNTERS = COLUMNS["usage"][4:]
_SUM_UP = " ON CONFLICT (conversation, ordinal, day, model, purpose) DO UPDATE SET " + ", ".join(
    f"{name} = usage.{name} + excluded.{name}" for name in _COUNTERS
)
_ADD = insert("usage", _SUM_UP)
_ADD_TO_TIP = (
    f"INSERT INTO usage (conversation, {', '.join(COLUMNS['usage'])}) "  # noqa: S608 - constants
    f"SELECT c.conversation, c.tip{', ?' * (len(COLUMNS['usage']) - 1)} FROM conversations c "
    f"WHERE c.conversation = {KEY_OF_NAME}"
)
_SUMS = ", ".join(f"COALESCE(SUM(u.{name}), 0)" for name in _COUNTERS)
_USED = "FROM usage u JOIN sessions s ON s.conversation = u.conversation AND s.ordinal = u.ordinal"
_ASIDE = f"(SELECT count FROM state WHERE conversation = {STORE_ITSELF} AND key = ?)"  # noqa: S608 - constants
_OF_DAY = (
    f"SELECT used.*, held.*, {_ASIDE}, {_ASIDE} "  # noqa: S608 - constants
    f"FROM (SELECT {_SUMS} {_USED} WHERE u.day >= ? AND s.owner = ?) used, "
    "(SELECT COALESCE(SUM(CASE WHEN expires > ? THEN tokens END), 0), "
    "COALESCE(SUM(CASE WHEN expires > ? THEN cost_nanos END), 0), "
    "COALESCE(SUM(CASE WHEN expires > ? OR id = '' THEN 0 ELSE 1 END), 0) FROM reservations WHERE owner = ?) held"
)
_ALONE = (
    "INSERT INTO reservations (owner, id, tokens, cost_nanos, expires) VALUES (?, '', 0, 0, 0) "
    "ON CONFLICT (owner, id) DO UPDATE SET expires = 0"
)
_CLEAR = (
    "DELETE FROM reservations WHERE (owner, id) IN "
    "(SELECT owner, id FROM reservations WHERE owner = ? AND expires <= ? AND id <> ''"
)


class Usage(StorePart):
    """Counters that only grow."""

    def __init__(self, db: Database, catch_up: Callable[[], None]) -> None:
        super().__init__(db)
        self._catch_up = catch_up

    def add(self, conversation: str, call: ModelCall) -> None:
        """Add one call to the counters of the conversation's newest session, atomically."""
        values = _counted(call, self._moment(call.at))
        with self._db.write() as tx:
            if not tx.run(f"{_ADD_TO_TIP}{self._db.for_update}{_SUM_UP}", *values, name_key(conversation)):
                raise unknown(conversation)

    def session_totals(self, session: str) -> UsageTotals:
        with self._db.read() as tx:
            row = tx.row(
                f"SELECT {_SUMS} FROM usage u WHERE u.conversation = ? AND u.ordinal = ?",  # noqa: S608 - constants
                *locate(tx, session),
            )
        return _totals(row)

    def totals(self, conversation: str) -> UsageTotals:
        """What the whole chain used."""
        with self._db.read() as tx:
            row = tx.row(f"SELECT {_SUMS} FROM usage u WHERE u.conversation = ?", key_of(tx, conversation))  # noqa: S608
        return _totals(row)

    def of_day(self, owner: str, since: float, beside: tuple[str, str]) -> DayUse:
        """What an owner used since the day of a moment began.

        `beside`: keys of the store's own state that count tokens, and billionths of a dollar, of no conversation.
        """
        with self._db.read() as tx:
            return self._of_day(tx, owner, since, beside)[0]

    def reserve(
        self,
        wanted: Reservation,
        since: float,
        beside: tuple[str, str],
        seconds: float,
        admit: Callable[[DayUse], None],
    ) -> None:
        """Reserve for so many seconds, unless `admit` raises at what was used and reserved before.

        Of one owner nobody else reserves meanwhile, in any process. What counts what was used must have done so before
        it releases its reservation: then nothing is missed between the two.
        """
        owner = pack_key(wanted.owner)
        with self._db.write(durable=False) as tx:
            tx.run(_ALONE, owner)
            use, outdated = self._of_day(tx, wanted.owner, since, beside)
            admit(use)
            now = self._db.now()
            if outdated:
                # What another worker is just renewing stays: waiting for it could close a circle.
                tx.run(f"{_CLEAR}{self._db.free_for_update})", owner, now)
            tx.run(
                "INSERT INTO reservations (owner, id, tokens, cost_nanos, expires) VALUES (?, ?, ?, ?, ?)",
                *(owner, wanted.id, wanted.tokens, nanos(wanted.cost), now + millis(seconds)),
            )

    def renew_reservations(self, held: Collection[Reservation], seconds: float) -> None:
        """Hold them for so many seconds from now on, also those that had ended while nobody could reach the store."""
        with self._db.write(durable=False) as tx:
            expires = self._db.now() + millis(seconds)
            for kept in sorted(held, key=lambda kept: (kept.owner, kept.id)):
                tx.run(
                    "INSERT INTO reservations (owner, id, tokens, cost_nanos, expires) VALUES (?, ?, ?, ?, ?) "
                    "ON CONFLICT (owner, id) DO UPDATE SET expires = excluded.expires",
                    *(pack_key(kept.owner), kept.id, kept.tokens, nanos(kept.cost), expires),
                )

    def release(self, held: Reservation) -> None:
        """Give a reservation back; nothing happens when it has ended by itself."""
        with self._db.write(durable=False) as tx:
            tx.run("DELETE FROM reservations WHERE owner = ? AND id = ?", pack_key(held.owner), held.id)

    def _of_day(self, tx: Transaction, owner: str, since: float, beside: tuple[str, str]) -> tuple[DayUse, bool]:
        """What an owner used and has reserved, and whether reservations that have ended are still there."""
        now = self._db.now()
        row = tx.row(
            _OF_DAY,
            *map(pack, beside),
            *(millis(since) // MILLIS_PER_DAY, pack(owner)),
            *(now, now, now, pack_key(owner)),
        )
        assert row is not None, "sums are always there"
        counted = len(_COUNTERS)
        used = _totals(row[:counted])
        tokens, cost, outdated, *aside = (int(number or 0) for number in row[counted:])
        use = DayUse(used.usage.total_tokens + aside[0], used.cost + dollars(aside[1]), tokens, dollars(cost))
        return use, outdated > 0

    def by_session(self, conversation: str) -> list[SessionUsage]:
        """What each session of the chain used, oldest first; sessions without a call are left out."""
        rows = self._rows(
            conversation,
            f"SELECT s.ordinal, s.started, {_SUMS} {_USED} WHERE u.conversation = ? "
            "GROUP BY s.ordinal, s.started ORDER BY s.ordinal",
        )
        return [SessionUsage(row[0], seconds(row[1]), _totals(row[2:])) for row in rows]

    def insights(self, query: InsightsQuery | None = None) -> Insights:
        """Totals by day, model, platform, purpose and tool; compactions."""
        chosen = query or InsightsQuery()
        if chosen.catch_up:
            self._catch_up()
        with self._db.read() as tx:
            key = None if chosen.conversation is None else key_of(tx, chosen.conversation)
            return _Collector(tx, chosen, key).insights()


def add_usage(tx: Transaction, locked: Locked, call: ModelCall, moment: int) -> None:
    """Add a call that was made at this moment to the counters of the newest session."""
    tx.run(_ADD, locked.key, locked.tip, *_counted(call, moment))


def _counted(call: ModelCall, moment: int) -> tuple[Any, ...]:
    """The columns of a row of `usage` from the day on."""
    usage = call.usage
    return (
        *(moment // MILLIS_PER_DAY, pack_key(call.model), pack_key(call.purpose), 1),
        *(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens),
        usage.reasoning_tokens,
        *((0, 1) if call.cost is None else (nanos(call.cost), 0)),
    )


class _Collector:
    """The queries of one `insights`, all under the same conditions."""

    def __init__(self, tx: Transaction, query: InsightsQuery, key: int | None) -> None:
        self._tx = tx
        self._query = query
        self._key = key

    def insights(self) -> Insights:
        used = self._where("u.day")
        totals = _totals(self._tx.row(f"SELECT {_SUMS} {_USED}{used[0]}", *used[1]))
        active = self._where("a.day")
        counts = self._tx.row(
            "SELECT count(DISTINCT a.conversation), COALESCE(SUM(a.messages), 0) FROM activity a "  # noqa: S608 - constants
            "JOIN conversations c ON c.conversation = a.conversation "
            f"JOIN sessions s ON s.conversation = c.conversation AND s.ordinal = c.tip{active[0]}",
            *active[1],
        ) or (0, 0)
        started = self._where("s.started", scale=1)
        sessions = integer(self._tx, f"SELECT count(*) FROM sessions s{started[0]}", *started[1])  # noqa: S608
        return Insights(
            totals=totals,
            conversations=counts[0],
            sessions=sessions,
            messages=int(counts[1]),
            by_day=self._grouped("u.day", _day_text),
            by_model=self._grouped("u.model", unpack),
            by_platform=self._grouped("s.platform", unpack),
            by_purpose=self._grouped("u.purpose", unpack),
            by_tool=self._tools(),
            compactions=self._compactions(),
        )

    def _grouped(self, column: str, name: Callable[[Any], str]) -> dict[str, UsageTotals]:
        condition, params = self._where("u.day")
        rows = self._tx.rows(
            f"SELECT {column}, {_SUMS} {_USED}{condition} GROUP BY {column} ORDER BY {column}", *params
        )
        return {name(row[0]): _totals(row[1:]) for row in rows}

    def _tools(self) -> Mapping[str, ToolUse]:
        condition, params = self._where("t.day")
        rows = self._tx.rows(
            "SELECT t.tool, SUM(t.calls), SUM(t.results), SUM(t.result_characters) FROM tools t "  # noqa: S608 - constants
            "JOIN conversations c ON c.conversation = t.conversation "
            f"JOIN sessions s ON s.conversation = c.conversation AND s.ordinal = c.tip{condition} "
            "GROUP BY t.tool ORDER BY t.tool",
            *params,
        )
        return {unpack(tool): ToolUse(int(calls), int(results), int(size)) for tool, calls, results, size in rows}

    def _compactions(self) -> CompactionTotals:
        condition, params = self._where("a.created", scale=1)
        joined = "JOIN sessions s ON s.conversation = a.conversation AND s.ordinal = a.ordinal"
        outcomes = self._tx.rows(
            f"SELECT a.outcome, count(*) FROM attempts a {joined}{condition} GROUP BY a.outcome ORDER BY a.outcome",  # noqa: S608
            *params,
        )
        saved = self._tx.row(
            "SELECT COALESCE(SUM(CASE WHEN a.generation IS NULL THEN 0 ELSE a.tokens_before END), 0), "  # noqa: S608
            "COALESCE(SUM(CASE WHEN a.generation IS NULL THEN 0 ELSE a.tokens_after END), 0), "
            f"COALESCE(SUM(a.cost_nanos), 0), COALESCE(SUM(a.duration_millis), 0) FROM attempts a {joined}{condition}",
            *params,
        ) or (0, 0, 0, 0)
        undone = integer(
            self._tx,
            "SELECT count(*) FROM generations a JOIN sessions s ON s.conversation = a.conversation "  # noqa: S608
            f"AND s.ordinal = a.ordinal{condition} AND a.kind = 'undo'",
            *params,
        )
        return CompactionTotals(
            attempts=dict(outcomes),
            undone=undone,
            tokens_before=int(saved[0]),
            tokens_after=int(saved[1]),
            cost=dollars(int(saved[2])),
            seconds=int(saved[3]) / 1000,
        )

    def _where(self, moment: str, scale: int = MILLIS_PER_DAY) -> tuple[str, list[Any]]:
        """A condition on a column of times (in units of `scale` milliseconds) and on the session `s`."""
        found, query = Conditions(), self._query
        found.add(f"{moment} >= ?", query.since, lambda at: millis(at) // scale)
        found.add(f"{moment} <= ?", query.until, lambda at: millis(at) // scale)
        found.add("s.conversation = ?", self._key, int)
        found.add("s.platform = ?", query.platform)
        found.add("s.owner = ?", query.owner)
        return f" WHERE 1 = 1{found.sql}", found.params


def _day_text(day: int) -> str:
    return (_EPOCH + timedelta(days=day)).strftime("%Y-%m-%d")


def _totals(row: Row | None) -> UsageTotals:
    if row is None:
        return UsageTotals()
    # PostgreSQL adds up BIGINTs as Decimals.
    calls, given, output, read, written, reasoning, cost, unpriced = map(int, row)
    return UsageTotals(CanonicalUsage(given, output, read, written, reasoning), calls, dollars(cost), unpriced)
