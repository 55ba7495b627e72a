"""Which calls only look whether something is done yet, and were told that it is not.

Both must be seen: a call that asks for a state, and a result that tells one. A file that holds the word "loading", a
search for it and a build that prints it are no look at anything, however often they are called. Nobody knows the names
of all tools and programs: one that took seconds and says only that something goes on has waited for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from leporello.lazy_regex import lazy_regex
from leporello.messages import ToolCall, parse_json
from leporello.tools.base import ToolResult

LONGEST_STATE = 2_000  # of characters: what tells a state is short
LONGEST_LOOK = 1_000  # of characters: so is a command that asks for one
LONGEST_WAIT = 300  # of characters: what a call says that waited and nothing else
LONGEST_KEY = 60  # of characters: the name of an argument
SLOW_SECONDS = 2.0  # a call that took so long may have waited, whatever it is called
_STATE = (
    r"(?:pending|queued|scheduled|waiting|running|processing|starting|activating|creating|building|deploying|rebooting"
    r"|provisioning|initiali[sz]ing|installing|downloading|uploading|pulling|loading|booting|syncing|in[ _-]?progress)"
)
_UNDER_WAY = lazy_regex(rf"(?<![\w/.\\-])(?:{_STATE}|0/\d+)(?![\w/\\]|[.-]\w)", re.IGNORECASE)
"""Something goes on; a name that holds the word says nothing."""
_SETTLED = lazy_regex(
    rf"(?:\b(?:not?|never|none|0)|n't|\bactive)\b(?: (?!yet)[a-z]{{1,20}})?(?: is| are)? \(?{_STATE}\b"
    rf"|\b{_STATE}[\"']?\s{{0,4}}[:=]\s{{0,4}}[\"']?0\b",
    re.IGNORECASE,
)
"""Nothing goes on: "not running", "active (running)", "pending: 0"."""
_NOT_YET = lazy_regex(
    r"\b(?:connection refused|no response|(?:not|n't) (?:yet )?(?:ready|available|up|running)|unavailable"
    r"|(?:is )?starting up|try again)\b",
    re.IGNORECASE,
)
_GOES_ON = lazy_regex(
    r"\b(?:acquiring|blocking|compiling|refreshing|still (?:working|going|busy|open|alive|in)|please wait"
    r"|not (?:yet )?(?:done|finished|complete|completed|ready))\b",
    re.IGNORECASE,
)
"""What else a call says that waited: too common in other texts to tell a state by itself."""
_ENDED = lazy_regex(
    r"(?<!not )(?<!not yet )\b(?:finished|done|completed?|succeeded|success|passed|failed|up to date|error|stopped)\b",
    re.IGNORECASE,
)
_SEGMENT = lazy_regex(r"(?:'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|[^'\"\\;|&\n])+", re.DOTALL)
"""What stands between the operators of a command line."""
_QUOTED = lazy_regex(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_NO_OUTPUT_FILE = lazy_regex(r"(?:[012]?>>?|&>)[ \t]*/dev/null|[12]?>&[12]")
_BEFORE = lazy_regex(r"(?:(?:\w+=\S*|sudo|time|nice|command|timeout(?:[ \t]+-\S+)*[ \t]+\S+|watch[ \t]+-\S+)[ \t]+)*")
"""What may stand before a program's name: variables, and programs that start others."""
_SLEEP = lazy_regex(r"(?:sleep|Start-Sleep)\b\D*(?!0+(?:\.0*)?(?:\D|$))\d")
_AROUND = frozenset(
    "sleep start-sleep echo printf cd date true : grep egrep jq yq awk cut sort uniq wc head tail tr column ls"
    " test [".split()
)
"""Programs that stand beside a look, or behind it in a pipe."""
_NO_LOOKS = frozenset(
    "cat less more bat git rg ag ack find fd locate tree sed perl ed vi vim nano emacs cp mv rm ln mkdir touch tee"
    " dd patch chmod chown python python3 node ruby make npm pip cargo go pytest diff strings xxd od".split()
)
"""Programs that read, search, change or work: behind a `sleep` too they look at no state."""
_READERS = _NO_LOOKS - frozenset("python python3 node ruby make npm pip cargo go pytest".split())
"""Those that show or change files. The others may wait for something: a lock, a job, a server."""
_ELSEWHERE = lazy_regex(
    r"(?:ssh|(?:docker|podman|nerdctl|docker-compose)(?: compose)?(?: (?:-f|-p|--file) \S+)* exec)"
    r"(?: -[bceFiIJLlmopQRSuWwD] [^\s-]\S*| -\S+)* [^\s-]\S* (?=\S)"
    r"|(?:kubectl|oc)(?: -\S+ \S+)* exec\b[^\n]{0,200}? -- (?=\S)"
)
"""What runs a command on another machine or in a container."""
_LOOKS = lazy_regex(
    r"(?:kubectl|oc)(?: -\S+(?: [^\s-]\S*)?)*? (?:get|describe|rollout status|wait|logs|top)\b"
    r"|(?:docker|podman|nerdctl|docker-compose)(?: compose| container| service)?(?: -\S+ \S+)*"
    r" (?:ps|inspect|logs|stats|wait|top|ls)\b"
    r"|(?:gh|glab|az|aws|gcloud|doctl|flyctl|fly|heroku|vercel|railway|netlify|eb|cf|argocd|nomad|helm|pm2|hub|circleci)"
    r"(?: (?!cp\b|mv|rm|sync|create|delete|put|set|update)[a-z][\w:-]*){0,3}?"
    r" (?:view|list|ls|ps|watch|checks|show|status|logs|history|inspect|get|wait"
    r"|(?:get|list|describe|wait)-[\w-]+|describe)\b"
    r"|systemctl(?: -\S+)* (?:status|is-active|is-failed|show)\b|(?:service|rc-service) \S+ status\b"
    r"|(?:supervisorctl|initctl|launchctl) (?:status|list)\b|crm_mon\b"
    r"|(?:ps|pgrep|pidof|jobs|squeue|sacct|qstat|bjobs|condor_q|sinfo|nvidia-smi|uptime|journalctl|dmesg)\b"
    r"|(?:ping|nc|ncat|pg_isready|mysqladmin|ss|netstat|nslookup|dig|host|wait-for-it(?:\.sh)?)\b"
    r"|redis-cli (?:ping|info)\b",
    re.IGNORECASE,
)
_PROBES = frozenset("curl wget http httpie nc ncat ping pg_isready mysqladmin redis-cli nslookup dig host".split())
"""Programs that fail where something is not there yet."""
_STATES = frozenset(
    "status statuses state health healthz healthy healthcheck ready readyz readiness isready livez liveness progress"
    " poll ping wait watch await".split()
)
_SENDS = lazy_regex(r" (?:-d|-F|-T|--data\S*|--form|--json|--upload\S*|--post\S*)\b|\b(?:POST|PUT|PATCH|DELETE)\b")
_LOCAL = lazy_regex(r"(?:\w+://)?(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])\b")
_ONE_JOB = lazy_regex(
    r"/(?:job|task|run|build|deployment|operation|pipeline|workflow|execution|batch(?:e)?)s?/[\w-]*\d"
)
_LOG = lazy_regex(r"\.(?:log|out|err)\b|\b(?:log|nohup|syslog|messages)\b|/logs?/", re.IGNORECASE)
_NAME_WORDS = lazy_regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_TOOL_LOOKS = _STATES | frozenset("check checks job jobs output monitor sleep receive listen".split())
_TOOL_WORKS = frozenset(
    "read write edit patch search find grep glob file files git create update set delete add start run list".split()
)
_TOOL_FILES = frozenset("write edit patch search find grep glob file files git".split())
_PATHS = frozenset("path paths filepath file files filename filenames".split())
_TOOL_SHOWS = frozenset("get describe show view".split())
_TOOL_JOBS = frozenset("task run build deployment deploy pipeline operation execution workflow batch pod pods".split())


def is_under_way(call: ToolCall, result: ToolResult, *, failed: bool, seconds: float = 0.0) -> bool:
    """Whether a call looks at something, and it goes on or is not there yet.

    What failed counts only where a program was to find out whether something is there. A call that is not known to ask
    for a state must have taken `seconds`, and read no file.
    """
    if len(result.text) > LONGEST_STATE:
        return False
    if failed:
        command = _command(parse_json(call.arguments))
        return bool(command) and _looks(command, _PROBES) and _NOT_YET.search(result.text) is not None
    told = _SETTLED.sub(" ", result.status.partition("\n")[0] + "\n" + result.text)
    if asks_state(call):
        return _UNDER_WAY.search(told) is not None
    if seconds < SLOW_SECONDS or len(result.text) > LONGEST_WAIT or _reads_files(call):
        return False
    return _ENDED.search(told) is None and (_UNDER_WAY.search(told) or _GOES_ON.search(told)) is not None


def asks_state(call: ToolCall) -> bool:
    """Whether a call asks for a state, or waits for one, and does nothing besides."""
    command = _command(parse_json(call.arguments))
    return _looks(command) if command else _is_status_tool(call.name)


def _reads_files(call: ToolCall) -> bool:
    """Whether a call shows, searches or changes files: the words of them tell no state."""
    given = parse_json(call.arguments)
    keys = given if isinstance(given, dict) else ()
    named = {word.lower() for key in keys for word in _NAME_WORDS.findall(str(key)[:LONGEST_KEY])}
    if not named.isdisjoint(_PATHS):
        return True
    command = _command(given)
    if not command:
        return not _TOOL_FILES.isdisjoint(word.lower() for word in _NAME_WORDS.findall(call.name))
    programs = [words[0].rpartition("/")[2].lower() for words in _commands(command[:LONGEST_LOOK])]
    return not _READERS.isdisjoint(programs) or _AROUND.issuperset(programs)


def _command(given: Any) -> str:
    """The command line of a call, also of one that gives it word by word."""
    command = given.get("command", given.get("cmd")) if isinstance(given, dict) else None
    if isinstance(command, list) and command:
        command = command[-1] if str(command[0]).endswith("sh") else " ".join(map(str, command))
    return command if isinstance(command, str) else ""


def _is_status_tool(name: str) -> bool:
    words = {word.lower() for word in _NAME_WORDS.findall(name)}
    if not words.isdisjoint(_TOOL_SHOWS) and not words.isdisjoint(_TOOL_JOBS):
        return True
    return not words.isdisjoint(_TOOL_LOOKS) and words.isdisjoint(_TOOL_WORKS)


def _looks(command: str, only: frozenset[str] = frozenset()) -> bool:
    """Whether a command line asks for a state and does nothing besides; with `only`, by one of these programs."""
    if len(command) > LONGEST_LOOK:
        return False
    line = _NO_OUTPUT_FILE.sub(" ", command)
    if ">" in _QUOTED.sub("", line):
        return False
    slept = looked = False
    for words in _commands(line):
        program = words[0].rpartition("/")[2].lower()
        if _asks_state(program, words):
            looked = looked or not only or program in only
        elif _SLEEP.match(" ".join(words)):
            slept = True
        elif program not in _AROUND:
            # Behind a wait any program may be the look but those that do something else.
            if not slept or program in _NO_LOOKS:
                return False
            looked = looked or not only
    return looked


def _commands(line: str) -> list[list[str]]:
    """The words of each command of a line, without what only starts it or runs it elsewhere."""
    found: list[list[str]] = []
    for segment in _SEGMENT.findall(line):
        words = _started(segment.strip()).split()
        elsewhere = _ELSEWHERE.match(" ".join(words))
        if elsewhere:
            inner = " ".join(words)[elsewhere.end() :].strip()
            if inner[0] in "'\"" and inner[-1] == inner[0]:
                # One text, as a shell over there reads it; what is quoted within is left alone.
                found += [part for text in _SEGMENT.findall(inner[1:-1]) if (part := _started(text.strip()).split())]
                continue
            words = _started(inner).split()
        if words:
            found.append(words)
    return found


def _started(said: str) -> str:
    before = _BEFORE.match(said)
    return said[before.end() if before else 0 :]


def _asks_state(program: str, words: Sequence[str]) -> bool:
    text = " ".join((program, *words[1:]))
    if program in ("curl", "wget", "http", "httpie"):
        return not _SENDS.search(text) and any(map(_is_state_address, words[1:]))
    if program in ("tail", "cat", "head", "less"):
        files = [word for word in words[1:] if not word.startswith("-") and not word.isdigit()]
        of_state = [_has_state(word) or (program == "tail" and _LOG.search(word) is not None) for word in files]
        return bool(of_state) and all(of_state)
    if _LOOKS.match(text):
        return True
    return program not in _NO_LOOKS | _AROUND and any(map(_has_state, words[:3]))


def _is_state_address(word: str) -> bool:
    word = word.strip("'\"")
    return bool(_LOCAL.match(word) or _ONE_JOB.search(word) or ("/" in word and _has_state(word)))


def _has_state(word: str) -> bool:
    """Whether a word of a command names a state: `status`, `./deploy_status.sh`, but no source file."""
    return not _STATES.isdisjoint(part.lower() for part in _NAME_WORDS.findall(word)) and not _SOURCE.search(word)


_SOURCE = lazy_regex(r"\.(?:py|js|jsx|ts|tsx|c|h|cc|cpp|hpp|rs|go|java|kt|rb|php|md|rst|html|css|vue|swift|scala)\b")
