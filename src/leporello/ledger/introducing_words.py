"""The words with which people introduce a text of somebody else, in a dozen languages, as patterns."""

from __future__ import annotations

import re

from leporello.lazy_regex import lazy_regex

_I = re.IGNORECASE | re.VERBOSE

TEXT = lazy_regex(
    r"""\b(?:texts?|e-?mails?|mails?|messages?|letters?|notes|minutes|memo|notice|contract|lease|clause|paragraph
      |passage|section
      |chapter|excerpt|extract|article|blog|post|forum|thread|reviews?|comments?|feedback|essay|draft|abstract
      |job[ ]ad
      |posting|advert|policy|terms|manual|recipe|readme|file|config|logs?|output|traceback|transcript|chat
      |conversation
      |call|meeting|slack|whatsapp|telegram|ticket|issue|quote|snippet|handover|announcement|newsletter|article|speech
      |story|tweet|dm|sms
      |nachricht|brief|notizen|protokoll|\w*vertrag|klausel|absatz|abschnitt|auszug|artikel|beitrag|bewertung
      |rezension
      |kommentar|aufsatz|entwurf|\w*anzeige|hausordnung|anleitung|handbuch|rezept|datei|ausgabe|gespräch|zitat
      |rundschreiben|aushang|schreiben|buch
      |textes?|courriel|lettre|compte[ ]rendu|contrat|bail|extrait|billet|avis|commentaire|rédaction|dissertation
      |brouillon|redacción|redação|redazione|tema|testo
      |annonce|règlement|note[ ]de[ ]service|manuel|recette|fichier|sortie|discussion|citation|circulaire|appel
      |textos?|correo|mensaje|carta|apuntes|acta|contrato|cláusula|pasaje|párrafo|extracto|artículo|foro|reseña
      |comentario|ensayo|borrador|anuncio|reglamento|receta|archivo|fichero|salida|conversación|cita|aviso|circular
      |llamada
      |mensagem|notas|trecho|parágrafo|artigo|fórum|avaliação|comentário|rascunho|vaga|regulamento|arquivo|saída
      |conversa|resenha
      |testo|messaggio|lettera|appunti|verbale|contratto|clausola|brano|paragrafo|estratto|articolo|recensione
      |commento
      |bozza|annuncio|regolamento|manuale|ricetta|uscita|conversazione|avviso|circolare|riunione
      |лога?|чата?)\b
    | \b(?:текст|письм|сообщени|заметк|протокол|договор|пункт|абзац|отрыв|раздел|стать|форум|отзыв|комментари|сочинени
      |черновик|объявлени|инструкци|рецепт|файл|вывод|переписк|тикет|цитат)\w{0,4}\b
    | 文本|文章|邮件|信[，。]|短信|通知|公告|合同|条款|段话|段落|段文字|摘录|帖子|论坛|评价|评论|作文|草稿|招聘
    |手册|食谱|日志|记录
    | 聊天|对话|工单|网上|的信|消息
    | 文書|案内文|メール|メッセージ|手紙|お知らせ|契約書|条項|抜粋|記事|掲示板|レビュー|コメント|下書き|求人|規約
    |マニュアル
    | レシピ|ファイル|出力|ログ|メモ|議事録|チャット|会話|チケット|引用
    | 메일|메시지|편지|공지|계약서|조항|단락|기사|후기|댓글|로그|회의록|대화""",
    _I,
)
"""What somebody writes."""

DEICTIC = lazy_regex(
    r"""\b(?:this|these|here(?:'s)?|below|following|next
      |dies(?:e[rnms]?)?|das[ ]hier|hier|folgende[rnms]?|unten|nächste[rn]?
      |voici|voilà|ceci|ça|ce(?:tte|t)?(?=[ ]\w{3})|suivante?|ci-dessous
      |est[aeo]|aquí|así|siguiente|abajo
      |isto|isso|esse|essa|aqui|assim|seguinte|abaixo
      |quest[aeo]|ecco|qui|così|seguente|sotto
      |вот|эт\w{1,2}|так|следующ\w{2,3}|ниже)\b
    | 这[段条个封是]|以下|下面|次の|この|以下|これ|こう|이[ ]|다음|아래""",
    _I,
)
"""What points at a text."""

_FORWARD = r"""(?:\b(?:below|following|next|folgende\w?|unten|nächste\w?|suivante?s?|ci-dessous|siguientes?|abajo
      |seguintes?|abaixo
    |seguent[ei]|sotto|следующ\w{2,3}|ниже)\b|以下|下面|次の|다음|아래)"""
FORWARD = lazy_regex(_FORWARD, _I)
"""What points at what follows."""
POINTED = lazy_regex(
    rf"""{_FORWARD} | 这[段条个封些] | この | これ | こう | そう
    | \b(?:th(?:is|ese)|dies\w{{0,2}}|ce(?:tte|t)?|est[aeo]s?|ess[aeo]|quest[aeoi]
    |эт\w{{1,2}})[ ](?:[\w-]{{1,20}}[ ]){{0,2}}
      (?:e?-?mails?|messages?|texts?|letters?|notes?|clause|section|paragraph|passage|sentence|nachricht|brief|klausel
        |absatz|abschnitt|satz|texte|lettre|courriel|phrase|paragraphe|correo|mensaje|carta|cláusula|párrafo
        |frase|mensagem
        |parágrafo|messaggio|lettera|testo|clausola|paragrafo|письмо|сообщение|текст|пункт|абзац)\b
    | \b(?:this|these|das[ ]hier|das|dies|hier|folgendes|ça|ceci|cela|esto|eso|así|isto|isso|assim|questo|così
    |это|вот|так)
      (?=[ ]?(?:$|[.,:!?…]|(?:from|in|on|by|at|via|to|sound|more|shorter|better|easier|into|mean|today|yesterday
      |just|an?|and|this|von|vom|aus|im|per|heute|gestern|gerade
        |kam|ce|de|du|dans|sur|hier|par|del|en|por|hoy|ayer|do|da|no|na|em|hoje|ontem|dal|dalla|su|nel|oggi|ieri
        |от|в|на|из|по
        |сегодня|вчера)\b))""",
    _I,
)
"""What points at a text by itself: "this" alone, and not "this bug"."""

SAID = lazy_regex(
    r"""\b(?:wrote|writes|says?|said|told|answer(?:s|ed)|repl(?:ies|ied)|responded|posted|commented|texted
      |messaged|emailed
      |reads|states|sent|sends|forwarded
      |schreibt|schrieb|geschrieben|meinte?|sagte?|antwortete?|geantwortet|geschickt|mailt
      |écrit|dit|répond(?:u)?|envoyé|commenté
      |escribe|escribió|dice|dijo|responde|respondió|contest[aó]|mandó|envió
      |escreveu|escreve|diz|disse|respondeu|mandou|enviou
      |scrive|scritto|detto|rispos?nde|risposto|mandato|inviato
      |написала?|пишет|сказала?|говорит|ответила?|прислала?)\b
    | 发来的?|写道|说(?:[:：]|$)|回复说|写着|メッセージです|書いて(?:あり|い)|言われ|からの(?:メール|メッセージ
    |返事)|말했|보냈""",
    _I,
)
"""Somebody else says something."""

GOT = lazy_regex(
    r"""\b(?:got|gets|received|found|saw|read|came|bekommen|erhalten|kam|gefunden|gelesen|steht|reçue?s?|trouvé
      |lu|recib[ií]
      |recibimos|recebi|recebemos|encontr[ée]i?|leí|li|achei|llegó|chegou|ricevut[oa]|trovat[oa]|letto
      |arrivat[oa]|получила?|наш[её]л|нашла
      |прочитала?|пришло)\b
    | 收到|寄来|看到|届い|もらった|見つけ|받았""",
    _I,
)
"""Something came, or was found."""

_PLEASE = r"""\W{0,4}(?:(?:please|pls|now|and|then|ok|can[ ]you|could[ ]you|would[ ]you|help[ ]me|bitte
      |kannst[ ]du|könntest[ ]du|peux-tu
    |pouvez-vous|puedes|¿?puedes|por[ ]favor|puoi|pode|пожалуйста|сможешь|请|帮我|帮忙|能|(?:me|mi|mir
    |mal)(?=[ ]))[ ,]{0,2}){0,3}"""
WORK = lazy_regex(
    rf"""{_PLEASE}(?:(?:translat|proofread|rewrit|rephras|paraphras|summari[sz]|shorten|clean|correct|polish
      |improv|fix[ ]the[ ](?:grammar|spelling|typos|wording|english|language)
      |extract|explain|make[ ](?:this|it)|turn[ ](?:this|it)
      |übersetz|korrigier|prüf|fass|formulier|kürz|erklär|überarbeit|verbesser|lies|korrektur[ ]les
      |tradui|corrige|résume|reformul|raccourci|explique|relis|relire|améliore
      |traduc|traduz|corrig|resum|reescrib|reescrev|acort|explíca|explica|encurt|melhor
      |correggi|riassum|riscriv|spiega|accorci|migliora
      |перевед|исправ|резюмир|обобщ|перепиш|сократ|объясн|проверь|сделай[ ])\w*(?:[ ]mal)?
      |(?:reply|respond|answer)[ ]to|schreib[ ]eine[ ]antwort|réponds?[ ]à|respond[ea][ ]a|rispondi[ ]a|ответь[ ]на
      |(?:请|帮我|给我)?(?:翻译|总结|改写|校对|概括|解释|提取|润色|回复|看看|整理)|把)""",
    _I,
)
"""A request to work on a text. Japanese and Korean say it at the end of the sentence."""

BARE = lazy_regex(
    r"""(?:[ ](?:it|this|that|please|pls|for[ ]me|das|dies|mal|bitte|zusammen|für[ ]mich|ça|ceci|cela
      |s['’]il[ ]te[ ]pla[iî]t|stp|svp
      |esto|eso|isso|isto|questo|por[ ]favor|per[ ]favore|это|пожалуйста|aloud
      |(?:in|into|to|ins|en|au|al|em|na|para|на)[ ](?:the[ ]|o[ ])?[^\W\d]{2,15}))*""",
    _I,
)
"""What may stand behind such a request that names nothing to work on."""

WORK_LAST = lazy_regex(
    r"""\b(?:kürzen|übersetzen|korrigieren|prüfen|zusammenfassen|formulieren|umformulieren|erklären|überarbeiten
      |verbessern
      |gegenlesen|durchlesen)[ ]?[.?!:]*$
    | (?:翻訳|要約|校正|添削|説明|整理|短く|英語に|日本語に|自然に|直|まとめ|번역|요약|교정|설명
    |정리)(?:に)?(?:[をし]?て|해)?(?:ください|下さい|くれ[るま]\S{0,5}|줘|주세요)?[。：:？?]?$""",
    _I,
)
"""The same where the verb stands last."""

REPLY = lazy_regex(
    r"""\W{0,4}(?:(?:please|bitte|por[ ]favor|ok|so|so,)[ ,]+)?(?:always[ ]|never[ ])?(?:
      (?:what|why|how|who|which|is|are|does|do[ ]you|should|can[ ](?:i|you)|any[ ]idea|thoughts|draft|reply
      |respond|answer|write|carry[ ]on
      |continue|list|tell[ ]me
      |was|wie|warum|wer|stimmt|schreib|antworte|fass|mach|soll
      |que|quoi|qui|pourquoi|comment|c'est|rédige|écris|je[ ]réponds|réponds
      |qué|quién|cómo|por[ ]qué|escribe|redacta|como|o[ ]que|resume|escreva|responda
      |cosa|chi|come|perché|scrivi|fammi|estrai
      |что|кто|как|почему|напиши|ответь)\b
    | 什么|怎么|为什么|是这样|回复|返信|何)""",
    _I,
)
"""With what the user speaks again below the text."""

OURS = lazy_regex(
    r"""\b(?:i|we|my|our|ich|wir|mein\w{0,2}|unser\w{0,2}|je|nous|mon|mes|ma|nos|notre|mi|mis|mío|meus?|minhas?
      |miei|mie|mio|mia|ho|abbiamo|я|мы|мои|мой|наши?)\b|我|私""",
    _I,
)
"""The user speaks of himself."""

SPOKEN_BY_US = lazy_regex(
    r"""\b(?:i|we|you|ich|wir|du|je|j['’]ai|nous|on|yo|nosotros|eu|nós|io|noi|ho|abbiamo|hemos|я|мы)\b[^,;.]{0,30}$
      |[我私]\S{0,4}$""",
    _I,
)
"""Behind it stands what the user says himself."""

OWN_TITLE = lazy_regex(
    r"""\b(?:rules?|constraints?|requirements?|guidelines|preferences|important|reminder|please[ ]note
      |nota[ ]bene|remember|instructions?|conventions?
      |vorgaben|regeln|wichtig|anforderungen|règles|consignes|contraintes|exigences|reglas|instrucciones
      |requisitos|regras|instruções
      |regole|istruzioni|requisiti|правила|требования|важно|goal|task|plan|style|language|context|todo)\b
    | 规则|要求|ルール|規則|규칙|注意""",
    _I,
)
"""A heading under which the user says what he wants himself."""

GREETING = lazy_regex(
    r"""(?:(?:dear|hello|hi|hey|good[ ](?:morning|afternoon|evening)|to[ ]whom|liebe[rs]?|hallo|guten|bonjour|bonsoir
      |madame|monsieur|ch[eè]re?s?|hola|buen[oa]s|car[oa]s?|olá|oi|boa|bom[ ]dia|gentile|spett|ciao|buongiorno
      |привет)\b
    | sehr[ ]geehrt|querid|estimad|prezad|egregi|уважаем|здравств|дорог|добрый
    | 尊敬的|亲爱的|您好|你好|いつもお世話|お世話|お疲れ|拝啓|안녕)""",
    _I,
)
"""How a letter begins."""

MAIL_HEAD = lazy_regex(
    r"""(?:from|to|cc|date|sent|subject|von|an|gesendet|betreff|body|text|de|à|objet|envoyé|para|asunto|assunto
      |enviado|da|a|oggetto|от|кому|тема|发件人|收件人|主题|差出人|宛先|件名
      |보낸[ ]?사람|받는[ ]?사람|제목)[ ]?[:：][ ]?\S""",
    _I,
)
"""A line of the head of a mail."""
