"""Files that shell commands and patches change or show."""

from __future__ import annotations

import pytest

from leporello.ledger.calls import looks_failed, tool_class
from leporello.ledger.commands import files_of

PATCH = """apply_patch << 'PATCH'
*** Begin Patch
*** Update File: core/gcode.py
@@
-    out = base
+    out = dict(base)
*** Add File: core/new.py
+class Fan:
+    pass
*** Delete File: core/old.py
*** End Patch
PATCH"""


@pytest.mark.parametrize(
    ("command", "edits"),
    [
        ("cat > a/b.py <<'EOF'\ndef read():\n  return x > y\nEOF\npytest 2>&1 | tail -3", {"a/b.py": "+2 read"}),
        ("sed -i 's/a > b/c/' x.py y.py", {"x.py": "sed", "y.py": "sed"}),
        ("sed -i -e 's/a/b/' x.py", {"x.py": "sed"}),
        ("cd pkg && git mv one.py two.py", {"pkg/one.py": "moved to two.py", "pkg/two.py": "moved from one.py"}),
        ("rm -f old.py && echo done", {"old.py": "deleted"}),
        ("echo hi >> notes.md 2>/dev/null", {"notes.md": ""}),
        ("make | tee build.log", {"build.log": ""}),
        ("python - <<'PY'\nopen('z.txt', 'w').write('')\nPY", {"z.txt": "python"}),
        (
            PATCH,
            {"core/gcode.py": "`out = base` → `out = dict(base)`", "core/new.py": "+2 Fan", "core/old.py": "deleted"},
        ),
    ],
)
def test_a_command_tells_which_files_it_changes(command: str, edits: dict[str, str]) -> None:
    assert files_of(command).edits == edits


@pytest.mark.parametrize(
    "command",
    [
        'git commit -m "first\n\nnow a > b"',
        "git commit -m \"$(cat <<'EOF'\nfoo > bar\nEOF\n)\"",
        "grep -rn 'x > y' src > /tmp/found; pytest > /dev/null 2>&1",
        "awk '{ if ($1 > 5) print }' data.csv",
        "sed -n '1,80p' a.py",
        "echo $x > $HOME/y",
    ],
)
def test_other_commands_change_none(command: str) -> None:
    assert files_of(command).edits == {}


def test_what_a_command_shows_is_read() -> None:
    shown = files_of("cd app && nl -ba ui/editor.py | sed -n '240,520p'")
    assert (shown.read, shown.span) == ("app/ui/editor.py", ":240-520")


@pytest.mark.parametrize(
    ("command", "work"),
    [
        ("npm run test:unit", "check"),
        ("./scripts/run-tests.sh", "check"),
        ("bash -lc 'make build'", "check"),
        ('echo "a test" > notes.txt', "shell"),
        ("# The token isn't valid, so check it first\ncurl -s localhost", "shell"),
        ("sed -n '1,200p' tests/test_schema.py", "read"),
    ],
)
def test_only_what_checks_is_a_check(command: str, work: str) -> None:
    assert tool_class("bash", command) == work


def test_what_git_keeps_for_itself_is_no_file_of_the_work() -> None:
    assert files_of("rm -f .git/index.lock && echo x > .gitignore").edits.keys() == {".gitignore"}


@pytest.mark.parametrize(
    ("output", "failed"),
    [
        ("> node --test\n\nCommand aborted\n", True),
        ("command timed out after 10019 milliseconds", True),
        ("the request was cancelled by the user's own choice, says the log\nall good\n", False),
    ],
)
def test_a_command_that_was_ended_from_outside_did_not_go_well(output: str, failed: bool) -> None:
    assert looks_failed(output) == failed
