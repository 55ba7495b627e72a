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
    "tests/plugins/test_hermes_sessions.py",
    "tests/plugins/test_hosted_engines.py::test_hermes_lcm_compacts_ten_times_and_answers_about_the_first_hour",
    "tests/repo/test_installs.py",
    # Several processes that are killed, restarted or stopped while clients wait for them.
    "tests/chat/test_killed.py::test_killed_at_any_moment",
    "tests/scaleout/test_database_restart.py",
    "tests/scaleout/test_gateway_on_postgres.py",
    "tests/scaleout/test_proxy_without_stickiness.py",
    "tests/scaleout/test_shared_day.py",
    "tests/scaleout/test_two_workers.py",
    # A real model server on this machine.
    "tests/chat/test_terminal.py::test_the_model_on_this_machine",
    "tests/local/test_real_server.py",
    # All recorded sessions.
    "tests/exam/test_exam_real.py",
    "tests/policy/test_optimum.py::test_at_most_twice_the_best_in_every_recorded_session",
    # A long session with many planted errors; single ones are looked at from nearer.
    "tests/verify/test_verify_measured.py",
    # A terminal on which somebody waits.
    "tests/chat/test_terminal.py::test_a_very_long_answer",
    "tests/chat/test_terminal.py::test_an_assumed_window_is_called_so",
    "tests/chat/test_terminal.py::test_folding_by_hand_with_a_topic",
    "tests/chat/test_terminal.py::test_no_colour",
    "tests/chat/test_terminal.py::test_no_network",
    "tests/chat/test_terminal.py::test_pasting_five_thousand_lines",
    "tests/chat/test_terminal.py::test_resizing_while_an_answer_grows",
    "tests/chat/test_terminal.py::test_the_prompt_cache_is_told_at_the_start",
    "tests/chat/test_terminal.py::test_typing_ahead",
    "tests/chat/test_plain.py::test_going_on_in_a_pipe",
    # Word tables whose steps take long to count.
    "tests/regexes/test_linear.py::test_pattern_is_linear[leporello.ledger.value_patterns.CHANGE]",
    "tests/regexes/test_linear.py::test_pattern_is_linear[leporello.redact.names._KEY]",
    # Long conversations of which shorter ones are looked at from nearer.
    "tests/dashboard/test_queries.py::test_postgres_scans_no_table",
    "tests/dashboard/test_truth.py",
    "tests/engines/test_lcm_conversation.py::test_every_fold_that_ever_stood_opens_and_says_what_it_is_made_of",
    "tests/gateway/test_conversation_cache.py::test_an_agent_answers_the_same_whatever_is_evicted",
    "tests/leaks/test_cuts.py",
    "tests/testing/test_demo.py::test_it_says_the_same_every_time",
    "tests/testing/test_demo.py::test_it_works_in_the_home_of_the_environment",
)
"""Files, tests and single cases that only `make test-all` runs."""

SAMPLED = {
    "tests/agent/test_endpoints.py": 3,
    "tests/chat/test_command_names.py": 1,
    "tests/cli/test_missing_extras.py": 4,
    "tests/cli/test_streams.py": 4,
    "tests/conversation/test_conversation.py": 1,
    "tests/e2e/test_faults.py": 1,
    "tests/e2e/test_long_conversations.py": 1,
    "tests/gateway/test_long_conversations.py": 1,
    "tests/gateway/test_recall.py": 2,
    "tests/gateway/test_setups.py": 1,
    "tests/gateway/test_steady.py": 1,
    "tests/regexes/test_linear.py": 60,
    "tests/store/test_postgres_crash.py": 1,
    "tests/store/test_sqlite_crash.py": 2,
}
"""Files whose cases each start a program, fold a long session, try combinations or count the steps of a pattern.

How many cases of a test `make test` takes.
"""

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


def is_fault(item: pytest.Item) -> bool:
    """A run of a promise test on a copy of the program that has a fault."""
    return "[breaks when " in item.nodeid


def mark_tiers(items: Sequence[pytest.Item]) -> None:
    """Marks what is `extended` or `slow`. Of the faults that a promise must notice `make test` takes the first."""
    faults: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in filter(is_fault, items):
        faults[item.nodeid.partition("::")[0]].append(item)
    for others in faults.values():
        for item in others[1:]:
            item.add_marker(pytest.mark.extended)
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    for test, those in cases.items():
        file = test.partition("::")[0]
        most = 0 if file in EXTENDED or test in EXTENDED else SAMPLED.get(file, len(those))
        kept = {len(those) * number // most for number in range(most)}
        for number, item in enumerate(those):
            if number not in kept or item.nodeid in EXTENDED:
                item.add_marker(pytest.mark.extended)
            if test.startswith(SLOW):
                item.add_marker(pytest.mark.slow)
