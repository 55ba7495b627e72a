"""Search: everything that was said is found, ranked, filtered, without secrets and without embedded files."""

from __future__ import annotations

import base64
import random
import threading
import time

import pytest

from leporello.store import Store
from leporello.store.records import SearchMode, SearchQuery
from tests.store.contract.base import ContractBase, assistant, fold_all_but, tool_turn, user

DAY = 86_400.0


def numbers(store: Store, text: str, **filters: object) -> list[int]:
    """The numbers of the messages found."""
    return [hit.number for hit in store.index.search(SearchQuery(text, **filters))]  # type: ignore[arg-type]


class SearchContract(ContractBase):
    """`store.index`."""

    def test_a_search_sees_what_was_just_appended(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user("The staging server listens on port 22741"), assistant("Noted.")])
        assert store.index.pending() == 2
        (hit,) = store.index.search(SearchQuery("port of the staging server"))
        assert (hit.conversation, hit.number, hit.id, hit.role, hit.tool) == ("c", 1, "m1", "user", "")
        assert "22741" in hit.text
        assert "22741" in hit.snippet
        assert store.index.pending() == 0
        store.log.append("c", [user("Now it is port 30000 on staging")])
        assert numbers(store, "staging port")[0] in (1, 3)
        assert set(numbers(store, "staging port")) == {1, 3}

    def test_the_folded_part_is_found_like_the_rest(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user("the zanzibar option is off"), *(user(f"filler {n}") for n in range(20))])
        store.views.commit("c", fold_all_but(store.views.view("c"), 2))
        assert numbers(store, "zanzibar", conversation="c") == [1]

    def test_code_words_are_found_by_their_parts(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append(
            "c", [user("look at src/paths/CheckpointPath.go:45"), user("read_file failed"), user("v1.2.3 is out")]
        )
        assert numbers(store, "checkpoint path") == [1]
        assert numbers(store, "readFile") == [2]
        assert numbers(store, "1.2.3") == [3]

    def test_words_of_two_chinese_characters_are_found(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user("请检查数据库的索引"), user("今天天气很好")])
        assert numbers(store, "索引") == [1]
        assert numbers(store, "天气") == [2]

    def test_a_fragment_inside_a_word_is_found(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user("Reference XK99Q7ZULUvvw here"), user('quote "a\'b" % _ and \\ too')])
        assert numbers(store, "q7zulu", mode=SearchMode.FRAGMENT) == [1]
        assert numbers(store, "9q7zul") == [1]
        assert numbers(store, '"a\'b" % _', mode=SearchMode.FRAGMENT) == [2]
        assert numbers(store, "q7_ulu", mode=SearchMode.FRAGMENT) == []
        assert numbers(store, "q7zulu", mode=SearchMode.WORDS) == []

    def test_better_answers_come_first(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append(
            "c",
            [
                user("the queue is fine"),
                user("the queue lost a message: broker queue depth 900, queue consumers 0"),
                user("something else about consumers"),
                *(user(f"unrelated {n}") for n in range(30)),
            ],
        )
        found = store.index.search(SearchQuery("queue consumers"))
        assert found[0].number == 2
        assert {hit.number for hit in found} == {1, 2, 3}
        assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
        assert found[0].score > 0

    def test_filters(self, store: Store) -> None:
        now = time.time()
        store.conversations.create("a")
        store.conversations.create("b")
        store.log.append("a", [user("needle one")], at=[now - 10 * DAY])
        store.log.append("a", tool_turn("bash", "needle two"), at=[now - DAY] * 2)
        store.log.append("b", [*tool_turn("read_file", "needle three"), assistant("needle four")])
        found = {(hit.conversation, hit.number) for hit in store.index.search(SearchQuery("needle"))}
        assert found == {("a", 1), ("a", 3), ("b", 2), ("b", 3)}
        assert numbers(store, "needle", conversation="b", limit=10) in ([2, 3], [3, 2])
        assert numbers(store, "needle", roles=("user",)) == [1]
        assert set(numbers(store, "needle", roles=("user", "assistant"))) == {1, 3}
        assert numbers(store, "needle", tools=("bash",)) == [3]
        assert numbers(store, "src/app.py", tools=("read_file",)) == [1]
        assert set(numbers(store, "needle", since=now - 2 * DAY)) == {2, 3}
        assert numbers(store, "needle", until=now - 5 * DAY) == [1]
        assert numbers(store, "eedle", mode=SearchMode.FRAGMENT, roles=("user",)) == [1]
        assert numbers(store, "eedle", mode=SearchMode.FRAGMENT, conversation="b", tools=("read_file",)) == [2]
        assert len(numbers(store, "needle", limit=2)) == 2
        assert numbers(store, "needle", limit=0) == []

    def test_arguments_of_tool_calls_are_found_without_their_punctuation(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", tool_turn("write_file", "ok"))
        (hit,) = store.index.search(SearchQuery("app.py"))
        assert (hit.number, hit.role, hit.tool) == (1, "assistant", "write_file")
        assert '{"' not in hit.text

    def test_no_secret_reaches_the_index(self, store: Store) -> None:
        secret = "ghp_" + "".join(
            random.Random(3).choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP0123456789", k=36)
        )
        store.conversations.create("c")
        store.log.append("c", [user(f"the token is {secret} for deploys")])
        (hit,) = store.index.search(SearchQuery("token deploys"))
        assert secret not in hit.text
        for mode in SearchMode:
            assert numbers(store, secret, mode=mode, conversation="c") in ([], [1])
            assert all(secret not in found.text for found in store.index.search(SearchQuery(secret, mode=mode)))
        assert numbers(store, secret[8:24], mode=SearchMode.FRAGMENT) == []
        assert secret in store.log.message("c", 1).message["content"]

    def test_embedded_files_are_not_indexed(self, store: Store) -> None:
        blob = base64.b64encode(random.Random(4).randbytes(30_000)).decode()
        store.conversations.create("c")
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{blob}"}}
        store.log.append(
            "c",
            [
                {"role": "user", "content": [{"type": "text", "text": "look at this picture"}, image]},
                user(f"inline data:image/png;base64,{blob} end of picture"),
                user(f"bare {blob} picture"),
            ],
        )
        assert sorted(numbers(store, "picture")) == [1, 2, 3]
        for start in (100, 20_000):
            assert numbers(store, blob[start : start + 12], mode=SearchMode.FRAGMENT) == []

    def test_long_messages_are_found_by_the_part_that_matters(self, store: Store) -> None:
        store.conversations.create("c")
        lines = [f"line {n} of the log: nothing to see" for n in range(3000)]
        lines[1700] = "line 1700 of the log: xylophone failure in shard 7"
        store.log.append("c", [user("\n".join(lines))])
        (hit,) = store.index.search(SearchQuery("xylophone"))
        assert len(hit.text) < 4000
        assert "shard 7" in hit.snippet
        assert hit.start > 50_000

    def test_many_long_messages_are_indexed_in_several_steps(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user(f"walrus{n} " + f"filler line {n}\n" * 4000) for n in range(9)])
        assert store.index.catch_up() == 9
        assert store.index.pending() == 0
        for n in range(9):
            assert numbers(store, f"walrus{n}", limit=1) == [n + 1]
        assert store.usage.insights().messages == 9

    def test_deleted_conversations_are_not_found(self, store: Store) -> None:
        for id in ("a", "b"):
            store.conversations.create(id)
            store.log.append(id, [user("platypus colony")] * 2 + [user(f"only in {id}")])
        assert len(numbers(store, "platypus")) == 4
        store.conversations.delete("a")
        assert {hit.conversation for hit in store.index.search(SearchQuery("platypus"))} == {"b"}
        store.conversations.delete("b")
        store.conversations.create("c")
        store.log.append("c", [user("something new")] * 4)
        assert numbers(store, "something") == [4, 3, 2, 1]
        assert numbers(store, "platypus colony only") == []
        assert numbers(store, "latypu", mode=SearchMode.FRAGMENT) == []
        store.care.vacuum()
        assert numbers(store, "something") == [4, 3, 2, 1]

    def test_indexing_can_be_done_in_small_steps(self, store: Store) -> None:
        for id in ("a", "b"):
            store.conversations.create(id)
            store.log.append(id, [user(f"{id} {n}") for n in range(10)])
        assert store.index.catch_up(limit=3) == 3
        assert store.index.pending() == 17
        assert store.index.catch_up(limit=12) == 12
        assert store.index.catch_up() == 5
        assert store.index.catch_up() == 0

    def test_indexing_from_many_threads_indexes_once(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user(f"marmalade {n}") for n in range(600)])
        threads = [threading.Thread(target=store.index.catch_up) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert store.index.pending() == 0
        assert sorted(numbers(store, "marmalade", limit=1000)) == list(range(1, 601))

    def test_a_search_finds_what_was_appended_before_it_whoever_else_is_indexing(self, store: Store) -> None:
        store.conversations.create("c")
        missed: list[str] = []

        def append_and_search(name: str) -> None:
            for n in range(15):
                word = f"{name}word{n}end"
                [number] = store.log.append("c", [user(f"{word} marmalade")])
                if number not in numbers(store, word):
                    missed.append(word)

        threads = [threading.Thread(target=append_and_search, args=(name,)) for name in ("ann", "bob", "cy", "dee")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert missed == []
        assert store.care.checkup().clean

    def test_conversations_that_go_while_others_are_indexed_do_no_harm(self, store: Store) -> None:
        ids = [f"c{n}" for n in range(40)]
        for id in ids:
            store.conversations.create(id)
            store.log.append(id, [user(f"marmalade {n}") for n in range(8)])
        threads = [threading.Thread(target=store.index.catch_up) for _ in range(3)]
        for thread in threads:
            thread.start()
        for id in ids[::2]:
            store.conversations.delete(id)
        for thread in threads:
            thread.join()
        hits = store.index.search(SearchQuery("marmalade", limit=1000))
        assert sorted((hit.conversation, hit.number) for hit in hits) == sorted(
            (id, number) for id in ids[1::2] for number in range(1, 9)
        )
        assert store.care.checkup().clean

    @pytest.mark.parametrize(
        "text",
        ["", " ", "\0", '"', "'", "AND OR NOT", "NEAR(", "*", "a*", "(", "\ud800", "^x", "col:x", "-", "§1", "%"],
    )
    def test_any_query_is_data(self, store: Store, text: str) -> None:
        store.conversations.create("c")
        store.log.append("c", [user("some text"), user(text)])
        for mode in SearchMode:
            store.index.search(SearchQuery(text, mode=mode))
            store.index.search(SearchQuery(text * 500, mode=mode, conversation="c", tools=(text,), roles=(text,)))

    def test_a_rebuilt_index_finds_the_same(self, store: Store) -> None:
        store.conversations.create("c")
        store.log.append("c", [user(f"alpha beta {n}") for n in range(50)] + tool_turn("bash", "gamma delta"))
        queries = [SearchQuery("alpha 17"), SearchQuery("gamma"), SearchQuery("elta", mode=SearchMode.FRAGMENT)]
        before = [store.index.search(query) for query in queries]
        assert store.care.repair().clean
        assert [store.index.search(query) for query in queries] == before
        assert store.usage.insights().messages == 52
