"""Which tests run when.

`make test-all` runs all of them, `make test` those that are not `extended`, `make test-fast` those of them that are not
`slow`. Chosen by measured processor time: what is listed here took most of it and looks at something that cheaper tests
look at as well, from nearer. `tests/repo/test_tiers.py` sees to it that `make test` keeps a test of everything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pytest

EXTENDED = (
    # These build environments of their own, with other people's agents and frameworks in them.
    "tests/adapters/test_frameworks.py",
    "tests/plugins/test_hermes.py",
    "tests/repo/test_installs.py",
    # Several processes that are killed, restarted or stopped while clients wait for them.
    "tests/chat/test_killed.py::test_killed_at_any_moment",
    "tests/scaleout/test_database_restart.py",
    "tests/scaleout/test_gateway_on_postgres.py",
    "tests/scaleout/test_proxy_without_stickiness.py",
    "tests/scaleout/test_two_workers.py",
    # A real model server on this machine.
    "tests/chat/test_terminal.py::test_the_model_on_this_machine",
    "tests/local/test_real_server.py",
    # All recorded sessions.
    "tests/verify/test_verify_measured.py::test_recorded_sessions_give_the_same_figures",
)
"""Files and tests that only `make test-all` runs."""

SAMPLED = {
    "tests/cli/test_missing_extras.py": 4,
    "tests/cli/test_streams.py": 4,
    "tests/dashboard/test_truth.py": 1,
    "tests/e2e/test_long_conversations.py": 1,
    "tests/gateway/test_long_conversations.py": 1,
    "tests/gateway/test_recall.py": 3,
    "tests/leaks/test_cuts.py": 1,
    "tests/store/test_postgres_crash.py": 1,
    "tests/store/test_sqlite_crash.py": 2,
}
"""Files whose cases each start a program or fold a long session: how many cases of a test `make test` takes."""

SLOW = (
    "tests/chat/",
    "tests/cli/test_compress.py",
    "tests/cli/test_missing_extras.py",
    "tests/cli/test_store_commands.py",
    "tests/cli/test_streams.py",
    "tests/conversation/test_conversation.py",
    "tests/dashboard/",
    "tests/dialects/test_real_sessions.py",
    "tests/e2e/",
    "tests/engines/",
    "tests/exam/test_exam_real.py",
    "tests/gateway/test_long_conversations.py",
    "tests/gateway/test_recall.py",
    "tests/gateway/test_setups.py",
    "tests/importers/test_importers_real.py",
    "tests/leaks/",
    "tests/local/",
    "tests/plugins/",
    "tests/promises/",
    "tests/recall/test_store_recall.py",
    "tests/redact/test_spoken.py",
    "tests/regexes/",
    "tests/repo/test_documents.py",
    "tests/repo/test_tiers.py",
    "tests/scaleout/",
    "tests/store/",
    "tests/testing/test_demo.py",
    "tests/verify/",
)
"""What `make test-fast` leaves out."""


def mark_tiers(items: Sequence[pytest.Item]) -> None:
    """Marks what is `extended` or `slow`."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    for test, those in cases.items():
        file = test.partition("::")[0]
        most = 0 if file in EXTENDED or test in EXTENDED else SAMPLED.get(file, len(those))
        kept = {len(those) * number // most for number in range(most)}
        for number, item in enumerate(those):
            if number not in kept:
                item.add_marker(pytest.mark.extended)
            if test.startswith(SLOW):
                item.add_marker(pytest.mark.slow)
