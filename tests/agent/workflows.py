"""Honest work that repeats itself, and loops: what an agent called, what came back, and how long it took."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from leporello.messages import ToolCall
from leporello.tools.base import ToolResult

Row = tuple[ToolCall, ToolResult, float]
"""A call, its result, and the seconds it took."""
WORDS = (
    *("amber", "birch", "cedar", "delta", "ember", "fable", "grove", "heron", "inlet", "jolly", "kayak", "lemon"),
    *("mango", "noble", "opal", "pearl", "quill", "raven", "sable", "tulip", "umber", "vivid", "willow", "yarrow"),
)


def ran(command: str, text: str = "(no output)", code: int = 0, seconds: float = 0.2) -> Row:
    made = ToolCall("c", "terminal", json.dumps({"command": command}), 0)
    details = {"command": command, "exit_code": code, "bytes": len(text), "seconds": seconds}
    return made, ToolResult(text, details=details, status=f"exit code {code}"), seconds


def used(tool: str, text: str, error: bool = False, seconds: float = 0.2, **arguments: Any) -> Row:
    return ToolCall("c", tool, json.dumps(arguments), 0), ToolResult(text, is_error=error), seconds


def wrote(path: str, content: str) -> Row:
    arguments = json.dumps({"path": path, "content": content})
    return ToolCall("c", "write_file", arguments, 0), ToolResult(f"Wrote {path}.", details={"bytes": len(content)}), 0.1


def _rows(row: Row | Iterable[Row]) -> list[Row]:
    first, *others = row
    return [(first, *others)] if isinstance(first, ToolCall) else list(row)  # type: ignore[list-item, return-value]


def each(count: int, made: Callable[[int], Row | Iterable[Row]]) -> list[Row]:
    rows: list[Row] = []
    for number in range(count):
        rows += _rows(made(number))
    return rows


def word(number: int) -> str:
    return WORDS[number % len(WORDS)] + WORDS[number // len(WORDS) % len(WORDS)]


REFUSED = "curl: (7) Failed to connect to localhost port {}: Connection refused"

CHECKS = (
    ran("ruff format", "1 file left unchanged"),
    ran("ruff check", "All checks passed!"),
    ran("mypy src", "Success: no issues found"),
    ran("pytest -q", "12 passed"),
    ran("git status --short", " M a.py"),
)
SOURCE = "def start():\n    loading = True\n    return 'installing'  # pending, running"

HONEST: dict[str, list[Row]] = {
    "ports that nobody listens on": each(
        30, lambda n: ran(f"curl -s localhost:{8000 + n}", REFUSED.format(8000 + n), 7)
    ),
    "machines that do not answer": each(
        28, lambda n: ran(f"ping -c1 -W1 10.0.0.{n + 1}", "1 packets transmitted, 0 received, 100% packet loss", 1)
    ),
    "pages that do not exist": each(
        25,
        lambda n: used(
            "fetch",
            f"Error: https://a.example/post/{n} answered 404 Not Found",
            True,
            url=f"https://a.example/post/{n}",
        ),
    ),
    "seeds until the flaky test fails otherwise": each(
        20, lambda n: ran(f"SEED={n} pytest -q t.py", "E   AssertionError: order of rows\n1 failed", 1)
    ),
    "a bisection by hand": each(
        14, lambda n: ran(f"git checkout -q HEAD~{n} && make test", "FAIL total\nmake: *** [test] Error 1", 2)
    ),
    "numbered migrations that are not there": each(
        24,
        lambda n: ran(f"cat migrations/{n:04}_up.sql", f"cat: migrations/{n:04}_up.sql: No such file or directory", 1),
    ),
    "rows of a queue that are locked": each(
        22, lambda n: ran(f"./retry --job {n}", f"job {n}: locked by another worker", 3)
    ),
    "versions that a registry does not have": each(
        18, lambda n: ran(f"pip download acme==1.{n}", f"ERROR: No matching distribution found for acme==1.{n}", 1)
    ),
    "a build that is looked after without waiting": each(
        15, lambda n: ran("gh run view 7 --json status", '{"status": "in_progress"}')
    ),
    "pods that are not up yet": each(
        12, lambda n: ran("kubectl get pods", "NAME     READY   STATUS    RESTARTS\nweb-1    0/1     Pending   0")
    ),
    "a service that is starting": each(12, lambda n: ran("curl -sf localhost:8080/health", REFUSED.format(8080), 7)),
    "a database that is not ready": each(10, lambda n: ran("pg_isready", "/tmp:5432 - no response", 2)),
    "a task that is queued": each(16, lambda n: used("task_status", "queued", id="t-81")),
    "a download that goes on": each(20, lambda n: ran("ls -l big.iso", f"-rw-r--r-- 1 me me {n * 1_048_576} big.iso")),
    "a machine that starts anew, looked at between sleeps": each(
        30, lambda n: ran("sleep 5; ping -c1 -W1 db1", "1 packets transmitted, 0 received, 100% packet loss", 1, 6.0)
    ),
    "a deployment, looked at with a short sleep": each(14, lambda n: ran("sleep 2; cat status", "deploying", 0, 2.1)),
    "batches imported one by one": each(40, lambda n: ran(f"./import batch-{n}.csv", "100 rows imported")),
    "translations checked one by one": each(30, lambda n: ran(f"msgfmt -c {word(n)}.po", "(no output)")),
    "the same test after each edit": each(
        25, lambda n: (wrote("a.py", f"x = {word(n)}"), ran("pytest -q", "1 failed, 3 passed: the total is wrong", 1))
    ),
    "formatting and linting after each edit": each(
        30,
        lambda n: (
            wrote(f"{word(n)}.py", word(n + 3)),
            ran("ruff format", "1 file reformatted"),
            ran("ruff check", "All checks passed!"),
        ),
    ),
    "users made one by one": each(30, lambda n: ran(f"useradd user{n}")),
    "a grid of settings that all fail": each(
        24, lambda n: ran(f"train --lr 0.{n % 6 + 1} --depth {n // 6}", "loss is nan; stopping", 1)
    ),
    "keys that are looked up": each(30, lambda n: ran(f"redis-cli get user:{n}", "(nil)")),
    "tables that are counted": each(20, lambda n: ran(f"psql -tc 'select count(*) from part_{n}'", "0")),
    "permissions of many files": each(30, lambda n: ran(f"stat -c %a f{n}.txt", "644")),
    "old branches that are deleted": each(
        20, lambda n: ran(f"git branch -d old-{n}", f"error: the branch 'old-{n}' is not fully merged", 1)
    ),
    "files changed by the same command": each(30, lambda n: ran(f"sed -i 's/foo/bar/' src/{word(n)}.py")),
    "a bisection by git, each half bad": each(
        16,
        lambda n: (
            ran("git bisect bad", f"Bisecting: {2 ** (16 - n)} revisions left to test\n[{n * 7919:040x}] {word(n)}"),
            ran("make test", "FAIL total", 2),
        ),
    ),
    "a log, page by page": each(
        60,
        lambda n: used("read_file", "\n".join(f"GET /{word(n * 9 + k)} 200" for k in range(9)), path="a.log", offset=n),
    ),
    "a listing, page by page": each(
        40, lambda n: ran(f"sed -n '{n * 90 + 1},{n * 90 + 90}p' big.py", f"{word(n)} = {word(n * 3)}({n})")
    ),
    "a deployment, polled with a sleep": each(
        40, lambda n: ran("sleep 30 && kubectl rollout status deploy/web", "Waiting: 1 of 3 are available", 0, 30.5)
    ),
    "a deployment, polled with sleeps too short to count": each(
        20, lambda n: ran("sleep 3; curl -s https://x.example/deploy/status", '{"state":"deploying"}', 0, 3.2)
    ),
    "containers until one is healthy": each(12, lambda n: ran("docker ps", f"web  Up {n} seconds (health: starting)")),
    "a tool that waits": each(40, lambda n: used("wait_for_task", "running", seconds=10.0, id="t1")),
    "a log that grows": each(25, lambda n: ran("tail -n 3 train.log", f"epoch {n} loss 0.{900 - n * 17}")),
    "errors fixed one by one": each(
        30, lambda n: (wrote("a.py", f"{word(n)} = {word(n + 1)}"), ran("pytest -q", f"{40 - n} failed: {word(n)}", 1))
    ),
    "five checks after each edit": each(15, lambda n: (wrote(f"{word(n)}.py", f"{word(n)} {word(n + 3)}"), *CHECKS)),
    "five checks after each change by a command": each(
        15, lambda n: (ran(f"sed -i s/{word(n)}/{word(n + 2)}/ a.py"), *CHECKS)
    ),
    "five checks after each new number": each(15, lambda n: (wrote("conf.ini", f"workers = {n}"), *CHECKS)),
    "numbered files changed, with a check after each": each(
        40,
        lambda n: (
            wrote(f"chapter{n}.md", f"{word(n)} {word(n + 5)}"),
            used("patch", "Patched.", path=f"chapter{n}.md", old="colour", new="color"),
            ran("make lint", "no complaints"),
        ),
    ),
    "one edit in many numbered files, with a check after each": each(
        40,
        lambda n: (
            (
                ToolCall("c", "patch", json.dumps({"path": f"ch{n}.md", "old": "colour", "new": "color"}), 0),
                ToolResult(f"Patched ch{n}.md.", details={"paths": [f"ch{n}.md"]}),
                0.1,
            ),
            ran("make lint", "no complaints"),
        ),
    ),
    "a number tuned by a command until the benchmark is fast enough": each(
        20,
        lambda n: (
            ran(f"sed -i 's/workers = .*/workers = {n}/' conf.ini"),
            ran("./bench", f"{9000 - n * 37} requests"),
            ran("pytest -q", "12 passed"),
            ran("git status --short", " M conf.ini"),
        ),
    ),
    "a restart and a look after each change": each(
        15,
        lambda n: (
            wrote("conf.ini", f"workers = {n}"),
            ran("systemctl restart app"),
            ran("curl -s localhost:8080/health", "ok"),
        ),
    ),
    "an image built, started and tried after each change": each(
        12,
        lambda n: (
            wrote("app.py", f"{word(n)} {word(n + 1)}"),
            ran("docker build -q ."),
            ran("docker compose up -d", "Started"),
            ran("sleep 2; curl -s localhost/health", "ok", 0, 2.1),
            ran("./smoke", "all fine"),
        ),
    ),
    "a linter that has nothing to say": each(40, lambda n: (wrote(f"{word(n)}.ts", word(n + 3)), ran("npx eslint ."))),
    "pushes that a hook rejects": each(
        12, lambda n: (wrote("ci.yml", word(n)), ran("git push", "remote: rejected by hook", 1))
    ),
    "commits, each looked at": each(
        20, lambda n: (ran(f"git commit -qam 'step {word(n)}'"), ran("git status --short"))
    ),
    "a limit of requests, waited for": each(
        15,
        lambda n: (
            used("fetch", "Error: 429 too many requests, retry after 20 s", True, url="https://a.example/x"),
            ran("sleep 20", seconds=20.0),
        ),
    ),
    "numbered downloads": each(50, lambda n: ran(f"curl -sO https://a.example/part{n:03}.zip")),
    "photos that get names": each(40, lambda n: ran(f"mv IMG_{n:04}.jpg trip-{n:02}.jpg")),
    "issues that are closed": each(30, lambda n: ran(f"gh issue close {100 + n}", f"Closed issue #{100 + n}")),
    "customers without an order": each(
        30, lambda n: used("sql", "(0 rows)", query=f"select * from orders where customer = '{word(n)}'")
    ),
    "seeds that take a while": each(
        20, lambda n: ran(f"python train.py --seed {n}", f"loss 0.{n * 37 % 1000:03}", 0, 40.0)
    ),
    "a slow test made again to see whether it is flaky": each(15, lambda n: ran("make e2e", "1 passed", 0, 60.0)),
    "a file read again after each edit": each(
        25, lambda n: (used("read_file", f"v{n} {word(n)}", path="a.py"), wrote("a.py", word(n + 1)))
    ),
}
"""Each goes on to its end."""

LOOPS: dict[str, Callable[[int], Row | Iterable[Row]]] = {
    "the same listing": lambda n: ran("ls", "a.txt\nb.txt"),
    "the same failure": lambda n: ran("make", "make: *** No rule to make target 'all'. Stop.", 2),
    "two in turn": lambda n: ran("ls", "a.txt") if n % 2 else ran("pwd", "/srv/app"),
    "three in turn, one fails": lambda n: (ran("ls", "a"), ran("pwd", "/srv"), ran("false", code=1))[n % 3],
    "the same file read": lambda n: used("read_file", "one line", path="a.txt"),
    "the same file written": lambda n: wrote("a.txt", "the same"),
    "one file read in turn with another": lambda n: used("read_file", f"text {n % 2}", path=f"{n % 2}.txt"),
    "a counter in the command": lambda n: ran(f"make all  # try {n}", "make: nothing to be done"),
    "a counter as a variable": lambda n: ran(f"TRY={n} deploy", "Error: no credentials for the target", 2),
    "a counter as an argument": lambda n: ran(f"deploy --attempt {n}", "Error: no credentials for the target", 2),
    "numbered files that are never there": lambda n: ran(
        f"cat p{n}.txt", f"cat: p{n}.txt: No such file or directory", 1
    ),
    "ports without end": lambda n: ran(f"curl -s localhost:{n + 1}", REFUSED.format(n + 1), 7),
    "pages behind the last one": lambda n: used("fetch", '{"items": []}', url=f"https://a.example/?page={n}"),
    "a status that never changes": lambda n: ran("cat status", "pending"),
    "a service that never starts": lambda n: ran("curl -sf localhost:8080/health", REFUSED.format(8080), 7),
    "a status asked in two ways": lambda n: ran("cat status" if n % 2 else "cat ./status", "running"),
    "a tool that does not exist": lambda n: used("open_browser", "Error: there is no tool named 'open_browser'.", True),
    "ever new tools that do not exist": lambda n: used(
        f"tool_{word(n)}", f"Error: there is no tool named 'tool_{word(n)}'.", True
    ),
    "arguments that are never right": lambda n: used(
        "patch", "Error: the old text was not found in a.txt.", True, old=word(n)
    ),
    "ever new searches without a hit": lambda n: ran(f"grep -rn {word(n)} src", code=1),
    "thoughts printed": lambda n: ran(f"echo 'I think about {word(n)}'", f"I think about {word(n)}"),
    "sleeping": lambda n: ran(f"sleep {n % 5}"),
    "the clock": lambda n: ran("date", f"Mon Nov 16 19:{n % 60:02}:36 UTC 2026"),
    "edits that change nothing": lambda n: wrote("a.txt", f"attempt {n}"),
    "undo and redo": lambda n: (wrote("a.txt", "one"), wrote("a.txt", "two"))[n % 2],
    "a file that says loading": lambda n: used("read_file", SOURCE, path="a.py"),
    "a search that finds running": lambda n: ran("grep -rn running src", "src/a.py:3: state = 'running'"),
    "an edit that says installing": lambda n: used("patch", "Patched: installing", path="a.py", old="x", new="y"),
    "an installation that cannot reach its server": lambda n: ran("npm install", "unavailable, try again", 1),
    "a page that is loading": lambda n: ran("curl -s https://a.example/", "<title>Loading</title> please wait"),
    "a growing argument": lambda n: used("search_files", "(no hits)", query="parser " + "x" * n),
    "the same text in files of ever new names": lambda n: wrote(f"notes_{word(n)}.md", "# Plan\nTODO"),
    "copies under ever new names": lambda n: ran(f"cp a.py {word(n)}.py"),
    "a file renamed back and forth": lambda n: ran("mv a.py b.py" if n % 2 else "mv b.py a.py"),
    "work put aside and taken up": lambda n: ran("git stash" if n % 2 else "git stash pop"),
    "ranges that overlap": lambda n: used(
        "read_file", "\n".join(f"line {word(n * 7 % 40 + k)}" for k in range(20)), path="a.py", offset=n * 7 % 40
    ),
    "six pages in a circle": lambda n: used("read_file", f"page {word(n % 6)}", path="a.py", offset=n % 6 * 20),
    "twenty files in a circle": lambda n: ran(f"cat {word(n % 20)}.md", f"{word(n % 20 + 40)} {word(n % 20 + 80)}"),
    "a failing edit and the file again": lambda n: (
        used("patch", "Error: the old text was not found in a.py.", True, path="a.py", old=word(n)),
        used("read_file", SOURCE, path="a.py"),
    ),
    "a search with synonyms": lambda n: used("web_search", '{"results": []}', query=f"how to {word(n)}"),
    "apologies": lambda n: ran(f"echo 'Sorry, I will {word(n)} now'", f"Sorry, I will {word(n)} now"),
    "thoughts that are noted": lambda n: used("think", "Your thought was noted.", thought=f"I must {word(n)}"),
    "thoughts written down": lambda n: ran(f"echo '{word(n)} {word(n + 3)}' >> notes.txt"),
    "a list of tasks written again": lambda n: used("todo_write", "Updated.", todos=["a", "b"]),
    "a poll that never ends": lambda n: ran("sleep 10; kubectl get pods", "web-1 0/1 Pending 0", 0, 10.2),
    "a poll whose age goes on": lambda n: ran("kubectl get pods", f"web-1 0/1 Pending 0 {n}m"),
    "an agent with the same task": lambda n: used("delegate", "I could not finish.", seconds=20.0, task="deploy"),
    "an agent with the task in other words": lambda n: used(
        "delegate", "I could not finish.", seconds=20.0, task=f"deploy, {word(n)}"
    ),
    "two agents that send one to the other": lambda n: used("delegate", f"Ask {(n + 1) % 2}.", to=n % 2),
    "edited and reverted, with a test between": lambda n: (
        wrote("a.py", f"x = {'one' if n % 2 else 'two'}"),
        ran("pytest -q", "1 failed: x is wrong", 1),
    ),
    "numbered files that nobody needs, and the status": lambda n: (
        ran(f"touch a{n}"),
        ran("git status", "nothing to commit"),
    ),
    "replacements of what is not there, and the tests": lambda n: (
        ran(f"sed -i s/a{n}/b/ f"),
        ran("pytest -q", "1 passed"),
    ),
    "a number written anew, and the tests": lambda n: (wrote("a.ini", f"n = {n}"), ran("pytest -q", "1 passed")),
    "a count in a file, and a slow test": lambda n: (ran(f"echo {n} >> f"), ran("make e2e", "1 passed", 0, 9.0)),
    "a slow build of what is built": lambda n: ran("npm run build", "up to date", 0, 8.0),
}
"""Each goes on for ever."""


def endless(made: Callable[[int], Row | Iterable[Row]]) -> Iterator[Row]:
    for number in itertools.count():
        yield from _rows(made(number))
