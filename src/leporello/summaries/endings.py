"""Messages that ask nobody for anything: they end the conversation, or tell what the user does himself."""

from __future__ import annotations

import re

from leporello.lazy_regex import lazy_regex
from leporello.ledger.importance import COURTESY, words_of
from leporello.ledger.units import QUESTION

LONGEST_ENDING = 200


def says_that_is_all(text: str) -> bool:
    """Whether a message does nothing but end the conversation: nothing more is wanted, thanks, a farewell.

    Each of its parts has to: "delete the logs, that's all" asks for something. Thanks beside a yes end nothing, the
    yes answers what was asked.
    """
    if len(text) > LONGEST_ENDING or QUESTION.search(text):
        return False
    parts = (" ".join(part.split()) for part in _PARTS.split(_STOP_SIGN.sub("", text.replace("’", "'"))))
    kinds = {_kind_of_ending(part) for part in parts if words_of(part)}
    if "" in kinds:
        return False
    return "all" in kinds or (not kinds.isdisjoint(("thanks", "farewell")) and ("works" in kinds or "yes" not in kinds))


def _kind_of_ending(part: str) -> str:
    """What a part of a message says that ends it; nothing of a part that says something else."""
    found = next((kind for kind, signs in _ENDINGS.items() if signs.fullmatch(part)), "")
    return found or ("praise" if all(word in COURTESY for word in words_of(part)) else "")


_STOP_SIGN = lazy_regex(r"#{2,3}\w{1,20}#{2,3}")
_PARTS = lazy_regex(
    r"[.!,;:…。！，、；：\n()–—]|\s-{1,2}\s"
    r"|\b(?:and|und|et|y|e|и)\b(?= (?:thank|danke|merci|muchas|graci|muito|obrigad|grazie|спасибо|have a|good|bye))",
    re.IGNORECASE,
)
_CHOICE = (
    r"\b(?:option|variant|approach|choice|number|proposal|nummer|variante|opción|opção|opzione|вариант) #?\w{1,2}\b"
    r"|(?<![\w$€£.#-])#?\d{1,2}(?= (?:and|und|et|y|e|и|first|instead)\b|\W{0,3}$)"
    r"|\b(?:taking|choosing|picking|trying|doing|going (?:with|for)|starting with) the"
    r" (?:first|second|third|fourth|last|other|former|latter)\b"
)
"""One of several ways by its number or place: who names it behind his thanks takes it."""
_ENDINGS = {
    "all": lazy_regex(
        r"(?:(?:no|nope|yes|yeah|ok(?:ay)?|well|so|great|alright|then|and|i (?:think|guess|believe)|nein|ja|non|oui"
        r"|sí|si|não|sim|да|нет) ){0,3}(?:"
        r"(?:(?:that|this)(?:'?s| is| was| will be|'ll be| would be|'d be) (?:really |about )?(?:all|everything)"
        r"|that'?s it(?= for)|nothing (?:else|more|further)|no (?:further|more|other) (?:questions?|requests?|help"
        r"|changes)|(?:i|we) (?:don't|do not) (?:need|want|have) anything (?:else|more|further))"
        r"(?: (?:that )?(?:i|we)(?:'d| had)? (?:just )?(?:need(?:ed)?|want(?:ed)?|have|had|asked for)"
        r"(?: to (?:do|know|ask|hear|see|say|discuss)| help with| from you| done)?)?"
        r"(?: (?:is |was )?(?:needed|required|to (?:do|add|ask|say|change)))?"
        r"(?: (?:(?:for|from) (?:now|today|tonight|me|my side|the moment)|now|today|then|here|at the moment|right"
        r" now)){0,2}"
        r"(?: thanks?(?: you)?)?"
        r"|das (?:ist|war|wäre|wär)(?:'?s| es)?(?: auch| schon| dann)? alles(?: von mir| was ich (?:brauche|wollte))?"
        r"(?: für (?:heute|jetzt|den moment)| vorerst)?|das war'?s(?: für heute| von mir)?|sonst nichts(?: mehr)?"
        r"|(?:ich brauche )?nichts (?:mehr|weiter|sonst)|mehr brauche ich nicht"
        r"|(?:c'est|ce sera|ça sera) tout(?: pour (?:moi|aujourd'hui|l'instant|le moment))?"
        r"|rien (?:d'autre|de plus)(?: pour (?:l'instant|le moment))?"
        r"|(?:eso )?es todo(?: por (?:ahora|hoy))?|nada más(?: por (?:ahora|hoy))?"
        r"|(?:(?:é|era) )?só isso(?: por (?:agora|hoje|enquanto))?|(?:isso )?é tudo(?: por (?:agora|hoje|enquanto))?"
        r"|mais nada|nada mais|(?:questo )?è tutto(?: per (?:ora|oggi|adesso))?|nient'altro(?: per (?:ora|oggi"
        r"|adesso))?|(?:это|на этом|на сегодня) вс[её](?: на сегодня)?|больше ничего(?: не (?:нужно|надо))?)"
        r"|(?:目前|暂时|那|那么)?(?:就这些|就这样|没有?(?:别的|其他)(?:问题|事|需要)?的?|这就是(?:全部|所有)"
        r"|没事)(?:了|吧){0,2}|(?:これで|今日は|本日は|はい|いいえ)?(?:以上|それだけ|これだけ|もう大丈夫)です(?:ね|よ)?"
        r"|(?:그게|이게) 다(?:예요|에요|입니다|야)?",
        re.IGNORECASE,
    ),
    "thanks": lazy_regex(
        r"(?:(?:great|perfect|awesome|excellent|wonderful|ok(?:ay)?|super|toll|parfait|perfecto|so|many|vielen"
        r"|herzlichen|muchas|mil|muito|tante|большое) ){0,2}"
        r"(?:thanks?(?: you)?|thx|danke(?: dir| ihnen)?|dank|merci|gracias|obrigad[oa]|grazie|спасибо|благодарю)"
        r"(?: (?:so|very) much| again| a lot| sehr| schön| beaucoup| mille| большое)?"
        r"(?: (?:for|für|pour|por|per|за) (?!.{0,80}(?:\b(?:please|now|but|also|then)\b"
        rf"|{_CHOICE})).{{1,80}})?"
        r"|(?:i )?(?:really |truly |also )?appreciate (?:it|that|(?:your|the|all)\b(?: \w+){1,8})"
        r"|you(?:'ve| have) been (?:\w+ )?(?:helpful|kind|great)"
        r"|(?:非常|十分|太|多)?(?:感谢|谢谢?)(?:你|您)?(?:的?(?:帮助|帮忙))?[了啊啦]?"
        r"|(?:どうも|本当に)?(?:ありがとう(?:ございま(?:す|した))?|助かりました)|(?:정말 |대단히 )?(?:감사합니다"
        r"|고맙습니다|고마워요?)",
        re.IGNORECASE,
    ),
    "farewell": lazy_regex(
        r"(?:good ?)?bye(?: bye)?|see you(?: (?:later|soon|tomorrow|then|around))?|take care|good ?night"
        r"|(?:and )?have a (?:\w+ ){0,3}(?:day|night|evening|afternoon|weekend|week|one)(?: too| ahead)?|(?:talk"
        r"|speak)(?: to you)? (?:later|soon|tomorrow)"
        r"|tschüss|auf wiedersehen|bis (?:bald|morgen|dann|später)|gute nacht"
        r"|schöne[ns]? (?:tag|abend|feierabend|wochenende)(?: noch)?|au revoir|à (?:bientôt|demain|plus)"
        r"|bonne (?:journée|soirée|nuit)|adi[oó]s|hasta (?:luego|mañana|pronto)|tchau|até (?:logo|amanhã)|arrivederci"
        r"|buona (?:giornata|serata|notte)|до свидания|до завтра|再见|拜拜|さようなら|また明日|おやすみ(?:なさい)?"
        r"|お疲れ様(?:です|でした)|안녕히 계세요|수고하세요",
        re.IGNORECASE,
    ),
    "works": lazy_regex(
        r"(?:(?:yes|yeah|ok(?:ay)?|great|and|so|now) ){0,2}(?:it|that|this|everything|all(?: of it)?|(?:my|the)(?:"
        r" \w+){1,3}?)"
        r"(?:'s| is| are| has| have)?(?: (?:now|finally|all|been)){0,2} (?:works?|worked|working|pass(?:es|ed|ing)?"
        r"|fixed|solved|resolved|done|fine|back|running)(?: (?:now|again|here|for me|great|well|fine|perfectly)){0,2}"
        r"|(?:works?|worked)(?: (?:now|again|great|fine|perfectly|for me)){0,2}|all (?:tests )?(?:pass|green)"
        r"|(?:es|alles|jetzt|das) (?:funktioniert|läuft|geht|klappt)(?: (?:es|jetzt|wieder|alles|gut)){0,2}"
        r"|(?:tout|ça|cela) (?:marche|fonctionne)(?: (?:bien|maintenant)){0,2}|(?:ya |todo |ahora ){0,2}funciona(?:"
        r" bien)?"
        r"|(?:agora |tudo )?(?:funciona|funcionou)|(?:ora |tutto )?funziona|(?:всё |все |теперь ){0,2}работает"
        r"|(?:现在)?(?:可以|好|能用|正常|搞定|解决)了|(?:動き|直り|解決し)ました|(?:이제 )?(?:잘 )?(?:돼요|됩니다)",
        re.IGNORECASE,
    ),
    "praise": lazy_regex(
        r"ok(?:ay)?|alright|perfect|excellent|wonderful|got it|understood|good (?:job|work)|well done|very (?:good"
        r"|helpful)"
        r"|(?:i'm|i am|we're|we are) (?:good|done|all set)(?: now)?|that(?:'s| is| was) (?:\w+ )?(?:great|perfect"
        r"|helpful|good|clear|kind)|verstanden|alles klar|parfait|compris"
        r"|perfecto|entendido|perfeito|entendi|perfetto|capito|понятно|хорошо|好的?|明白了?|了解です|わかりました"
        r"|알겠습니다",
        re.IGNORECASE,
    ),
    "yes": lazy_regex(
        r"(?:yes|yeah|yep|no|nope|nein|ja|non|oui|sí|si|não|sim|да|нет|不用?了?|是的|はい|いいえ|네|아니요|結構です"
        r"|(?:looks|sounds|all) (?:good|fine|great))(?: (?:thanks?|thank you|danke|merci|gracias|obrigad[oa]|grazie"
        r"|спасибо))?",
        re.IGNORECASE,
    ),
}
"""How a part of a message ends a conversation. A yes, and praise, may stand beside what ends it."""


def does_it_himself(text: str) -> bool:
    """Whether a message only tells what the user is about to do, and asks nobody for it.

    What he will need, would like to see or takes of several things is asked for: "I'll need a script for it too".
    """
    sentences = [sentence for sentence in _SENTENCES.split(text) if words_of(sentence)]
    plans = [sentence for sentence in sentences if not _SAYS_YES.fullmatch(sentence)]
    return bool(plans) and all(map(_is_plan, plans)) and not _ASKS_TOO.search(text)


def _is_plan(sentence: str) -> bool:
    """Whether all of a sentence tells what the user does: "I'm going to lunch, run the tests" asks for something."""
    parts = [part for part in _CLAUSES.split(sentence) if words_of(part) and not _SAYS_YES.fullmatch(part)]
    begins = bool(parts) and _WILL_DO.match(parts[0]) is not None
    return begins and all(_WILL_DO.match(part) or _GOES_ON.match(part) for part in parts[1:])


_SAYS_YES = lazy_regex(r"\W{0,4}(?:ok(?:ay)?|yes|alright|good|fine|great|thanks|hmm?)\W{0,4}", re.IGNORECASE)
_TELLS = (
    r"(?:(?:re-?state|re-?phrase|reword|reiterate|clarify|explain|specify|emphasi[sz]e|stress|recap|point out"
    r"|be (?:clear|specific|precise)|correct myself|give you|add that|repeat (?:myself|my|that|what)"
    r"|(?:tell|ask|remind|beg|instruct) you|ask (?:for|that)|put (?:it|this) (?:differently|another|in other|simply)"
    r"|request|insist"
    r"|(?:describe|summari[sz]e|outline|spell out|define) (?:it|this|that|what|how|my"
    r"|the (?:task|problem|goal|rules?|plan)))\b"
    r"|(?:add|give|state|mention|make|set|name|note|list|change) (?:[\w'’]{1,12} ){0,3}(?:requirements?|conditions?"
    r"|constraints?|rules?|requests?|wish(?:es)?|remarks?|points?|things?|clarifications?|goals?)\b)"
)
"""Who is about to say something wants what he says."""
_WILL_DO = lazy_regex(
    r"\W{0,4}(?:(?:ok(?:ay)?|yes|alright|good|fine|hmm?|then|now|and)\W{1,3}){0,2}(?:"
    rf"let me (?!(?:(?:also|first|just|then|quickly|please) )?(?:{_TELLS}|(?:know|have|hear|repeat"
    r"|tell|ask|say|be|put|start over)\b|see(?! (?:if|whether)\b|\W{0,4}$|[,.:…])))"
    rf"|(?:i['’]?ll|i will|i['’]?m (?:going to|gonna))\b(?! (?:(?:also|just|now|first|then|only|quickly) )?{_TELLS})"
    r"(?! (?:(?:also|just|still|probably|definitely|really|then|first|now|later|likely|even) ){0,3}"
    r"(?:(?:need|want|like|love|prefer|expect|require|appreciate|choose|pick|use|let you"
    r"|be (?:needing|wanting|expecting|happy|glad))\b|go (?:with|for (?!a\b))|leave\b.{1,40}\byou\b"
    r"|take (?!(?:a|another|one more) (?:look|break|walk)|care|over)|have (?!to\b|a look)))"
    r"|ich werde\b(?![^.!?,;\n]{0,120}\b(?:brauchen|benötigen|wollen|nehmen|bevorzugen|bitten|verlangen"
    r"|erklären|präzisieren|wiederholen)\b)"
    r"|je vais\b(?! (?:(?:aussi|encore|sans doute) ){0,2}(?:avoir besoin|vouloir|prendre|préférer|aimer|préciser"
    r"|expliquer|reformuler|répéter|(?:te|vous) (?:demander|dire|prier)"
    r"|ajouter une (?:exigence|contrainte|règle|condition))\b)"
    r"|voy a\b(?! (?:(?:también|además) )?(?:necesitar|querer|preferir|tomar|elegir|pedir|explicar|aclarar"
    r"|repetir|reformular|decir)(?:te|le|lo)?\b)"
    r"|vou\b(?! (?:(?:também|ainda) )?(?:te |lhe )?(?:precisar|querer|preferir|escolher|ficar com|pedir"
    r"|explicar|esclarecer|repetir|reformular|dizer)\b))",
    re.IGNORECASE,
)
"""How a sentence begins that tells what the user does next, and not what he wants."""
_ASKS_TOO = lazy_regex(
    r"[?？]|[,;] you\b|\b(?:please|(?:can|could|would|will|then|and|while|so) you|you (?:can|should|could|must|do|go"
    r"|keep|continue)"
    r"|(?:tell|show|send|give) me|let me know|meanwhile|in the meantime|bitte|inzwischen|por favor|mientras tanto"
    r"|s['’]il (?:te|vous) plaît|en attendant|enquanto isso)\b",
    re.IGNORECASE,
)
"""Words of what somebody else is to do meanwhile."""
_CLAUSES = lazy_regex(r"(?<=[,;:–—])\s+|(?<=[，；：、])|\s-{1,2}\s|[()]")
_WANTS = (
    r"(?:must|should|shall|ha(?:s|ve) to|needs?|want\w{0,2}|like|prefer|require\w?|muss|soll\w{0,2}|möchte|brauche|will"
    r"|hätte|doit|faut|veux|voudrais)"
)
_GOES_ON = lazy_regex(
    r"\W{0,4}(?:(?:and|but|so|then|or|und|aber|et|mais|y|pero|e|mas) ){0,2}(?:"
    r"(?:i(?:['’]?(?:m|ve)| am| was| have| had| think| guess| hope| know| can| could| may| might| do| don['’]t"
    r"| won['’]t| just)|(?:it|that|there)(?:['’]s)?|this|he|she|they|which|who|ich|er|sie|das|es|je|j['’]|c['’]est"
    r"|ça)\b"
    rf"(?!['’]?\w{{0,2}} (?:\w{{1,12}} ){{0,2}}{_WANTS}\b)"
    r"|(?:because|since|as(?! soon)|to see|before (?:i|we|it)|after (?:i|we|it)|if (?:i|it)|whether|not|ob|dass|weil"
    r"|damit|bevor|parce|pour voir|avant|car|porque|para ver|antes)\b"
    r"|(?:(?:tomorrow|tonight|today|later|soon|first|maybe|probably|bye|back|thanks|again|right now)\b ?){0,2}"
    r"(?:(?:in|at|for|after|before|by) (?:(?:an?|the|\d{1,2}) )?\w{1,12})?\W*$)",
    re.IGNORECASE,
)
"""How a clause behind a plan begins that asks for nothing: why, when, or how things are."""
_SENTENCES = lazy_regex(r"(?<=[.!?])\s+|(?<=[。！？])|\n")
