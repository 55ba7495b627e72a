"""A compaction that is done beside the conversation: what is written into a queue, and read from it."""

from __future__ import annotations

from leporello.conversation.compact import CompactionJob

JOB = CompactionJob("talk", 3, "gpt-4o", 64_000, 120, 45, True)


def test_the_same_compaction_has_one_key_and_another_has_another() -> None:
    assert JOB.key == "talk:3"
    assert CompactionJob("talk", 3).key == JOB.key
    assert len({CompactionJob(name, number).key for name in ("talk", "other") for number in (3, 4)}) == 4


def test_a_job_is_read_back_as_it_was_written() -> None:
    assert CompactionJob.from_dict(JOB.as_dict()) == JOB
    assert CompactionJob.from_dict({"conversation": "talk", "generation": 3}).trigger == "threshold"


def test_what_a_newer_version_wrote_into_it_is_left_alone() -> None:
    assert CompactionJob.from_dict({**JOB.as_dict(), "priority": 7}) == JOB
