"""Patterns of what stands around rules: code, clauses, lead-ins, assent, taking back. `leporello.ledger.rules` uses them.

A line that begins with `#` is a comment. English patterns ignore case. What may stand between two words is bounded by the
longest sentence that is read (2,000 characters): a repeat without a bound would read the rest again at every first word.
"""

from __future__ import annotations

import re


def any_of(block: str, before: str = "", after: str = "") -> re.Pattern[str]:
    lines = (line.strip() for line in block.splitlines())
    alternatives = "|".join(line for line in lines if line and not line.startswith("# "))
    return re.compile(f"{before}(?:{alternatives}){after}", re.IGNORECASE)


CODE_LIKE = re.compile(
    "|".join(
        (
            r"^\s*(?:[>|$#%](?!\s?\d)|```|\+|at \S+:\d|File \"|\d{4}-\d\d-\d\d|\[\w+\]|</?\w[^>]*>\s*$)",
            r"^\s*(?:(?:async )?def |class \w+[:(]|(?:import|from) [\w.]+( import|$|;)|(?:const|let|var) \w+\s*=)",
            r"^\s*(?:raise|return|assert) [\w.]+[(\s]|^\s*\w+ = [\w.\"'\[{(]|^\s*[\w.]+\([^)]*\)\s*$|[{};]\s*$",
            r"^\s*[\w./-]+: (?:error|warning|fatal)\b|^\w+(?:Error|Exception): |\bTraceback \(most",
            r"^\s*(?:(?:FATAL|ERROR|WARN(?:ING)?|INFO|DEBUG|FAILED|PASSED|FEHLER|WARNUNG|ERREUR|ERRO|ERRORE|AVISO|ОШИБКА)\b|(?:错误|警告|エラー|警告|오류|경고) ?[:：])",
            r"^\(?[\w.-]{1,40}\)? ?[\w.-]{1,40}@[\w.-]{1,60}[:~]",
            # Columns, and listings with line numbers.
            r"\t|^\s*\d+\s*[█│┃|]|^\s*\d+:\s{2,}",
        )
    )
)
"""Pasted code, logs and tables: nobody says them."""


CLAUSE = re.compile(
    r"(?<=[\w\"'`)\]*])[.;:!?]+\s+|,\s*|\s(?:[-–—>]+|→)\s|—|\s{0,99}[()]\s*"
    r"|\s{1,99}(?:but|and|so|then|because|since|or|though|as long as)\s+",
    re.IGNORECASE,
)


LEAD_IN = any_of(
    r"""
    [\W_]+
    \d+[.)]\s
    (?:please|pls|kindly|also|additionally|ok|okay|yes|yep|yeah|no|nope|nah|well|now|then|just|and|but|so|again|actually|instead)
    (?:btw|fyi|lastly|finally|first|second|next|hey|hi|thanks|sorry|important|note|reminder|rule|wait|remember|maybe|perhaps)
    (?:for now|from now on|going forward|from here on|in general|generally|in (?:the )?future|for the future|henceforth)
    (?:one more thing|to be clear|i think(?: that)?|i'd say|let'?s|try to|/\w+|if possible|ideally|at all times|for the record)
    (?:in|for|inside|within|under|across|with|on|at|during) (?:this|that|the|these|all|any|every|each|our|your|my|new) [^,]{1,40}?(?=,)
    (?:when|whenever|before|after|while|if) [^,]{1,50}?(?=,)
    (?:can|could|would|will) (?:you|we)(?: please| maybe| just| also)*
    i(?:'d| would)? (?:want|like|need|expect|ask) (?:you|us) to
    (?:we|you)(?: also| still| really| do)* (?:need to|have to|must|should)
    you(?:'d| should| must| need to| have to| can| may)? (?:better )?(?=(?:always|never|not|only)\b)
    """,
    before="^",
    after=r"(?=[\s,:;!.]|$|(?<=\W))[\s,:;!.]*",
)
"""What may stand before an order without changing it."""


YES = re.compile(
    r"^\W*(?:yes|yep|yeah|yup|sure|ok|okay|fine|approved|agreed|lgtm|sounds good|correct|exactly|right)\b[,.! ]+(?:please )?"
    r"(?:you (?:can|may)|go|do|proceed|delete|push|merge|deploy|commit|remove|drop|ship|release|overwrite|cancel|install|send"
    r"|i(?:'d| would) like to proceed)\b",
    re.IGNORECASE,
)


BARE_ASSENT = re.compile(
    r"\b(?:yes|yep|yeah|yup|sure|ok|okay|fine|please|pls|go|ahead|do|did|proceed|with|and|it|that|this|those|these|them|so|the|all"
    r"|you|can|may|start|process|changes?|steps?|now|thanks|for|me|then|just|of|make|i|am|i'm|is|sounds|good)\b|\W",
    re.IGNORECASE,
)
"""Words of assent that don't say to what."""


POLITE = re.compile(r"^\W*(?:can|could|would|will) (?:you|we)\b", re.IGNORECASE)


SUBJECT = re.compile(r"^\W*(?:i|we|they|he|she|it|this|that|there)\b", re.IGNORECASE)


REVOKES = any_of(
    r"""
    \bnever ?mind\b
    \bforget (?:about )?(?:that|the|what i said|my|it)\b
    \bscratch that\b
    \b(?:drop|remove|lift|cancel|withdraw|retract|undo) (?:that|the|this|my) (?:.{0,40}?)?(?:rule|requirement|constraint|restriction|limit|ban)\b
    \bno longer (?:need|required?|necessary|appl\w+|valid|in force|matters?|off)\b
    \b(?:no need (?:to|for)|need not|needn'?t|(?:don'?t|do not) (?:have|need) to)\b
    \byou (?:can|may) (?:now |again )?(?:ignore|skip|stop)\b
    \bignore (?:that|my|the|what i said)\b
    \b(?:i(?:'ve)? )?changed? my mind\b
    \b(?:take back what|i take (?:it|that) back)\b
    \blift(?:ed)? the\b
    \bthat rule\b
    \b(?:does|do)(?: not|n'?t) (?:matter|apply)\b
    \bnot (?:needed|necessary|required) any ?more\b
    \bany ?more[.!]?$
    \b(?:as you like|after all|on second thoughts?)\b
    不用再|取消|可以不用|忽略(?:之前|刚才|我)|不再(?:需要|要求|适用|限制|有效)|之前说的.{0,2000}(?:作废|不算)|作废|不作数|不必再|无需再|已经解决
    """
)


CANCEL = any_of(
    r"""
    (?:please )?(?:stop|cancel|abort|never ?mind|forget it|leave it|that'?s (?:all|enough))
    停|取消|算了|不用了|停止|停下|别做了
    """,
    before=r"^\W*",
    after=r"\W*(?:it|that|this|now|here|everything|work(?:ing)?|please|for now|吧|了|一下)?\W*$",
)


BAN_HEADING = re.compile(
    r"^\W*(?:never|don'?ts?|do not|avoid|must not|forbidden|not allowed|red flags|anti-?patterns|不要|禁止|避免)(?: do)?\W*$",
    re.IGNORECASE,
)
"""A heading that turns the list below it into bans."""


LIST_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s")
