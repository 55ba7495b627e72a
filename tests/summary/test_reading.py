"""Reading sentences in scripts that put no blanks between words: names inside them are names, the rest is words."""

from __future__ import annotations

import pytest

from leporello.text_features.sentences import read

NAMED = [
    ("src/net/client.py を編集しました", "src/net/client.py"),
    ("src/net/client.pyを編集しました", "src/net/client.py"),
    ("已修改src/net/client.py中的超时", "src/net/client.py"),
    ("src/net/client.py를 수정했습니다", "src/net/client.py"),
    ("แก้ไขsrc/net/client.pyแล้ว", "src/net/client.py"),
    ("retry_count を増やした", "retry_count"),
    ("コミットf3a9c1e2を戻した", "f3a9c1e2"),
    ("größe_prüfen.py geändert", "größe_prüfen.py"),
]


@pytest.mark.parametrize(("sentence", "name"), NAMED)
def test_only_the_name_is_a_name(sentence: str, name: str) -> None:
    assert [token.text for token in read(sentence).names] == [name]


def test_words_without_blanks_are_compared_by_pairs() -> None:
    (word,) = read("編集しました").content
    assert word.keys == ("編集", "集し", "しま", "まし", "した")
