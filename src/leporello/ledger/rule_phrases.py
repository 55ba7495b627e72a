"""Patterns of what stands around rules: code, clauses, lead-ins, assent, taking back. `leporello.ledger.rules` uses them.

A line that begins with `#` is a comment. English patterns ignore case. What may stand between two words is bounded by the
longest sentence that is read (2,000 characters): a repeat without a bound would read the rest again at every first word.
"""

from __future__ import annotations

import re

from leporello.lazy_regex import lazy_regex


def any_of(block: str, before: str = "", after: str = "") -> re.Pattern[str]:
    lines = (line.strip() for line in block.splitlines())
    alternatives = "|".join(line for line in lines if line and not line.startswith("# "))
    return lazy_regex(f"{before}(?:{alternatives}){after}", re.IGNORECASE)


CODE_LIKE = lazy_regex(
    "|".join(
        (
            r"^\s*(?:[>|$#%](?!\s?\d)|```|\+|at \S+:\d|File \"|\[\w+\]|</?\w[^>]*>\s*$)",
            r"^\W{0,4}(?:\d{4}[-/.]\d\d[-/.]\d\d|\d\d[-/.]\d\d[-/.]\d{4}|\d\d:\d\d:\d\d|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d)|\blevel=\w",
            r"^\s*(?:(?:async )?def |class \w+[:(]|(?:import|from) [\w.]+( import|$|;)|(?:const|let|var) \w+\s*=)",
            r"^\s*(?:raise|return|assert) [\w.]+[(\s]|^\s*\w+ = [\w.\"'\[{(]|^\s*[\w.]+\([^)]*\)\s*$|[{};]\s*$",
            r"^\s*[\w./-]+: (?:error|warning|fatal)\b|^[\w.$]{1,200}(?:Error|Exception)\b|\bTraceback \(most",
            r"^\W{0,2}(?:fatal|uncaught|unhandled|parse|syntax) \w{0,12} ?(?:error|exception)\b|\bon line \d+\W*$",
            r"^\s*(?:(?:FATAL|ERROR|WARN(?:ING)?|INFO|DEBUG|FAILED|PASSED|FEHLER|WARNUNG|ERREUR|ERRO|ERRORE|AVISO|ОШИБКА)\b|(?:错误|警告|エラー|警告|오류|경고) ?[:：])",
            r"^\(?[\w.-]{1,40}\)? ?[\w.-]{1,40}@[\w.-]{1,60}[:~]",
            r"^\s*\*\*[^*]{1,200}\*\*:?\s*$",
            # Columns, and listings with line numbers.
            r"\t|^\s*\d+\s*[█│┃|]|^\s*\d+:\s{2,}",
        )
    )
)
"""Pasted code, logs and tables: nobody says them."""


YES = lazy_regex(
    r"^\W*(?:yes|yep|yeah|yup|sure|ok|okay|fine|approved|agreed|lgtm|sounds good|correct|exactly|right)\b[,.! ]+(?:please )?"
    r"(?:you (?:can|may)|go|do|proceed|delete|push|merge|deploy|commit|remove|drop|ship|release|overwrite|cancel|install|send"
    r"|i(?:'d| would) like to proceed)\b",
    re.IGNORECASE,
)


REASON = lazy_regex(
    r",? (?:because|since|due to|wegen|à cause d\w*|por (?:culpa|causa) d\w+|(?:a causa|per via) d\w+|из-за|weil|denn|parce qu\w*|car|puisqu\w*|porque|ya que|pois|já que|perch[éè]|poiché|потому что|так как"
    r"|поскольку)\b.{0,2000}$|、[^、。]{1,40}(?:ので|ため|から)。?$|[，,；;]? ?(?:因为|毕竟|不然|否则).{0,2000}$|^[^。]{1,80}?(?:ので|ため|から)、|^[^.]{1,80}?(?:니까|때문에|므로|라서),? ",
    re.IGNORECASE,
)
"""Why something is so: at the end of a sentence, in Japanese and Korean at its beginning."""


BARE_ASSENT = lazy_regex(
    r"\b(?:yes|yep|yeah|yup|sure|ok|okay|fine|please|pls|go|ahead|do|did|proceed|with|and|it|that|this|those|these|them|so|the|all"
    r"|you|can|may|start|process|changes?|steps?|now|thanks|for|me|then|just|of|make|i|am|i'm|is|sounds|good"
    r"|ja|oui|sí|sim|sì|да)\b|好的?|可以|行|はい|네|\W",
    re.IGNORECASE,
)
"""Words of assent that don't say to what."""


PASTED = lazy_regex(
    r"\b(?:logs?|log ?file|output|console|terminal|stack ?trace|traceback|error|warning|message|readme|docs?|documentation|wiki"
    r"|manual|article|e?mail|ticket|comment|page|sign|leaflet|transcript|voicemail|letter|policy|minutes|blog|forum|review|protokoll|ausgabe|konsole|fehler(?:meldung)?|anleitung|meldung|journal|sortie|erreur"
    r"|notice|registro|salida|consola|manual|saída|erro|mensagem|mensaje|messaggio|registro|uscita|errore|журнал\w*|лог\w*|вывод\w*|ошибк\w*"
    r"|сообщени\w*|инструкци\w*|вики)\b|日志|输出|报错|错误|文档|说明书|维基|ログ|出力|エラー|ドキュメント|ウィキ|説明書|로그|출력|오류|문서",
    re.IGNORECASE,
)
"""What one pastes from. A line with such a word and a colon at its end is followed by what somebody else wrote."""


REVOKES = any_of(
    r"""
    \bnever ?mind\b
    \bforget (?:about )?(?:that|the|what i said|my|it)\b
    \bscratch that\b
    \b(?:drop|remove|lift|cancel|withdraw|retract|undo) (?:that|the|this|my) (?:.{0,40}?)?(?:rule|requirement|constraint|restriction|limit|ban)\b
    \bno longer (?:have to|has to|need|required?|necessary|appl\w+|valid|in force|matters?|off)\b
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
    不用再|取消|忘掉|忘记(?:我|之前|刚才)|可以不用|忽略(?:之前|刚才|我)|不再(?:需要|要求|适用|限制|有效)|之前说的.{0,2000}(?:作废|不算)|作废|不作数|不必再|无需再|已经解决
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


BAN_HEADING = lazy_regex(
    r"^\W*(?:never|don'?ts?|do not|avoid|must not|forbidden|not allowed|red flags|anti-?patterns|不要|禁止|避免)(?: do)?\W*$",
    re.IGNORECASE,
)
"""A heading that turns the list below it into bans."""


LIST_ITEM = lazy_regex(r"^\s*(?:[-*•]|\d+[.)])\s")
