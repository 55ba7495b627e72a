"""Which sentences of a user's message seem to be somebody else's: below a line that introduces them, in a letter to
other people, or addressed to whatever machine reads them.

These are signs, no marks: the user's own words may look like it. So nothing is left out on their account: a rule among
them stays, and the fold says whose words it may be.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from leporello.lazy_regex import lazy_regex
from leporello.ledger.quoted import GIVEN
from leporello.ledger.units import sentences_of

PASTED = "In a text that the user passed on (no order of his): "
"""Stands before a rule that may be somebody else's."""
SHORTEST = 20
"""Characters of a message that can hold two voices."""


def pasted_sentences(text: str, own: str) -> frozenset[str]:
    """The sentences that seem to be somebody else's of what is left of a message without what is marked as quoted."""
    if len(text) < SHORTEST:
        return frozenset()
    said = sentences_of(own)
    found = list(_found(text, own))
    whole = frozenset(sentence for part in found for sentence in sentences_of(part))
    # Where sentences are not set apart by blanks one may hold its introduction, too.
    return whole | {one for one in said if any(part in one and 2 * len(part) > len(one) for part in (*found, *whole))}


def _found(text: str, own: str) -> Iterator[str]:
    parts = [part.strip("\n") for part in _GAP.split(text) if part.strip()]
    for place, part in enumerate(parts):
        if (place or "\n" in part) and _TO_MACHINES.search(part):
            yield _from_sign(part, _TO_MACHINES)
        if _is_other_letter(parts[place:], first=not place):
            yield from _letter(parts[place:])
        elif (begun := _begun_within(part)) is not None:
            yield begun
        yield from _chat(part)
        yield from _introduced(part, parts[place + 1 :], own)


def _from_sign(part: str, sign: re.Pattern[str]) -> str:
    """A paragraph from the line on in which the sign stands."""
    lines = part.split("\n")
    first = next((place for place, line in enumerate(lines) if sign.search(line)), 0)
    return "\n".join(lines[first:])


def _introduced(part: str, below: Sequence[str], own: str) -> Iterator[str]:
    """What a paragraph introduces: the rest of it, or the paragraphs below."""
    first, _, rest = part.partition("\n")
    brought = (rest or "".join(below[:1])).lstrip().partition("\n")[0]
    if brought not in own:
        # It bears a mark of its own and is left out already; what stands behind it is the user's.
        return
    if rest.strip() and first in own and _introduces(_END.split(first.strip())[-1]):
        # Without a gap it is one paragraph; the user speaks again below the gap.
        yield rest
        if _GREETING.match(rest):
            yield from _letter(below, begun=True)
        return
    said = [piece.strip() for piece in _END.split(part) if piece.strip()]
    for place, sentence in enumerate(said[:-1]):
        if sentence in own and (_brings(sentence) or _asks_about_text(sentence, said[place + 1 :])):
            last = max((k for k, one in enumerate(said) if _asks(one)), default=len(said))
            yield "\n".join(said[place + 1 : last if last > place + 1 else len(said)])
            return
    if below and said and said[-1] in own and _introduces(said[-1]):
        yield from _letter(below) if _GREETING.match(below[0]) else _text(below)


def _introduces(sentence: str) -> bool:
    """Whether a sentence says that a text stands below it."""
    if _OWN.search(sentence) or len(sentence) > _LONGEST_INTRODUCTION or _PLACE.search(sentence):
        return False
    if _brings(sentence) or _BARE_WORK.match(sentence):
        return True
    return _TEXT.search(sentence) is not None and (_POINTS.search(sentence) or _HANDED.search(sentence)) is not None


def _brings(sentence: str) -> bool:
    """Whether a sentence says that somebody wrote what stands behind it, or what to do with it."""
    if _OWN.search(sentence) or len(sentence) > _LONGEST_INTRODUCTION or _PLACE.search(sentence):
        return False
    if _is_heading_of_text(sentence) or _OF_WHAT.search(sentence):
        return True
    handed = _HANDED.search(sentence)
    if handed is None or _BY_US.search(sentence[: handed.start()]):
        return False
    rest = sentence[handed.end() :]
    return sentence[-1] in ":：" or not rest.strip(" .!?。！？") or _THIS_LAST.search(sentence) is not None


def _is_heading_of_text(sentence: str) -> bool:
    """`here's the text:`, `turn this into a list:`"""
    if not sentence.endswith((":", "：")) or _I.search(sentence) or not _POINTS.search(sentence):
        return False
    return GIVEN.match(sentence) is not None or any(sign.search(sentence) for sign in (_MADE, _TEXT))


def _asks_about_text(sentence: str, behind: Sequence[str]) -> bool:
    """Whether a text is asked about and several sentences of it stand behind, none by the user of himself."""
    if len(behind) < 2 or not _asks(sentence) or any(_I.search(one) or _MINE.search(one) for one in behind):
        return False
    is_text = _PROSE.search(sentence) is not None and _POINTS.search(sentence) is not None
    return is_text or _JUDGED.search(sentence) is not None


def _text(below: Sequence[str]) -> Iterator[str]:
    """The paragraphs of a text without a form: to a question about it, and without the last one, which may well be the
    user's own again."""
    taken = 0
    for place, part in enumerate(below):
        if _ASKS.search(part):
            yield from (line for line in part.split("\n")[:-1] if not _ASKS.search(line))
            return
        if taken and place + 1 == len(below) and not (_LABEL.match(part) and _LABEL.match(below[0])):
            return
        yield part
        # A title alone is no text yet.
        taken += "\n" in part or part[-1:] in ".!…。！"


def _letter(parts: Sequence[str], *, begun: bool = False) -> Iterator[str]:
    """A letter to where it is signed; one that is not signed ends with a question about it."""
    closed = next((place for place, part in enumerate(parts) if _CLOSING.search(part)), None)
    if closed is not None:
        yield from parts[: closed + 1]
    elif begun:
        yield from _text(parts)
    else:
        yield parts[0]
        yield from _text(parts[1:] if "\n" not in parts[0] or len(parts) > 2 else ())


def _is_other_letter(parts: Sequence[str], *, first: bool) -> bool:
    """Whether a letter begins here that is not to an assistant; one with which a message begins is signed."""
    if first and (_OTHERS.match(parts[0]) is None or not any(_CLOSING.search(part) for part in parts[:-1])):
        return False
    return _GREETING.match(parts[0]) is not None and (
        _OTHERS.match(parts[0]) is not None or any(_CLOSING.search(part) for part in parts)
    )


def _begun_within(part: str) -> str | None:
    """A letter to others that begins in the middle of a line."""
    for found in _WITHIN.finditer(part):
        if _OTHERS.match(found[1]) is not None:
            return part[found.start(1) :]
    return None


def _chat(part: str) -> Iterator[str]:
    """Lines with the names of who says them, if somebody speaks twice and others, too."""
    lines = [(found[1], line) for line in part.split("\n") if (found := _SAYS.match(line)) is not None]
    speakers = Counter(name for name, _ in lines)
    if len(speakers) > 1 and max(speakers.values()) > 1:
        yield from (line for _, line in lines)


def _asks(sentence: str) -> bool:
    return sentence.rstrip("\"”»)' ").endswith(("?", "？"))


_LONGEST_INTRODUCTION = 200
_ASKS = lazy_regex(r"[?？](?:[\s\"”»)']|$)")
_GAP = lazy_regex(r"\n[ \t]*\n\s*")
_END = lazy_regex(r"(?<=[.!?:;…])\s+|(?<=[。！？：])")
_TO_MACHINES = lazy_regex(
    r"""\b(?:ai|llms?|automated|language[ ]model)s?[ -](?:assistants?|agents?|models?|systems?|tools?|readers?
      |summari[sz]ers?)\b
      [^.!?\n]{0,60}\b(?:read|process|summari|pars|index|crawl|must|should|please|are[ ]to|instruct)
    | \b(?:note|attention|instructions?|message|hint|important)[ ](?:to|for)[ ](?:the[ ]|any[ ]|all[ ])?
      (?:ai\b|llm|assistant|agent|model|bot|chatbot|language[ ]model|reader)
    | \b(?:ignore|disregard|forget|override)[ ](?:all[ ]|any[ ]|the[ ]|your[ ]|every[ ]){0,2}
      (?:previous|prior|above|earlier|preceding|former|other)[ ](?:instructions?|rules?|messages?|prompts?|orders?)
    | \bif[ ]you[ ]are[ ](?:an?[ ])?(?:ai|llm|language[ ]model|assistant|agent|bot)\b
    | \bas[ ]an[ ](?:ai|assistant|agent)\b[^.!?\n]{0,30}\byou[ ](?:must|should|are|have)
    | \b(?:hinweis|anweisung(?:en)?)[ ](?:an|für)[ ](?:die[ ]|alle[ ])?(?:ki|ai|assistent)
    | \bignorier\w{0,3}[ ](?:alle[ ]|die[ ]){0,2}(?:vorherigen|bisherigen|obigen)[ ](?:anweisungen|regeln)
    | \b(?:note|instructions?)[ ](?:aux?|pour)[ ](?:les[ ]|l['’])?(?:ia|assistants?)\b
      | \bignore[rz]?[ ](?:toutes[ ])?les[ ]instructions
    | \b(?:nota|instrucciones|instruções|istruzioni)[ ](?:para|per)[ ](?:la[ ]|el[ ]|a[ ]|o[ ]|l['’])?(?:ia
      |asistentes?|assistent[ei])\b
    | \bignor[aeo]\w?[ ](?:todas[ ]|tutte[ ])?(?:las|as|le)[ ](?:instrucciones|instruções|istruzioni)
    | \b(?:игнорируй|забудь)\w{0,3}[ ](?:все[ ])?(?:предыдущие|прежние)
    | 忽略[^。\n]{0,6}(?:指令|指示|规则) | (?:致|给)(?:所有)?(?:AI|人工智能|助手) | (?:以前|これまで
      |上記)の指示(?:は|を)(?:すべて)?無視
    | AI(?:アシスタント|エージェント)(?:へ|は|向け) | 이전[ ]지시(?:는|를|사항)[^.\n]{0,8}무시""",
    re.IGNORECASE | re.VERBOSE,
)
"""Who writes so expects a machine to read it: no user calls his own assistant that."""
_TEXT = lazy_regex(
    r"""\b(?:texts?|e-?mails?|messages?|letters?|notes|minutes|memo|notice|contract|lease|clause|paragraph
      |passage|excerpt|klausel|cláusula|clausola
      |article|blog|prompts?|docs?|document|posts?|forum|thread|reviews?|comments?|feedback|essay|draft|posting|policy|terms|manual|readme
      |logs?|output
      |transcript|chat|conversation|call|slack|whatsapp|ticket|issue|quote|snippet|announcement|newsletter|speech
      |tweet|dm
      |page|website|nachricht|brief|notizen|protokoll|\w{0,12}vertrag|absatz|abschnitt|auszug|artikel|beitrag
      |bewertung|entwurf
      |\w{0,12}anzeige|hausordnung|anleitung|ausgabe|rundschreiben|schreiben|textes?|courriel|lettre|compte[ ]rendu
      |contrat
      |extrait|avis|annonce|règlement|circulaire|correo|mensaje|carta|acta|contrato|extracto|artículo|reseña|anuncio
      |reglamento|aviso|circular|mensagem|trecho|artigo|avaliação|regulamento|messaggio|lettera|appunti|verbale
      |contratto
      |brano|estratto|articolo|recensione|annuncio|regolamento|avviso|testo|texto)\b
    | \b(?:текст|письм|сообщени|заметк|протокол|договор|отрыв|стать|отзыв|объявлени|инструкци|переписк)\w{0,4}\b
    | 文本|文章|邮件|短信|通知|公告|合同|段话|段文字|帖子|评论|日志|聊天|的信|消息|文書|案内文|メール
    |メッセージ|手紙|お知らせ
    | 契約書|記事|レビュー|コメント|ログ|メモ|議事録|메일|메시지|편지|공지|계약서|기사|후기|댓글|로그|회의록
      |대화""",
    re.IGNORECASE | re.VERBOSE,
)
_POINTS = lazy_regex(
    r"""\b(?:this|these|here(?:'s)?|below|following|dies(?:e[rnms]?)?|hier|folgende[rnms]?|unten|voici|ce(?:tte
      |t)?(?=[ ]\w{3})
      |suivante?|ci-dessous|est[aeo]|aquí|siguiente|abajo|isto|ess[ea]|aqui|seguinte|abaixo|quest[aeo]|ecco
      |seguente|sotto
      |вот|эт\w{1,2}|следующ\w{2,3}|ниже)\b | 这[段条个封是]|以下|下面|次の|この|これ|이[ ]|다음|아래""",
    re.IGNORECASE | re.VERBOSE,
)
"""What points at a text."""
_BARE_WORK = lazy_regex(
    r"""\W{0,4}(?:(?:please|pls|can[ ]you|could[ ]you|bitte)[ ,]{0,2})?(?:proofread|rephrase|reword
      |polish|translate|summari[sz]e|shorten|correct|paraphrase|übersetz\w*|korrigier\w*|corrige[rz]?|tradui[st]|traduce|traduza|traduci|riassumi
      |correggi|resum[ea]|переведи|исправь|сократи)
      (?:[ ](?:this|it|that|for[ ]me|das|bitte|ça|esto|isto|questo|это)){0,2}
      [ ,]{0,2}(?:please|pls|thanks|bitte|svp)?[.:!?]{0,2}$""",
    re.IGNORECASE | re.VERBOSE,
)
"""Work on a text that is not named: it stands below."""
_OF_WHAT = lazy_regex(
    r"\b(?:notes|minutes|readme|transcript|text|contents?|output|protokoll|ausgabe|inhalt|texte|contenu|texto|testo)"
    r"[ ](?:of|von|vom|des|du|de|del|do|da|della?)[ ](?!mine|ours|my|our)[^:\n]{1,60}[:：]$"
    r"|\b(?:whatsapp|sms|dm|text|slack|teams|e-?mail|mail)[ ](?:from|von|de|da|van|от)[ ][^:\n]{1,60}[:：]$"
    r"|[ ]on[ ](?:linkedin|twitter|reddit|slack|discord|facebook|whatsapp|mastodon|instagram|the[ ]phone)[ ]?[:：]$",
    re.IGNORECASE,
)
_JUDGED = lazy_regex(
    r"""\b(?:sounds?|reads?[ ](?:well|right|ok|okay|fine|better|natural\w{0,2})
      |worded|phrased|tone|wording|phrasing|grammar|spelling|klingt|formuliert|geschrieben|ton|écrit
      |escrito|escrita|suena|scritto|suona|soa)\b[^.!?\n]{0,30}[?]$""",
    re.IGNORECASE | re.VERBOSE,
)
"""How something is worded is asked of a text."""
_SAYS = lazy_regex(r"[ \t]{0,4}([^\W\d_][\w'’-]{1,20})[ ]?[:：][ ]?\S")
_MINE = lazy_regex(r"\b(?:my|mein\w{0,2}|mon|mes|mis?|meus?|minhas?)\b", re.IGNORECASE)
_I = lazy_regex(r"\b(?:I|I['’]\w{1,2}|me|ich|mir|mich|je|j['’]\w|yo|eu|io)\b")
_MADE = lazy_regex(r"^\W{0,4}(?:please )?make (?:this|it|that) (?:more|less|sound|\w{3,12}er)\b", re.IGNORECASE)
_PROSE = lazy_regex(
    r"""\b(?:clause|paragraph|passage|excerpt|sentence|letter|e-?mail|message|review|poem|speech|klausel|absatz|abschnitt
      |auszug|satz|brief|bewertung|clause|paragraphe|extrait|lettre|avis|cláusula|párrafo|carta|reseña|trecho|clausola|brano
      |lettera|recensione)\b|(?:пункт|абзац|отрыв|письм|отзыв)\w{0,3}|条款|这段话|条項|조항""",
    re.IGNORECASE | re.VERBOSE,
)
"""Texts that people write to people: of files and outputs the user speaks in his work."""
_LABEL = lazy_regex(r"(?:[A-Z]|\d{1,2})[.):]\s")
_WITHIN = lazy_regex(
    r"(?<=[\w.:!?] )((?:Dear|Hello|Hi|Hey|Liebe[rs]?|Hallo|Bonjour|Hola|Olá|Ciao|Привет|Cari|Car[oa]s|Chers)"
    r" [^\n.!?,]{1,40},)"
)
_HANDED = lazy_regex(
    r"""\b(?:wrote|writes|says?|said|replied|posted|commented|texted|messaged|emailed|reads|states|sent|sends
      |forwarded
      |got|received|found|pasted|told|contains?|goes[ ]like|(?:was|stood)[ ](?:in|on)
      |steht|laut|según|написано|from(?![ ](?:me|us)\b)
      |schreibt|schrieb|geschrieben|gemailt|gepostet|mitgeteilt|meinte?|sagte?|antwortete?
      |geantwortet|geschickt|bekommen|erhalten
      |gefunden|écrit|dit|répond(?:u)?|envoyé|reçue?s?|trouvé|escribe|escribió|dice|dijo|respondió|mandó|envió
      |recibí|encontré
      |escreveu|diz|disse|respondeu|mandou|enviou|recebi|achei|scrive|scritto|detto|risposto|mandato|inviato
      |ricevut[oa]
      |trovat[oa]|написала?|пишет|сказала?|ответила?|прислала?|получила?
      |schreef|schrijft|zei|zegt|appte|mailde|stuurde|antwoordde|kreeg|napisała?|pisze|powiedziała?|wysłała?|odpisała?
      |dostała?m|yazdı|yazmış|yazıyor|dedi|diyor|gönderdi|göndermiş|skrev|skriver|sade|skickade)\b
    | 发来的?|写道|说(?:[:：]|$)|收到|寄来|看到|写着|届い|もらった|からの|말했|보냈|받았""",
    re.IGNORECASE | re.VERBOSE,
)
"""Somebody said or sent something, or it came from somewhere."""
_THIS_LAST = lazy_regex(
    r"""\b(?:th(?:is|ese)|the[ ]following|dies|das|das[ ]hier|folgendes|ça|ceci|esto|isto|isso|questo|это|вот)\b
      (?:[ ](?:e?-?mail|message|note|letter|from|in|on|by|via|en|em|na|no|nel|today|yesterday|von|vom|aus|im|heute
      |gestern|de|du|sur|hier|hoy|ayer
      |hoje|ontem|dal|oggi|ieri|сегодня|вчера)\b[^:;!?]{0,40})?[.:：]?$
    | (?:发来的?|写道|收到|届い[^。]{0,4}|もらった|받았[^.]{0,4})[^。]{0,12}[。：:]?$""",
    re.IGNORECASE | re.VERBOSE,
)
_BY_US = lazy_regex(
    r"""\b(?:i|we|you|ich|wir|du|je|j['’]ai|nous|yo|nosotros|eu|nós|io|noi|я|мы)\b[^,;.]{0,24}
      \b(?:wrote|said|say|sent|told|posted|geschrieben|gesagt|geschickt|écrit|dit|envoyé)?$(?<!got)(?<!found)""",
    re.IGNORECASE | re.VERBOSE,
)
_OWN = lazy_regex(
    r"""\b(?:my|our|mein\w{0,2}|unser\w{0,2}|mes|nos|mis|meus|minhas|mie|nostre|мои|наши)[ ](?:[\w-]{1,20}[ ]){0,2}
      (?:rules?|constraints?|requirements?|guidelines|preferences|conventions?|instructions?|notes|plan|style
      |vorgaben|regeln
      |wünsche|règles|consignes|reglas|regras|regole|правила)\b
    | \b(?:rules?|constraints?|requirements|guidelines|preferences|conventions|vorgaben|regeln|règles|consignes
      |reglas|regras
      |regole|правила)[ ]?[:：]$
    | \b(?:for[ ]you|für[ ](?:dich|Sie)|pour[ ](?:toi|vous)|para[ ](?:ti|você)|per[ ]te|для[ ]тебя)[ ]?[:：]$
    | \b(?:remember|keep[ ]in[ ]mind|important|wichtig|merk[ ]dir|важно)\b|规则
      |要求|ルール
      |규칙""",
    re.IGNORECASE | re.VERBOSE,
)
"""What the user says that he wants himself."""
_PLACE = lazy_regex(
    r"\w/\w|\w\.(?:md|txt|pdf|docx?|py|html|csv|json|ya?ml)\b"
    r"|\b(?:when(?:ever)?|if|once|wenn|sobald|falls|quand|si|cuando|quando|se|когда|если)\b"
)
"""The text stands in another place, or it comes later."""
_GREETING = lazy_regex(
    r"""[ \t]*
      (?:(?:dear|hello|hi|hey|good[ ](?:morning|afternoon|evening)|to[ ]whom|liebe[rs]?|hallo|guten|bonjour|bonsoir
      |madame|monsieur|ch[eè]re?s?|hola|buen[oa]s|car[oaie]s?|olá|bom[ ]dia|boa[ ]tarde|gentil[ei]|spett|ciao
      |buongiorno|привет)\b
    | sehr[ ]geehrt|querid|estimad|prezad|egregi|уважаем|здравств|добрый[ ]
    | 尊敬的|亲爱的|您好|各位|大家好|いつもお世話|お世話|お疲れ|拝啓|皆様|各位|안녕|고객)""",
    re.IGNORECASE | re.VERBOSE,
)
"""How a letter begins."""
_OTHERS = lazy_regex(
    r"""[^\n,:!]{0,60}\b(?:team|all|everyone|everybody|folks|guys|customers?|colleagues?|residents?|tenants?
      |members?|neighbou?rs?|parents
      |guests?|staff|sirs?|madam|mr|mrs|ms|dr|subscribers?|users|alle|zusammen|kund\w{1,5}|kolleg\w{1,5}
      |mieter\w{0,5}|damen|herren
      |frau|herr|eltern|tous|toutes|équipe|clients?|collègues|équipes|madame|monsieur|tod[oa]s|equipo|client[ei]s?
      |compañeros|vecinos
      |equipe|colegas|senhor\w{0,2}|tutti|squadra|colleghi|coinquilini|коллеги|клиент\w{0,3}|жильцы|друзья)\b
    | [^\n,:!]{0,20}(?:客户|同事|业主|用户|各位|大家|皆様|お客様|고객|여러분)""",
    re.IGNORECASE | re.VERBOSE,
)
"""To whom nobody writes who writes to an assistant."""
_CLOSING = lazy_regex(
    r"""^[ \t]*
      (?:(?:best|kind|warm|many)?[ ]?(?:regards|wishes|thanks)|cheers|sincerely|yours|respectfully|thank[ ]you
      |mit[ ]freundlichen
      |viele[ ]grüße|liebe[ ]grüße|beste[ ]grüße|mfg|lg|vg|gruß|grüße|cordialement|bien[ ]à|salutations
      |cordialmente|saludos|atentamente
      |un[ ]saludo|atenciosamente|abraços?|cordiali|distinti|saluti|с[ ]уважением)\b[^.!?\n]{0,40}$
      |^[ \t]*(?:此致|敬上
      |以上|よろしくお願い|敬具|감사합니다|드림)""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
