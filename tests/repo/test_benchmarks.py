"""Benchmarks are run by hand: that each of them still finds what it imports is seen here."""

from __future__ import annotations

from benchmarks.__main__ import BESIDE_EARLIER, FULL, PAGE, PAGES, PARTS, QUICK, SHORT


def test_every_benchmark_loads_and_has_its_place_in_the_docs() -> None:
    assert set(SHORT) | set(FULL) | set(QUICK) | set(BESIDE_EARLIER) == set(PARTS)
    for name in PARTS:
        page = PAGES.get(name, PAGE).read_text(encoding="utf-8")
        assert f"<!-- {name} -->\n" in page
        assert f"<!-- /{name} -->" in page
