"""What of a user's message somebody else wrote: code, mails, files, chats, outputs, and what claims to be another role.

Nothing of it is the user's rule or statement, however it is worded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from leporello.lazy_regex import lazy_regex

CARRIES_WORDS = lazy_regex(
    r"(?:^|[-_:])(?:args|arguments|ask|description|feedback|goal|instructions?|issue|objective|prompt|problem|query|question"
    r"|request|requirements?|rules?|task)\Z",
    re.IGNORECASE,
)
"""Tags around what people say themselves."""
_FENCE = lazy_regex(
    r"^[ \t]*(?:(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[ \t]*$|\Z)|([\"'])\2\2[ \t]*\n.*?^[ \t]*\2{3}[ \t]*$)",
    re.MULTILINE | re.DOTALL,
)


@lru_cache(maxsize=4)
def prose(text: str) -> str:
    """The text without what is quoted: fenced code, mails, files, and what stands below a line that says so.

    A message is asked for it twice in a row: for its units, and for its rules.
    """
    text = _FENCE.sub(f"\n{_FENCED}\n", text) if any(fence in text for fence in _FENCES) else text
    text = "\n".join(_unquoted(text.split("\n")))
    text = "\n".join(map(_without_element, text.split("\n"))) if "</" in text else text
    return (
        _SAID.sub(lambda said: said["asked"] or said["given"] or "", text)
        if any(sign in text for sign in ':："“„«')
        else text
    )


def _unquoted(lines: list[str]) -> Iterator[str]:
    """The lines somebody wrote himself.

    What is brought reaches to the end, to a question or a request about it, or to where a file ends.
    """
    quoted = file = short = code = False
    closes = max((place for place, line in enumerate(lines) if _FILE_END.match(line.strip())), default=-1)
    documents = _documents(lines)
    own = ""
    for place, line in enumerate(lines):
        bare = line.strip()
        if bare == _FENCED:
            quoted = file
            continue
        if file and (_FILE_END.match(bare) or _USER_AGAIN.match(bare)):
            file = quoted = False
            continue
        if quoted and not file and (_comments(bare) or (short and not bare)):
            quoted = False
        elif file and place > closes and not lines[place - 1].strip() and _comments(bare):
            file = quoted = False
        if not quoted and (
            _FILE_HEAD.match(bare) or _is_mail(lines, place) or (place < closes and _BEGINS.match(bare))
        ):
            file = quoted = True
        if not quoted and _is_claimed(bare, lines):
            file = quoted = True
        # Markdown's other way to set off a block.
        code = line.startswith(("    ", "\t")) and (
            code or (own.endswith(("?", "？")) and not lines[place - 1].strip())
        )
        if not quoted and _is_prompt(bare):
            quoted, short = True, bool("".join(lines[place + 1 : place + 2]).strip())
        elif _is_marked(bare):
            # It says for itself that it is quoted: what follows may be the answer to it.
            quoted = file
        elif not quoted and not code and place not in documents:
            yield line
            own = bare or own
            quoted = _announces(lines, place) or _FORWARDED.match(bare) is not None
            # Without an empty line behind its heading it is one paragraph.
            short = quoted and bool("".join(lines[place + 1 : place + 2]).strip())


def is_mostly_quoted(sentence: str) -> bool:
    """Whether most of it stands in quotation marks and is a sentence of its own."""
    return any(
        2 * len(found[0]) > len(sentence) and _SENTENCE.search(found[0].rstrip("\"“”»」'")) is not None
        for found in _QUOTATIONS.finditer(sentence)
    )


def is_reported(sentence: str) -> bool:
    """Whether a sentence tells what a page, a tool or somebody else says."""
    return _REPORTED.match(sentence) is not None


def _is_prompt(bare: str) -> bool:
    if bare[:1] in _RUNS and _RUN.match(bare):
        return True
    may_be = bare[:1] in _PROMPTS or "@" in bare[:40] or bare[1:3] == ":\\"
    return may_be and _PROMPT.match(bare) is not None


def _is_marked(bare: str) -> bool:
    if bare[:1] in _MARKS and _MARKED.match(bare):
        return True
    return _PRINTED.match(bare) is not None or _LABELLED_ROLE.match(bare) is not None


def _is_claimed(bare: str, lines: list[str]) -> bool:
    """Whether a line claims that another role speaks below it, or that a summary follows."""
    if _CLAIMED.match(bare) is None:
        return False
    # Somebody's own specification may have a heading "System"; a list of roles has others beside it.
    return bare[:1] != "#" or bare[-1:] == "#" or any(_ROLE_HEADING.match(line.strip()) for line in lines)


def _announces(lines: list[str], place: int) -> bool:
    """Whether a line says that what follows was written by somebody else, or asks to work on what follows."""
    bare = lines[place].strip()
    if not bare.endswith((":", "：", ".")):
        return False
    if _BROUGHT.search(bare[-_LONGEST_HEADING:]):
        return True
    behind = next((line for line in lines[place + 1 : place + 3] if line.strip()), "")
    return bare[-1] != "." and (GIVEN.match(_LAST_CLAUSE.split(bare)[-1]) is not None or behind.startswith("# "))


def _comments(line: str) -> bool:
    """Whether a line asks something, or asks to do something with a text."""
    return line.endswith(("?", "？")) or _ASKS.search(line) is not None or _ASKED.match(line) is not None


def _documents(lines: list[str]) -> frozenset[int]:
    """The places of lines that stand in a document which another part of the message is about.

    A document has a heading of its own, consists of lines with a label or a speaker, or stands between two rules.
    """
    parts = [[]]  # type: list[list[int]]
    for place, line in enumerate(lines):
        if line.strip() and not _RULE.match(line.strip()):
            parts[-1].append(place)
        elif parts[-1]:
            parts.append([])
    rules = [place for place, line in enumerate(lines) if _RULE.match(line.strip())]
    parts = [part for part in parts if part]
    said = [[clause for place in part for clause in _LAST_CLAUSE.split(lines[place].strip())] for part in parts]
    asking = [
        any(_comments(lines[place].strip()) for place in part) or any(map(_ASKED.match, clauses))
        for part, clauses in zip(parts, said, strict=True)
    ]
    found: set[int] = set()
    others = sum(asking)
    for index, part in enumerate(parts):
        between = len(rules) > 1 and rules[0] < part[0] < rules[-1]
        about = others > asking[index]
        if about and not (asking[index] and not between) and (between or _is_document([lines[k] for k in part])):
            found.update(part)
    return frozenset(found)


def _is_document(lines: list[str]) -> bool:
    labelled = sum(_LABELLED.match(line.strip()) is not None for line in lines)
    first = lines[0].strip()
    if len(lines) == 1:
        return _SPEAKER.match(first) is not None
    if labelled > 1 and 2 * labelled >= len(lines):
        return True
    titled = len(first) <= _LONGEST_TITLE and first[-1] not in ".,;:!?。，：！？…" and first[0] not in "-*•"
    return titled and not _OWN_TITLE.search(first) and (first[0].isupper() or first[0] == "#" or first[0] > "\u2e80")


def _without_element(line: str) -> str:
    """A line without the sentences that stand in it as the content of a tag."""
    opened = _ELEMENT.search(line)
    if opened is None or CARRIES_WORDS.search(opened[1]):
        return line
    inner, closing, behind = line[opened.end() :].rpartition(f"</{opened[1]}>")
    return line[: opened.start()] + behind if closing and _SENTENCE.search(inner) else line


def _is_mail(lines: list[str], place: int) -> bool:
    """Whether the head of a mail begins in a line."""
    head = [line.strip() for line in lines[place : place + _HEAD_LINES]]
    return len([line for line in head if _MAIL_HEAD.match(line)]) > 1 and _MAIL_HEAD.match(head[0]) is not None


_RULE = lazy_regex(r"(?:[-=*_~]{3,}|<{3,}|>{3,})$")
_LONGEST_TITLE = 70
_LABELLED = lazy_regex(
    r"(?:[-*•]|\d{1,2}[.)])?[ ]?(?!https?:)[\w.#/-]{1,24}(?:[ ][\w.#/-]{1,20}){0,3}[ ]?(?:[:：]|>)(?:[ ]?\S|$)"
)
_SPEAKER = lazy_regex(r"[A-Z][\w'-]{1,20} [A-Z][\w'-]{0,20}\.?: \S")
_OWN_TITLE = lazy_regex(
    r"\b(?:rules?|constraints?|requirements?|guidelines|preferences|important|note|please|regeln|wichtig|bitte|règles|important"
    r"|reglas|regras|regole|правила|важно)\b|规则|要求|ルール|規則|규칙",
    re.IGNORECASE,
)
"""A heading under which somebody says what he wants himself."""
_PRINTED = lazy_regex(
    r"(?:hint|fatal|remote|npm (?:warn|err!)|warn(?:ing)?|error)\b ?[:!\[] ?\S|npm (?:warn|err!) \S"
    r"|\[\w[^\[\]\n]{0,20}\d:\d\d[^\[\]\n]{0,8}\] ?\S",
    re.IGNORECASE,
)
"""A line that a program printed, or of a chat with its time."""
_FORWARDED = lazy_regex(
    r"\W{0,12}(?:fwd?|forwarded|weitergeleitet\w?|transféré|reenviado|encaminhado|inoltrato|переслано)\b|\W{0,12}(?:转发|転送|전달)",
    re.IGNORECASE,
)
_LAST_CLAUSE = lazy_regex(r"[,;.!?，。！？] ?")
_ASKS = lazy_regex(r"[?？](?:\s|$)")
_PLEASE = r"""\W{0,4}(?:(?:please|pls|now|and|then|can[ ]you|could[ ]you|help[ ]me|bitte|kannst[ ]du|peux-tu|puedes
    |por[ ]favor|puoi|пожалуйста|请|帮我|能)[ ,]{0,2}){0,3}"""
_WORKED_ON = r"""(?:translat|proofread|rewrit|rephras|paraphras|summari[sz]|shorten|improv|review|classif(?:y|ie)|count
    |extract|analy[sz]|estimat|evaluat|assess|explain|correct|polish|critiqu|rate|format|convert|turn[ ]this|turn[ ]it
    |übersetz|korrigier|fass|formulier|kürz|beantwort|zähl|erklär|prüf|tradui|corrige|résume|reformule|raccourci|explique
    |compte|traduc|traduz|corrig|resum|resúm|reescrib|reescrev|acorta|explica|cuenta|conta|correggi|riassum|riscrivi
    |spiega|перевед|исправ|резюмир|обобщ|перепиш|сократ|объясн|посчита)\w*\b
    |(?:请|帮我|给我)?(?:翻译|总结|改写|校对|概括|解释|统计|提取|润色)|翻訳|要約|校正|번역|요약|교정"""
GIVEN = lazy_regex(rf"{_PLEASE}(?:{_WORKED_ON})", re.IGNORECASE | re.VERBOSE)
"""What one asks to be done with a text, which stands behind it."""
_ASKED = lazy_regex(
    rf"""{_PLEASE}(?:{_WORKED_ON}
    |(?:draft|answer[ ](?:this|him|her|them|it)|reply|write[ ](?:an?|me|him|her|them)|put[ ]th|list[ ](?:its|the|all)
      |pull[ ]out|find[ ](?:the|all|every)|tell[ ]me|make[ ](?:me|this|a)|help[ ]me|what|who|why|how|is[ ]|does
      |any[ ]idea
      |schreib|antworte|wie|was|wer|wo|warum|stimmt|darf|réponds|rédige|écris|qu[ei]|c'est[ ]quoi|pourquoi|elle|il
      |responde|redacta|escrib|escrev|qué|quién|¿|rispondi|scrivi|ответ|напиш|что|кто|почему|как)\w*\b
    |回复|返信|답장)""",
    re.IGNORECASE | re.VERBOSE,
)
"""The same, and other questions and requests about a text that stands before them."""
_MAIL_HEAD = lazy_regex(
    r"(?:from|to|cc|date|sent|subject|von|an|gesendet|betreff|body|text|de|à|objet|envoyé|para|asunto|assunto|enviado|da|a|oggetto"
    r"|от|кому|тема|发件人|收件人|主题|差出人|宛先|件名|보낸 ?사람|받는 ?사람|제목)[ ]?[:：][ ]?\S",
    re.IGNORECASE,
)
_FENCES = ("```", "~~~", '"' * 3, "'" * 3)
_FENCED = "\0"
"""Stands where a block of code was: what a line announced is over."""
_HEAD_LINES, _LONGEST_HEADING = 4, 160
_FILE_HEAD = lazy_regex(
    r"(?:[-=#*]{2,}>? ?(?:file|begin|contents? of)?:?|[#/]{1,6} ?file:) ?[\w./-]{1,200}\.\w{1,8}(?: ?<?[-=#*]{2,})?$",
    re.IGNORECASE,
)
_BEGINS = lazy_regex(r"(?:[-=#*<]{2,}|\[) ?(?:begin|start|beginn|anfang|début|inicio|pasted?|quoted?)\b", re.IGNORECASE)
"""Counts only where something ends below it."""
_FILE_END = lazy_regex(
    r"(?:(?:[-=#*<]{2,}|\[{1,2}) ?(?:/|(?:end|eof|ende|fin)\b)|# ?end of file)[^\n]{0,80}$", re.IGNORECASE
)
_CLAIMED = lazy_regex(
    r"""<\|(?:im_start\|>|start_header_id\|>)?\s{0,2}(?:system|assistant|developer|tool)\b
    | \[{1,2}\s?(?:system|assistant|developer|tool)\b[^\]\n]{0,40}\]{1,2}$ | <<SYS>>
    | (?:begin|start)[ ](?:of[ ])?(?:system|developer)\b[^\n]{0,30}$
    | [-=*%~\#]{2,20}[ ]?(?:system|developer|assistant)\b[^\n.]{0,40}[-=*%~\#]{2,20}$
    | \[[^\]\n]{0,40}\b(?:summary|compaction|handoff|earlier[ ](?:turns|messages|conversation)
      |conversation[ ]so[ ]far)\b[^\]\n]{0,60}\]$
    | \#{1,4}[ ](?:system|assistant|developer)(?:[ ](?:prompt|message|note))?[ ]?:?$""",
    re.IGNORECASE | re.VERBOSE,
)
_ROLE_HEADING = lazy_regex(r"#{1,4} (?:user|human|instruction)s?[ ]?:?$", re.IGNORECASE)
_USER_AGAIN = lazy_regex(
    r"#{1,4} (?:user|human)[ ]?:?$|<\|im_start\|>user\b|\[{1,2}user\]{1,2}$|(?:user|human)[ ]?:[ ]?$", re.IGNORECASE
)
_LABELLED_ROLE = lazy_regex(
    r"(?:system|developer|assistant|ai|bot|chatgpt|[qa])(?: (?:note|message|prompt))?[ ]?[:：][ ]?(?:\S+[ ]){2}\S"
    r"|@[\w.-]{1,30}:[ ]\S"
    r"|\[{1,2}(?:system|developer|assistant|tool)\b[^\]\n]{0,40}\]{1,2}[ ]?:?[ ](?:\S+[ ]){2}\S"
    r"|(?:system|developer|assistant|ai|bot|chatgpt|[qa])(?: (?:note|message|prompt))?[ ]?[:：][ ]?[^\x00-\u2e7f]"
    r"|[\w.-]{1,30}(?: [\w.-]{1,20})? \(\d{1,2}:\d\d(?: ?[ap]m)?\):[ ]"
    r"|[A-Z][A-Z0-9]{1,9}-\d{1,6}:[ ]\S|(?:In|Out)[ ]?\[\d{1,4}\]:[ ]",
    re.IGNORECASE,
)
"""What a line says that somebody else's words follow in it: a role, a person in a chat, a ticket, a notebook."""
_PROMPT = lazy_regex(
    r"(?:[$❯➜%]|>>>|PS [A-Za-z]:[^\n>]{0,80}>|[\w.-]{1,40}@[\w.-]{1,60}[:~ ][^\n$#]{0,80}[$#])[ ]{1,3}\S|@@ -\d"
    r"|[A-Za-z]:\\[^\n>]{0,80}>[ ]?\S"
)
"""A command at a shell's prompt, or a piece of a diff: what follows is not the user's."""
_RUN = lazy_regex(
    r"(?:cat|tail|head|less|type|(?:kubectl|docker|podman)[ ]logs|journalctl|curl)[ ][^\n:]{0,60}?"
    r"(?=\S{0,40}[./\d-])[\w/.-]{3,80}"
    r"(?:[ ](?:gives|says|shows|prints|returns)(?:[ ]me)?:?)?$"
)
"""A command that reads, alone in its line: what follows is what it read."""
_RUNS = frozenset("cthlkdpj")
_PROMPTS, _MARKS = frozenset("$❯➜%P@>"), frozenset("[0123456789>/<{")
_MARKED = lazy_regex(
    r"""\[?\d{1,2}:\d\d(?::\d\d)?(?:[ ]?[ap]m)?\]?[ ,-]{0,3}<?[\w.@-]{1,30}(?:[ ][\w.-]{1,20})?>?:[ ]
    | \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d | > | //[ ] | /\* | <!-- | \{[ ]?"[\w-]{1,40}"[ ]?:""",
    re.IGNORECASE | re.VERBOSE,
)
"""`[10:32] bob: ...`, a line of a log, of a quoted mail, a comment, JSON."""
_ELEMENT = lazy_regex(r"<([A-Za-z][\w:.-]{0,40})(?:\s[^<>\n]{0,200})?>")
_SENTENCE = lazy_regex(r"[.!?](?:[\s<]|\Z)|[。！？]")
_QUOTATION = (
    r"""(?:"[^"\n]{1,600}+"|“[^”\n]{1,600}+”|„[^“”\n]{1,600}+[“”]|«[^»\n]{1,600}+»|「[^」\n]{1,600}+」"""
    r"""|'(?:[^'\n]|(?<=\w)'(?=\w)){1,600}+')[.!]?"""
)
_QUOTATIONS = lazy_regex(_QUOTATION)
_REPORTING = r"""(?:(?:it|(?:the|this|that|its|their|our|my)[ ](?:[\w'-]{1,24}[ ]){0,2}?
      (?:page|(?:web)?site|file|readme|docs?|documentation|comment|tool|server|output|response|log|e?mail|message|ticket|issue|note|screenshot|text|result|article
      |document|model|assistant|agent|user|plugin)|(?:mcp|tool|api|web)(?:[ ][\w-]{1,20}){0,2})
      [ ](?:just[ ])?(?:says?|said|reads?|states?|claims?|contains?|told|tells|answers|answered|returns?|returned)
      (?:[ ](?:me|us|you|this|that|the|following|text|in|its|[a-z]{1,12})){0,4}[ ]?[:：][ ]
    | (?:someone|somebody|people|a[ ]user|one[ ]of[ ]them)[ ](?:on[ ]\w{1,20}[ ])?
      (?:posted|wrote|said|says|commented|tweeted|claims?)[^\n:：]{0,40}[:：][ ]
    | (?:tl;?dr|summary|gist|text|contents?|title|body)[ ]of[ ](?:the|this|that|his|her|their)[ ][^\n:：]{1,40}[:：][ ]
    | (?-i:[A-Z])[\w-]{1,20}['’]s[ ](?:e?mail|message|comment|post|reply|answer|note|review|ticket)[ ]?[:：][ ]
    | (?:e?mail|message|comment|post|reply|note|letter|ticket|dm)[ ]from[ ][^\n:：]{1,60}[:：][ ]
    | (?:the[ ])?error(?:[ ](?:message|i[ ]get|we[ ]get)){0,2}[ ](?:is|was|says|reads)[ ]?[:：][ ]
    | (?:put|write|set|change|rename|answer|reply|respond|make|let)\b[^\n:：]{0,40}
      \b(?:banner|heading|headline|title|label|button|tooltip|caption|placeholder|bot|page|mail|email|popup)\b
      [^\n:：]{0,20}[:：][ ])"""
"""Somebody or something else speaks: `the page says: ...`."""
_SAID = lazy_regex(
    rf"""(?:(?<![^\n])|(?<=[.!?][ ]))(?!(?:do|follow|use|as|like|what|i)[ ])(?:[\w'’@.-]{{1,30}}[ ]){{1,3}}
      (?:wrote|writes|said|says|states|reads|commented|schrieb|schreibt|sagte?|écrit|dit|dice|dijo|escribi[óo]|disse
        |scrive|написал\w?|пишет|говорит)(?:[ ][\w-]{{1,20}}){{0,3}}[ ]?[:,]?[ ]{_QUOTATION}
    | (?:写着|写道|说|称|書いて)[:：]?[ ]?{_QUOTATION}
    | (?<![^\n])[-*• ]{{0,4}}{_REPORTING}\S[^\n]{{0,2000}}+
    | (?P<asked>\b(?:this|my|our)[ ](?:system[ ])?prompt\b[^\n"“„«]{{0,30}}[?:][ ]){_QUOTATION}
    | (?P<given>^[ \t]{{0,8}}(?:please[ ]|bitte[ ])?(?:translate|übersetze?|tradui[st]|traduce|traduza|traduci|переведи
        |proofread|rephrase|paraphrase|summari[sz]e)\b[^\n:：]{{0,40}}[:：][ ])\S[^\n]{{0,2000}}+""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
"""A sentence that gives somebody else's words, and the text that a line asks to be worked on."""
_REPORTED = lazy_regex(rf"[-*• ]{{0,4}}{_REPORTING}", re.IGNORECASE | re.VERBOSE)
_BROUGHT = lazy_regex(
    r"""(?:^|\W)(?:(?:here(?:'s|[ ]is|[ ]are)|this|these|following|got|received|below|summari[sz]e|translate
      |forwarded|dies\w{0,2}|folgende\w?|hier[ ]ist
      |voici|ce(?:tte|t)?|est[ea]|aqu[ií][ ]está|ecco|quest[oa]|вот|эт\w{1,2})
      [ ](?:[\w'-]{1,24}[ ]){0,3}?
      (?:e-?mail|mail|letter|(?:web[ ]?)?page|website|article|post|issue|ticket|pull[ ]request|pr|comment|thread
        |transcript|chat|conversation|minutes|contents?|output|logs?|readme|file|text|message|snippet|document|review
        |seite|artikel|nachricht|inhalt|ausgabe|protokoll|brief|courriel|contenu|texte|lettre|sortie|correo|página
        |contenido|texto|carta|salida|conteúdo|saída|pagina|contenuto|testo|lettera|письмо|страниц\w|содержим\w{2}
        |текст\w?|сообщени\w|вывод)\b[^\n:]{0,60}
    | https?://\S{1,200} | (?:issue|pr|ticket)[ ]\#?\d{1,8}[^\n]{0,60} | \(author:[^()\n]{1,60}\)
    | (?:improve|rewrite|review|rate|shorten|proofread|rephrase|polish|critique)[ ][^\n:]{0,40}?
      (?:prompt|instructions|paragraph|policy|guidelines|spec)\b[^\n:]{0,30}
    | (?:add|append|insert|put|write|paste)[ ][^\n:]{0,60}?\b(?:to|into|in)[ ][^\n:]{0,40}?[\w/-]{1,60}\.\w{1,5}\b
      [^\n:]{0,20}
    | (?:output|contents?)[ ]of[ ][^\n:]{1,80} | (?:^|[ ])(?:diff|patch)
    | stack[ ]overflow[^\n:]{0,30} | prompt[ ][^\n:]{0,40}uses
    | (?:e?mail|message|comment|post|reply|letter|ticket|dm)[ ]from[ ][^\n:]{1,60}
    | (?:search|query|ocr|scan|tool|function)[ ]results?[^\n:]{0,40}
    | (?:ocr|results?|transcription|text)[ ](?:of|from)[ ](?:[\w'-]{1,24}[ ]){0,4}?
      (?:scan|screenshot|image|picture|photo|pdf|tool|search|query|page|recording|video|call|api))
    [:：]$
    | ^(?!I[ ])@?[\w.-]{1,40}[ ](?:[\w.-]{1,20}[ ])?(?:wrote|said|says|commented|replied|posted|schrieb|écrit|escribió)
      [^\n:]{0,40}[:：]$
    | ^(?:on|am|le|el|il|em)[ ][^\n:]{0,40}\d[^\n]{0,90}[ ]
      (?:wrote|schrieb|écrit|escribió|escreveu|scritto)[^\n:]{0,60}[:：]$
    | \b(?:e-?mail|mail|page|article|document|text|message|transcript|log|ticket|review|spec\w{0,10})
      [ ](?:follows|is[ ]below)[.:：]$
    | (?:这|以下|下面|总结|翻译)[^\n:：]{0,12}(?:邮件|网页|网站|文章|内容|聊天记录|会议记录|文件|输出|日志|文本|段落)
      [^\n:：]{0,12}[:：]$
    | (?:この|以下の|次の)[^\n:：]{0,12}(?:メール|ページ|記事|内容|議事録|ファイル|出力|ログ|文章|テキスト|文書)
      [^\n:：]{0,12}[:：]$
    | (?:이|다음|아래)[ ][^\n:：]{0,12}(?:메일|페이지|기사|내용|대화|파일|출력|로그|글|텍스트|문서)
      [^\n:：]{0,12}[:：]$""",
    re.IGNORECASE | re.VERBOSE,
)
"""A line that says that what follows was written by somebody else."""
