"""The sample of mutants: what is changed, that it is drawn by the seed alone, and that accepted ones have a reason."""

from __future__ import annotations

import mutants
import mutations

SOURCE = b'''"""Words."""
LIMIT = 0.10

def decide(tokens: int, limits: "Limits | None" = None, *, last: bool = True) -> bool:
    """More words."""
    if tokens < LIMIT and not last:
        raise ValueError(f"{tokens} are too many")
    _log.info("no promise")
    note(tokens, limits, last=last, why="x")
    return max(tokens, 3) >= 3

FIND = "SELECT id FROM sessions WHERE ended > ? AND number < ?"
'''


def changes(source: bytes) -> set[str]:
    return {mutant.name.partition(" ")[2] for mutant in mutations.mutants("m.py", source)}


def test_a_mutant_is_one_small_change() -> None:
    found = changes(SOURCE)
    assert {
        "LIMIT: 0.10 -> 0.01",
        "LIMIT: 0.10 -> 0.2",
        "decide: True -> False",
        "decide: tokens < LIMIT -> tokens <= LIMIT",
        "decide: tokens < LIMIT and not last -> tokens < LIMIT or not last",
        "decide: tokens < LIMIT and not last -> True",
        "decide: not last -> (last)",
        'decide: raise ValueError(f"{tokens} are too many") -> pass',
        'decide: note(tokens, limits, last=last, why="x") -> pass',
        "decide: tokens, limits -> limits, tokens",
        "decide: last=last, -> ",
        "decide: max -> min",
        "decide: 3 -> 4 (2)",
        "decide: max(tokens, 3) >= 3 -> True",
        "decide: max(tokens, 3) >= 3 -> max(tokens, 3) > 3",
        "FIND: ended > ? -> ended >= ?",
        "FIND: ? AND number -> ? OR number",
    } <= found
    for mutant in mutations.mutants("m.py", SOURCE):
        assert mutations.is_python(mutant.applied(SOURCE))
        assert mutant.applied(SOURCE) != SOURCE


def test_words_types_and_logs_are_left_alone() -> None:
    assert not any(part in name for name in changes(SOURCE) for part in ("Words", "no promise", "Limits | None"))


def test_a_mutant_keeps_its_name_when_lines_around_it_move() -> None:
    assert changes(b"import os\n\n\n" + SOURCE) == changes(SOURCE)


def test_the_sample_depends_on_the_seed_alone_and_takes_of_every_area_alike() -> None:
    first, again, other = (mutants.sample(mutants.ROOT, seed, 30) for seed in (1, 1, 2))
    assert first == again != other
    assert [area for area, _ in first] == [area for area in mutants.AREAS for _ in range(5)]


def test_each_mutant_that_may_survive_has_its_reason() -> None:
    accepted = mutants.accepted()
    assert accepted
    assert all(accepted.values()), [name for name, reason in accepted.items() if not reason]
