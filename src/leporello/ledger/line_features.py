"""Units, the smallest pieces of a message that can be kept on their own, and what each looks like. No model."""

from __future__ import annotations

import re
from collections.abc import Iterator

CUT_MARK = " […] "
MAX_UNIT_CHARS = 420
MAX_LINES_READ = 6_000
"""A huge output is read at both ends; the middle of it is in the log and in the search index."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'(`*A-Z0-9\u00c0-\u024f])|(?<=[。！？；])\s*")
_BLANK_OR_RULE = re.compile(r"^[\s\-=_*#|+~.>`]*$")
_MARKUP_NOISE = re.compile(r"^</?[\w-]+>$")


def lines_of(text: str) -> Iterator[tuple[str, int, int]]:
    """The non-empty lines of tool output with their position and the total number."""
    lines = [line for line in text.split("\n") if not _BLANK_OR_RULE.match(line)]
    total = len(lines)
    if total > MAX_LINES_READ:
        half = MAX_LINES_READ // 2
        chosen = [*enumerate(lines[:half]), *enumerate(lines[-half:], total - half)]
    else:
        chosen = list(enumerate(lines))
    for position, line in chosen:
        yield clip(line.rstrip()), position, total


def sentences_of(text: str, limit: int = MAX_UNIT_CHARS) -> list[str]:
    """The sentences of prose: paragraphs and list items are split at sentence ends, code lines stay whole."""
    found: list[str] = []
    for line in text.split("\n"):
        bare = line.strip()
        if not bare or _BLANK_OR_RULE.match(bare) or _MARKUP_NOISE.match(bare):
            continue
        pieces = _SENTENCE_END.split(bare) if len(bare) > 60 else [bare]
        found.extend(clip(piece.strip(), limit) for piece in pieces if piece and piece.strip())
    return found


def clip(text: str, limit: int = MAX_UNIT_CHARS) -> str:
    """The text itself, or its beginning and end around a visible cut mark."""
    if len(text) <= limit:
        return text
    room = limit - len(CUT_MARK)
    front = room * 2 // 3
    return text[:front].rstrip() + CUT_MARK + text[-(room - front) :].lstrip()


_I = re.IGNORECASE

ERROR = re.compile(
    r"\b(?:errors?|fail(?:s|ed|ure|ures|ing)?|fatal|panic|exception|traceback|cannot|can't|couldn't|unable|undefined|denied"
    r"|refused|not found|no such|timed? ?out|invalid|unexpected|mismatch|abort(?:ed)?|missing|unknown|conflict|rejected"
    r"|killed|broken|E[A-Z]{5,}|TS\d{4})\b|\w(?:Error|Exception)\b|[✗✘❌]|错误|失败|异常|无法|エラー|失敗|ошибк",
    _I,
)
STRONG_ERROR = re.compile(
    r"^\s*(?:E   |error\b|fail(?:ed|ure)?\b|fatal:|panic:|[\w.]*(?:Error|Exception)\b|--- FAIL|[✗❌])"
    r"|:\s*(?:fatal )?error\b|\berror TS\d+|\([a-z]+\)$|\bexit (?:code|status)\b",
    _I,
)
COMMITTED = re.compile(r"^\s*\[[\w./() -]+ [0-9a-f]{7,}\] |^[0-9a-f]{7,12} \S|^commit [0-9a-f]{40}")
FAILED_TEST = re.compile(r"^\s*(?:FAILED|FAIL|ERROR|--- FAIL:?|✗|✕|×|not ok)\s+\S+")
EXCEPTION = re.compile(
    r"^\s*(?:[\w.]+\.)?\w*(?:Error|Exception|Warning|Exit)\b:? |^panic: |^fatal: |^npm ERR|^error\b", _I
)
TRACE_PLACE = re.compile(r"^\s*File \".*\", line \d+|^\s*at .+:\d+")
SUMMARY_LINE = re.compile(
    r"\b\d+ files? changed|\b\d+ (?:passed|failed)\b|^ok\s+\S+\s|^Ran \d+|^Tests?:|^Total\b|^Found \d+", _I
)
WARNING = re.compile(r"\bwarn(?:ing)?s?\b|警告", _I)
OUTCOME = re.compile(
    r"\b\d+ (?:passed|failed|skipped|files? changed|insertions?|deletions?|tests?|errors?|warnings?|issues?|lines?|matches"
    r"|occurrences?|packages?|commits?|files?)\b|^ok\s|\bPASS\b|\b\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds|[kmg]b|%)(?!\w)"
    r"|\bsuccess|\bcreated\b|\bdone\b|\bbuilt\b|\btotal\b|\bup[- ]to[- ]date\b|\bcomplete[ds]?\b|\bmerged\b|通过|成功|完成",
    _I,
)
HASH = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
GREP_HIT = re.compile(r"^\s*[\w./@-]+\.\w{1,5}[:-]\d+[:-]")
# Names start where their run of characters starts, so that a long run is read once and not again from each character.
PLACE = re.compile(r"(?<![\w/-])[\w/-]++\.\w{1,5}:\d+|\blines? \d+|\(\d+,\d+\)")
PATH = re.compile(
    r"/[\w./@-]"
    r"|(?<![\w-])-*+\w[\w-]*+\.(?:py|go|ts|tsx|js|jsx|json|md|ya?ml|toml|rs|sql|sh|c|h|cpp|java|rb|txt|cfg)\b"
)
URL = re.compile(r"https?://")
VERSION = re.compile(r"\bv?\d+\.\d+\.\d+|[=@-]\d+\.\d+")
NUMBER = re.compile(r"\d")
UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-")
LINE_NUMBER = re.compile(r"^\s*\d+\s*(?:→|\t|:|\|)")
DEFINITION = re.compile(r"\b(?:func|def|class|type|interface|struct|const|export|function|enum|impl|fn)\b")
CODE = re.compile(r"[{};]\s*$|^\s*(?:(?:return|if|for|while|import|from)\b|//|#|\*|/\*|<)")
QUOTE = re.compile(r"['\"`“”「]")
FLAG = re.compile(r"(?<!\w)--?[a-z][\w-]+")
TEST = re.compile(r"\btests?\b|测试", _I)
DECISION = re.compile(
    r"\b(?:because|since|so that|instead|rather than|decid\w+|chose|choose|recommend\w*|prefer\w*|better|cleaner|simpler"
    r"|simplest|trade-?offs?|approach|option|conclu\w+|therefore|makes? (?:it|sense)|reason|root cause|the (?:issue|problem|bug|fix)"
    r"|turns out|actually|should|means|adds? complexity|risk|keep|drop|remove|avoid|why|design)\b"
    r"|因为|所以|决定|选择|采用|改用|建议|原因|而不是|方案",
    _I,
)
FINDING = re.compile(
    r"\b(?:found|there (?:are|is|were)|fixed|added|updated|removed|renamed|changed|created|implemented|now|passes|passing"
    r"|works?|working|confirmed|verified|total|only|both|all|none|no longer|already|exists?|contains?|shows?|returns?|uses?)\b"
    r"|发现|修复|新增|更新|删除|已",
    _I,
)
INTENT = re.compile(
    r"^(?:\*\*)?(?:now,? |ok(?:ay)?[,.]? |good[,.!]? |great[,.!]? |perfect[,.!]? |excellent[,.!]? )*"
    r"(?:let me|let's|i'll|i will|i need to|i'm going to|next,? i|first,? i|now i|我来|让我|接下来)\b",
    _I,
)
LIST_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s")
HEADING = re.compile(r"^\s*#{1,5}\s|^\*\*[^*]+\*\*:?$")
TABLE = re.compile(r"^\s*\|.*\|\s*$")
QUESTION = re.compile(r"[?？]\s*$")
EMPHASIS = re.compile(r"\*\*|`")

# A dotted name starts at the first letter of its word: where it fails there, it fails at every later letter. More than two
# digits before it are an identifier of their own, and what follows them has a bound.
_W = "[A-Za-z0-9_]"
_FIRST_LETTER = rf"(?:(?<!{_W})|(?<=[0-9])(?<!{_W}[0-9])|(?<=[0-9][0-9])(?<!{_W}[0-9][0-9]))[A-Za-z_]"
IDENTIFIER = re.compile(
    rf"(?:{_FIRST_LETTER}{_W}*+|(?<=[0-9][0-9][0-9])[A-Za-z_]{_W}{{0,400}}+)(?:[./:-]{_W}++)++"
    r"|(?<![A-Za-z])[A-Za-z]+[A-Z_][A-Za-z0-9_]+|\b[0-9a-f]{7,40}\b|\d+\.\d+[\w.]*|\d{3,}"
)

_SHARED_PATTERNS: dict[str, re.Pattern[str]] = {
    "error": ERROR,
    "committed": COMMITTED,
    "failed_test": FAILED_TEST,
    "exception": EXCEPTION,
    "trace_place": TRACE_PLACE,
    "summary_line": SUMMARY_LINE,
    "outcome": OUTCOME,
    "hash": HASH,
    "place": PLACE,
    "path": PATH,
    "url": URL,
    "version": VERSION,
    "number": NUMBER,
    "quote": QUOTE,
    "flag": FLAG,
    "code": CODE,
}
TOOL_PATTERNS = _SHARED_PATTERNS | {
    "strong_error": STRONG_ERROR,
    "warning": WARNING,
    "grep_hit": GREP_HIT,
    "uuid": UUID,
    "line_number": LINE_NUMBER,
    "definition": DEFINITION,
}
PROSE_PATTERNS = _SHARED_PATTERNS | {
    "test": TEST,
    "decision": DECISION,
    "finding": FINDING,
    "intent": INTENT,
    "list_item": LIST_ITEM,
    "heading": HEADING,
    "table": TABLE,
    "question": QUESTION,
    "emphasis": EMPHASIS,
}


def line_features(text: str, patterns: dict[str, re.Pattern[str]]) -> frozenset[str]:
    return frozenset(name for name, pattern in patterns.items() if pattern.search(text))


def identifiers(text: str, limit: int = 12) -> tuple[str, ...]:
    """The first distinct identifiers of a text: dotted and slashed names, mixed-case symbols, hashes, numbers."""
    found: dict[str, None] = {}
    for match in IDENTIFIER.finditer(text):
        found[match.group()] = None
        if len(found) == limit:
            break
    return tuple(found)


_COMMANDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "git_write",
        re.compile(r"\bgit (?:-\S+ )*(?:commit|push|merge|tag|rebase|cherry-pick|revert)\b|\bgh pr (?:create|merge)"),
    ),
    ("git_read", re.compile(r"\b(?:git|gh|hg|svn)\b")),
    ("search", re.compile(r"\b(?:rg|grep|ag|ack|findstr)\b")),
    (
        "check",
        re.compile(
            r"\b(?:pytest|jest|vitest|tox|nox|tsc|mypy|ruff|eslint|clippy|golangci-lint|unittest|ctest|phpunit|rspec)\b"
            r"|\b(?:test|tests|lint|check|build|typecheck|compile|ci)\b|\b(?:make|cargo|gradle|mvn|bazel)\b"
        ),
    ),
    (
        "install",
        re.compile(
            r"\b(?:pip3?|npm|pnpm|yarn|apt(?:-get)?|brew|uv|gem|go get)\b.{0,2000}\b(?:install|add|i|sync|get)\b"
        ),
    ),
    ("read", re.compile(r"(?:^|[;&|]\s*)(?:cat|sed -n|head|tail|nl|less|bat|type)\b")),
    ("list", re.compile(r"(?:^|[;&|]\s*)(?:ls|find|tree|fd|dir|du)\b")),
)

_TOOL_NAMES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("other", re.compile(r"todo|plan", _I)),
    ("read", re.compile(r"read|view|cat|open", _I)),
    ("search", re.compile(r"grep|search|find|query", _I)),
    ("list", re.compile(r"glob|^ls$|list|tree", _I)),
    ("edit", re.compile(r"edit|write|patch|replace|create|insert|update|delete|apply", _I)),
    ("agent", re.compile(r"task|agent|delegate", _I)),
    ("web", re.compile(r"web|fetch|http|browse|url", _I)),
)


def tool_class(name: str, command: str) -> str:
    """What kind of work a call does: by its command when it runs one, else by the tool's name."""
    text, kinds, other = (command, _COMMANDS, "shell") if command else (name, _TOOL_NAMES, "other")
    return next((label for label, pattern in kinds if pattern.search(text)), other)
