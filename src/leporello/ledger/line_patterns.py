"""What a line of output or a sentence looks like: the few shapes that a handoff needs to know."""

from __future__ import annotations

import re

_I = re.IGNORECASE

ERROR = re.compile(
    r"\b(?:errors?|fail(?:s|ed|ure|ures|ing)?|fatal|panic|exception|traceback|cannot|can't|couldn't|unable|undefined|denied"
    r"|refused|not found|no such|timed? ?out|invalid|unexpected|mismatch|abort(?:ed)?|missing|unknown|conflict|rejected"
    r"|killed|broken|E[A-Z]{5,}|TS\d{4})\b|\w(?:Error|Exception)\b|[✗✘❌]|错误|失败|异常|无法|エラー|失敗|ошибк",
    _I,
)
COMMITTED = re.compile(r"^\s*\[[\w./() -]+ [0-9a-f]{7,}\] |^[0-9a-f]{7,12} \S|^commit [0-9a-f]{40}")
FAILED_TEST = re.compile(r"^\s*(?:FAILED|FAIL|ERROR|--- FAIL:?|✗|✕|×|not ok)\s+\S+")
EXCEPTION = re.compile(
    r"^\s*(?:[\w.]+\.)?\w*(?:Error|Exception|Warning|Exit)\b:? |^panic: |^fatal: |^npm ERR|^error\b", _I
)
FAILED_TEST = re.compile(r"^\s*(?:FAILED|FAIL|ERROR|--- FAIL:?|✗|✕|×|not ok)\s+\S+")
EXCEPTION = re.compile(
    r"^\s*(?:[\w.]+\.)?\w*(?:Error|Exception|Warning|Exit)\b:? |^panic: |^fatal: |^npm ERR|^error\b", _I
)
EXCEPTION = re.compile(
    r"^\s*(?:[\w.]+\.)?\w*(?:Error|Exception|Warning|Exit)\b:? |^panic: |^fatal: |^npm ERR|^error\b", _I
)
SUMMARY_LINE = re.compile(
    r"\b\d+ files? changed|\b\d+ (?:passed|failed)\b|^ok\s+\S+\s|^Ran \d+|^Tests?:|^Total\b|^Found \d+", _I
)
DECISION = re.compile(
    r"\b(?:because|since|so that|instead|rather than|decid\w+|chose|choose|recommend\w*|prefer\w*|better|cleaner"
    r"|simpler|simplest|trade-?offs?|approach|option|conclu\w+|therefore|makes? (?:it|sense)|reason|root cause"
    r"|the (?:issue|problem|bug|fix)"
    r"|turns out|actually|should|means|adds? complexity|risk|keep|drop|remove|avoid|why|design)\b"
    r"|因为|所以|决定|选择|采用|改用|建议|原因|而不是|方案",
    _I,
)
INTENT = re.compile(
    r"^(?:\*\*)?(?:now,? |ok(?:ay)?[,.]? |good[,.!]? |great[,.!]? |perfect[,.!]? |excellent[,.!]? )*"
    r"(?:let me|let's|i'll|i will|i need to|i'm going to|next,? i|first,? i|now i|我来|让我|接下来)\b",
    _I,
)
QUESTION = re.compile(r"[?？]\W*$")
