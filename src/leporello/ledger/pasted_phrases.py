"""Words by which a text is known that somebody passes on; `leporello.ledger.pasted` reads messages by them."""

from __future__ import annotations

import re

from leporello.lazy_regex import lazy_regex

ASKS = lazy_regex(r"[?？](?:[\s\"”»)']|$)")
GAP = lazy_regex(r"\n[ \t]*\n\s*")
END = lazy_regex(r"(?<=[.!?:;…])\s+|(?<=[。！？：])")
TO_MACHINES = lazy_regex(
    r"""\b(?:ai|llms?|automated|language[ ]model)s?[ -](?:assistants?|agents?|models?|systems?|tools?|readers?
      |summari[sz]ers?)\b[^.!?\n]{0,20}
      \b(?:read|process|summari[sz]|pars|index|crawl)(?:s|ing|e|es)?[ ]
        (?:this|these|the[ ](?:page|text|document|file|e?mail))\b
    | \b(?:note|attention|instructions?|message|hint|important)[ ](?:to|for)[ ]
      (?:(?:the[ ])?(?:ai\b|llms?\b|language[ ]models?)|(?:any|all|every)[ ](?:assistant|agent|model|bot|chatbot|reader)
      |(?:assistant|agent|model|bot|chatbot|reader)s\b)
    | \b(?:attention|dear|hello|hey)[ ,:!]{1,2}(?:(?:all|any|every)[ ])?(?:ai\b|llms?\b|language[ ]models?)
    | \bif[ ]you[ ]are[ ](?:an?[ ])?(?:ai|llm|language[ ]model|assistant|agent|bot)\b
    | \b(?:hinweis|anweisung(?:en)?)[ ](?:an|für)[ ](?:die[ ]|alle[ ])?(?:ki|ai|assistent)
    | \b(?:note|instructions?)[ ](?:aux?|pour)[ ](?:les[ ]|l['’])?(?:ia|assistants?)\b
    | \b(?:nota|instrucciones|instruções|istruzioni)[ ](?:para|per)[ ](?:la[ ]|el[ ]|a[ ]|o[ ]|l['’])?(?:ia
      |asistentes?|assistent[ei])\b
    | (?:致|给)(?:所有)?(?:AI|人工智能|助手) | AI(?:アシスタント|エージェント)(?:へ|は|向け)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Who writes so expects a machine to read it: no user calls his own assistant that."""
_OF_A_THING = r"""(?![ ](?:(?:anteriores|previas|précédentes|precedenti)[ ])?(?:about|on|regarding|concerning|against
    |for(?![ ](?:now|good|this|the[ ]rest))|zu[mr]?|über|bezüglich|sur|concernant|sobre|acerca|su(?:l|lla|lle|i|gli)?
    |riguardo)[ ]\w)"""
IGNORES = lazy_regex(
    rf"""(?:(?<!can[ ])(?<!may[ ])\b(?:ignore|disregard|forget|override)[ ](?:the[ ]|your[ ])?
        (?:previous|prior|above|earlier|preceding|former|other)[ ](?:instructions|rules|messages|prompts?|orders)
      | \b(?:ignore|disregard|forget|override)[ ](?:all|any|every)[ ](?:of[ ])?(?:the[ ]|your[ ])?
        (?:previous|prior|above|earlier|preceding|former|other)[ ](?:instructions?|rules?|messages?|prompts?|orders?)
      | \bignorier\w{{0,3}}[ ](?:alle[ ]|die[ ]){{0,2}}(?:vorherigen|bisherigen|obigen)[ ](?:anweisungen|regeln)
      | \bignore[rz]?[ ](?:toutes[ ])?les[ ]instructions
      | \bignor[aeo]\w?[ ](?:todas[ ]|tutte[ ])?(?:las|as|le)[ ](?:instrucciones|instruções|istruzioni)
    )\b{_OF_A_THING}
    | \b(?:игнорируй|забудь)\w{{0,3}}[ ](?:все[ ])?(?:предыдущие|прежние)\b
      (?![ ]\w{{1,20}}[ ](?:об?|про|насч[её]т|по)[ ])
    | 忽略(?![^。\n]{{0,6}}(?:关于|有关))[^。\n]{{0,6}}(?:指令|指示|规则)
    | (?<!に関する)(?:以前|これまで|上記)の指示(?:は|を)(?:すべて)?無視
    | (?<!대한[ ])이전[ ]지시(?:는|를|사항)[^.\n]{{0,8}}무시""",
    re.IGNORECASE | re.VERBOSE,
)
"""Who takes back what others have said, all of it; a user takes back his own rules about a thing."""
TEXT = lazy_regex(
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
POINTS = lazy_regex(
    r"""\b(?:this|these|here(?:'s)?|below|following|dies(?:e[rnms]?)?|hier|folgende[rnms]?|unten|voici|ce(?:tte
      |t)?(?=[ ]\w{3})
      |suivante?|ci-dessous|est[aeo]|aquí|siguiente|abajo|isto|ess[ea]|aqui|seguinte|abaixo|quest[aeo]|ecco
      |seguente|sotto
      |вот|эт\w{1,2}|следующ\w{2,3}|ниже)\b | 这[段条个封是]|以下|下面|次の|この|これ|이[ ]|다음|아래""",
    re.IGNORECASE | re.VERBOSE,
)
"""What points at a text."""
BARE_WORK = lazy_regex(
    r"""\W{0,4}(?:(?:please|pls|can[ ]you|could[ ]you|bitte)[ ,]{0,2})?(?:proofread|rephrase|reword
      |polish|translate|summari[sz]e|shorten|correct|paraphrase|übersetz\w*|korrigier\w*|corrige[rz]?|tradui[st]|traduce|traduza|traduci|riassumi
      |correggi|resum[ea]|переведи|исправь|сократи)
      (?:[ ](?:this|it|that|for[ ]me|das|bitte|ça|esto|isto|questo|это)){0,2}
      [ ,]{0,2}(?:please|pls|thanks|bitte|svp)?[.:!?]{0,2}$""",
    re.IGNORECASE | re.VERBOSE,
)
"""Work on a text that is not named: it stands below."""
OF_WHAT = lazy_regex(
    r"\b(?:notes|minutes|readme|transcript|text|contents?|output|protokoll|ausgabe|inhalt|texte|contenu|texto|testo)"
    r"[ ](?:of|von|vom|des|du|de|del|do|da|della?)[ ](?!mine|ours|my|our)[^:\n]{1,60}[:：]$"
    r"|\b(?:whatsapp|sms|dm|text|slack|teams|e-?mail|mail)[ ](?:from|von|de|da|van|от)[ ]"
    r"(?!(?:now|today|here|jetzt|nun|heute|hier|ahora|hoy|agora|hoje|me|my|us|mir|mi|mim)\b)[^:\n]{1,60}[:：]$"
    r"|[ ]on[ ](?:linkedin|twitter|reddit|slack|discord|facebook|whatsapp|mastodon|instagram|the[ ]phone)[ ]?[:：]$",
    re.IGNORECASE,
)
JUDGED = lazy_regex(
    r"""\b(?:sounds?|reads?[ ](?:well|right|ok|okay|fine|better|natural\w{0,2})
      |worded|phrased|tone|wording|phrasing|grammar|spelling|klingt|formuliert|geschrieben|ton|écrit
      |escrito|escrita|suena|scritto|suona|soa)\b[^.!?\n]{0,30}[?]$""",
    re.IGNORECASE | re.VERBOSE,
)
"""How something is worded is asked of a text."""
SAYS = lazy_regex(r"[ \t]{0,4}([^\W\d_][\w'’-]{1,20})[ ]?[:：][ ]?\S")
TALK = lazy_regex(
    r"""\b(?:notes|minutes|call|meeting|standup|chat|conversation|transcript|thread|slack|teams|whatsapp|discord|discussion
      |said|protokoll|gespräch|besprechung|unterhaltung|verlauf|anruf|réunion|appel|échange|discussion|compte[ ]rendu
      |llamada|reunión|conversación|charla|acta|chamada|reunião|conversa|ata|chiamata|riunione|conversazione|verbale
      |встреч\w|созвон\w?|переписк\w|разговор\w?)\b | 会议|聊天|对话|記録|会話|議事|회의|대화""",
    re.IGNORECASE | re.VERBOSE,
)
"""A line that says that people talk below it."""
NO_NAMES = frozenset(
    "me ich moi yo eu io я rule rules note notes todo fixme fix add remove change step goal task do don't"
    " don’t must never always backend frontend api server client database db ui ux test tests docs build"
    " deploy ci staging prod production dev user users admin input output example scope style language"
    " format python go rust java feature bug issue why what how when where regel hinweis aufgabe ziel"
    " schritt règle tâche étape objectif regla nota tarea paso objetivo regra tarefa passo regola compito"
    " obiettivo правило заметка задача шаг цель 规则 注意 任务 目标 前端 后端".split()
)
"""Labels of a list of one's own."""
MINE = lazy_regex(r"\b(?:my|mein\w{0,2}|mon|mes|mis?|meus?|minhas?)\b", re.IGNORECASE)
TASK = lazy_regex(
    r"""\b(?:fix|implement|build|refactor|debug|deploy|update|add|follow|against|behebe?|repariere?|implementier\w{1,2}|baue?
      |implémente|répare|ajoute|arregla|implementa|añade|corrige[ ](?:le|el|o)[ ](?:bug|error|bogue)|aggiungi)\b
    | почини|исправь[ ]ошибк|добавь|реализуй|修复|实现|添加|修正して|実装|고쳐|구현""",
    re.IGNORECASE | re.VERBOSE,
)
"""Work on something else than the text that is named."""
OF_HIMSELF = lazy_regex(r"\b(?:I|I['’]\w{1,2}|me|ich|mir|mich|je|j['’]\w|yo|eu|io)\b")
MADE = lazy_regex(r"^\W{0,4}(?:please )?make (?:this|it|that) (?:more|less|sound|\w{3,12}er)\b", re.IGNORECASE)
PROSE = lazy_regex(
    r"""\b(?:clause|paragraph|passage|excerpt|sentence|letter|e-?mail|message|review|poem|speech|klausel|absatz|abschnitt
      |auszug|satz|brief|bewertung|clause|paragraphe|extrait|lettre|avis|cláusula|párrafo|carta|reseña|trecho|clausola|brano
      |lettera|recensione)\b|(?:пункт|абзац|отрыв|письм|отзыв)\w{0,3}|条款|这段话|条項|조항""",
    re.IGNORECASE | re.VERBOSE,
)
"""Texts that people write to people: of files and outputs the user speaks in his work."""
LABEL = lazy_regex(r"(?:[A-Z]|\d{1,2})[.):]\s")
WITHIN = lazy_regex(
    r"(?<=[\w.:!?] )((?:Dear|Hello|Hi|Hey|Liebe[rs]?|Hallo|Bonjour|Hola|Olá|Ciao|Привет|Cari|Car[oa]s|Chers)"
    r" [^\n.!?,]{1,40},)"
)
HANDED = lazy_regex(
    r"""\b(?:wrote|writes|says?|said|replied|posted|commented|texted|messaged|emailed|states
      |(?<!that[ ])(?<!which[ ])
      (?:reads|contains?)(?=[ ]?[:：.]|[ ](?:as[ ]follows|like|so|this|these|the[ ]following)\b)
      |sent|sends
      |forwarded
      |got|received|found|pasted|told|goes[ ]like|(?:was|stood)[ ](?:in|on)
      |steht|laut|según|написано
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
"""Somebody said or sent something."""
IDIOM = lazy_regex(
    r"\bgot[ ](?:it|that|you|to)\b|\b(?:found|got)[ ](?:one|another|two|a[ ]few|some)[ ](?:more[ ]|other[ ])?"
    r"(?:things?|points?)\b"
    r"|\b(?:that|as|having|easier|being)[ ]said\b"
    r"|\b(?:cela|ceci|autrement)[ ]dit\b|\bdetto[ ](?:questo|ciò)\b",
    re.IGNORECASE,
)
"""Words for what was said in which nobody said anything: "Got it", "that said"."""
_NO_SOURCE = r"""(?!(?i:me|us|mine|now|today|tonight|tomorrow|yesterday(?!['’]s)|here|there|then|before|scratch|memory
    |root|main|home|school|time|(?:last|next)[ ](?:time|week|month|year|night)(?!['’]s)
    |(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|august|september|october
    |november|december|my[ ](?:\w{1,12}[ ]){0,2}(?:messages?|e-?mails?|letter|blog|book|paper|article|site|ticket|issue
    |docs))\b)"""
FROM = lazy_regex(
    rf"""^From:$ | \b[Ff](?:rom|ROM)[ ]{_NO_SOURCE}(?![^:\n]{{0,60}}\b(?:on|onwards?|forwards?|perspective|standpoint
      |(?:point[ ]of[ ])?view)[ ]?[:：,])
      (?:(?i:(?:[\w'’&-]{{1,20}}[ ]){{0,4}}(?:landlord|landlady|boss|manager|lead|leader|ceo|cto|cfo|hr|pm
          |director|chief|head|managements?|board|teams?|colleagues?|co-?workers?|clients?|customers?|vendors?|suppliers?|partners?|legal
          |lawyers?|attorney|notary|accountants?|compliance|finance|marketing|sales|support|security|accounting|department
          |office|company|agency|bank|insurance|teachers?|professors?|university|doctors?|clinic|hospital|mum|mom|dad
          |mother|father|parents|sister|brother|wife|husband|daughter|aunt|uncle|friends?|neighbou?rs?|flatmates?
          |roommates?|tenants?|residents|guys?|girl|man|woman|lady|people|someone|somebody|admins?|moderators?
          |maintainers?|authors?|reviewers?|developers?|devs?|consultants?|contractors?|recruiters?|staff|council
          |government|police|embassy|airline|hotel|shop|seller|buyer|union|club|committee|wiki|docs|documentation|manual
          |handbook|readme|website|web|site|portal|blog|forum|newsletter|article|book|letter|e-?mails?|mail|inbox
          |messages?|chat|thread|channel|ticket|issue|contract|lease|policy|meeting|workshop|interview|webinar|conference
          |offsite|training|call|standup|retro|sync|transcript
          |minutes|linter|compiler|notice|poster|leaflet|brochure|assistant|bot|chatgpt|internet)\b)
        |[A-Z][\w.&-]{{1,30}}(?![ ]\d))
    | \b(?i:dms?|texts?|sms|whatsapp|slack|messages?|e-?mails?|note|this|these|that)
      [ ]from[ ]{_NO_SOURCE}\w{{2,20}}[ ]?[:：]$""",
    re.VERBOSE,
)
"""The head of a mail, or a person, a group or a place behind "from"; a time or the user himself is none."""
TAKES_FROM = lazy_regex(
    r"(?:\b(?:different|differs?|differing|differently|apart|aside|away|far|free|exempt|exclud\w{0,3}|hid(?:e|ing|den)|keep"
    r"|kept|remov(?:e|es|ing)|delet(?:e|es|ing)|strip|drop|independent|separate[ds]?|isolate[ds]?|protect|prevent)\b"
    r"[^.:!?\n]{0,40}"
    r"|\b(?:start|begin|read|write|import|export|load|fetch|pull|migrat|switch|mov|inherit|deriv|deploy|install|build|learn"
    r"|suffer|benefit|stay|refrain|port|translat|take|run|call|use)(?:e?[ds]|e|ning|ing|t)?[ ]"
    r"(?:(?:it|them|all|everything|data|files|images)[ ])?"
    r"|^\W{0,3}(?:coming|going)[ ])$",
    re.IGNORECASE,
)
"""A verb or an adjective to which a "from" behind it belongs."""
THIS_LAST = lazy_regex(
    r"""\b(?:th(?:is|ese)|the[ ]following|dies|das|das[ ]hier|folgendes|ça|ceci|esto|isto|isso|questo|это|вот)\b
      (?:[ ](?:e?-?mail|message|note|letter|from|in|on|by|via|en|em|na|no|nel|today|yesterday|von|vom|aus|im|heute
      |gestern|de|du|sur|hier|hoy|ayer
      |hoje|ontem|dal|oggi|ieri|сегодня|вчера)\b[^:;!?]{0,40})?[.:：]?$
    | (?:发来的?|写道|收到|届い[^。]{0,4}|もらった|받았[^.]{0,4})[^。]{0,12}[。：:]?$""",
    re.IGNORECASE | re.VERBOSE,
)
BY_US = lazy_regex(
    r"""(?:\b(?:i|we|you|ich|wir|du|ihr|je|nous|tu|vous|yo|nosotros|tú|eu|nós|você|io|noi|я|мы|ты|вы|ik|wij|we|jag|vi)
      (?:['’](?:ve|d))?
      (?:[ ](?:have|had|just|already|also|always|once|only|even|hab\w{1,4}|hat\w{1,3}|dir|euch|ihnen|das|es|dies
        |schon|ja|auch
        |bereits|vorhin|gestern|heute|immer|so|oben|te|le|la|l['’](?:ai|avons|as)|t['’]ai|vous|ai|as|avons|avez|déjà|lo|ya
        |isso|já|ho|hai|abbiamo|già|ti|тебе|вам|это|уже|heb|hebt|je|har)){0,5}
      |\bj['’](?:ai|avais)(?:[ ]déjà)?|\b(?:l['’])?(?:ho|abbiamo|hai)(?:[ ](?:già|appena))?
      )[ ]$ | (?:我|我们|你)(?:已经|刚才?|之前|上次)?(?:就|都)?$""",
    re.IGNORECASE | re.VERBOSE,
)
"""What stands before a verb when the user or the assistant said it: nobody else stands between."""
WE_BEHIND = lazy_regex(r"[ ](?:i|we|ich|wir|du|ik|jag)\b", re.IGNORECASE)
"""`sagte ich`"""
COMES = lazy_regex(
    r"""got|received|found|pasted|forwarded|contains?|reads|goes[ ]like|(?:was|stood)[ ](?:in|on)|from|steht|laut|según
      |написано|bekommen|erhalten|gefunden|reçue?s?|trouvé|recibí|encontré|recebi|achei|ricevut[oa]|trovat[oa]
      |получила?|kreeg|dostała?m|收到|看到|写着|届い|もらった|からの|받았""",
    re.IGNORECASE | re.VERBOSE,
)
"""Who got or found a text did not write it."""
RELATIVE = lazy_regex(
    r"(?:\b\w{1,30}[ ](?:that|which|who|qui|que|che)|,[ ](?:der|die|das|welche[rs]?|dat|котор\w{1,3}|która|który))[ ]"
    r"[^,:;]{0,30}$",
    re.IGNORECASE,
)
"""A thing is named by what it says or gets: "the function that reads"."""
OF_IT = lazy_regex(
    r"\W{0,2}(?:it|that|this|they|these|there|i|we|you|my|our|es|das|dies\w{0,2}|ich|wir|sie|c['’]|ce"
    r"|(?:il|elle)(?=[ ](?:est|faut|doit))|je|nous|notre|esto|es|está|yo|isso|é|eu|è|questo|это|он|она|я|мы|наш\w?)\b"
    r"|(?:the|der|die|das|le|la|el|il|o|a)[ ](?:texts?|tone|audience|readers?|length|style|result|answer|translation"
    r"|summary|spec|bug|issue|ton|stil|länge|leser|publikum|ziel|texte|longueur|lecteurs?|texto|tono|estilo|testo|tom)\b"
    r"|\W{0,2}(?:这|它|我|これ|それ|이|그)",
    re.IGNORECASE,
)
"""Who passes a text on speaks of it so."""
OWN = lazy_regex(
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
PLACE = lazy_regex(
    r"\w/\w|\w\.(?:md|txt|pdf|docx?|py|html|csv|json|ya?ml)\b"
    r"|\b(?:when(?:ever)?|if|once|wenn|sobald|falls|quand|si|cuando|quando|se|когда|если)\b"
)
"""The text stands in another place, or it comes later."""
GREETING = lazy_regex(
    r"""[ \t]*
      (?:(?:dear|hello|hi|hey|good[ ](?:morning|afternoon|evening)|to[ ]whom|liebe[rs]?|hallo|guten|bonjour|bonsoir
      |madame|monsieur|ch[eè]re?s?|hola|buen[oa]s|car[oaie]s?|olá|bom[ ]dia|boa[ ]tarde|gentil[ei]|spett|ciao
      |buongiorno|привет)\b
    | sehr[ ]geehrt|querid|estimad|prezad|egregi|уважаем|здравств|добрый[ ]
    | 尊敬的|亲爱的|您好|各位|大家好|いつもお世話|お世話|お疲れ|拝啓|皆様|各位|안녕|고객)""",
    re.IGNORECASE | re.VERBOSE,
)
"""How a letter begins."""
OTHERS = lazy_regex(
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
CLOSING = lazy_regex(
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
