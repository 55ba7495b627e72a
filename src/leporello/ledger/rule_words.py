"""The words that speak for a standing rule or against one, by language: what `leporello.ledger.rules` counts.

Each line names a feature and its words (as a pattern without case). A name with `^` stands for words that count at the
start of a clause only. The features and their weights are the same for every language; only the words differ.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from leporello.lazy_regex import lazy_regex

_WORK = (
    r"api|apis|endpoints?|commit(?:s|ted|ting)?|push(?:es)?(?= (?:to|on|direct|diret|direkt|straight|origin|auf|a|na|no|su|sur|in)\b)|merg(?:e|es|ed|ing)|rebas\w+|branch(?:es)?|main|trunk|repos?|repository|git|github|ci|prod|staging"
    r"|deploy\w*|releas\w+|builds?(?! (?:a|up|relationships)\b)|docker\w*|servers?|host|ports?|cluster|pod|database|db|sql|postgres\w*|redis|sqlite|schema"
    r"|migrations?|json|yaml|utc|cli|gui|ui|url|http\w*|tests?|mocks?|lint\w*|logs?|bugs?|code\w*|python|java|node|rust|php|p?npm|ubuntu"
    r"|debian|windows|macos|linux|tabs?|tokens?|config\w*|backend|frontend|framework|scripts?|debug\w*|patch|diffs?|prs?|sdk|cache|vendor"
    r"|emojis?|password\w*|metadata|html|css|eval|lodash|orm|go \d\S*"
)

_ENGLISH = rf"""
    ^ban: (?:do not|don'?t|dont)(?: you dare| ever| even| just)?(?! (?:found|know|think|see|remember|understand|have|believe|mind|recall|worry|care|get|really|seem|appear|feel|agree|wanna|exist|work|make sense|always|forget)\b)|never(?: ever)?(?! (?:mind|been|had|seen|heard|thought|knew|got|gets?|give up)\b)|avoid|refrain|steer clear|hold off|beware|under no circumstances|(?:stop|quit|cease) \w+ing|no longer|no (?:more|new|need)|no (?!problem|worries|regrets|idea|way|one\b|matter|doubt|question|luck|thanks|it\b|that\b|i\b|we\b|you\b|the\b|there\b|this\b|reason|clue|file\b|tests ran)[\w-]+(?=(?: [\w`./-]+){{0,7}}[.!]*$)|not (?:ever|on|in|for|before|until|without|more than|too|so|under)|nothing(?! (?:changed|happen|else|more|work))|nobody(?! (?:knows|cares|likes|told|was|is))|no one(?! (?:knows|cares|likes|told|was|is))|hands off|stay (?:away|off|out|clear)|leave|skip|ignore|exclude|omit|freeze|none of|not (?:rename|touch|change|use|add|remove|break|commit|push|log|print)
    ^task: take|skip|pick|add|create|implement|fix|show|review|update|check(?! with)|look|find|open|list|explain|rename|restart|go (?:through|over)|research|continue|proceed|press|start|collect|expand|enhance|extend|consider|rerun|generate|determine|describe|read|run|remove|delete|let me|to (?:resume|suppress|something)|save|count
    ^keeps: always (?!had|been|up|rooting|here|loved|wanted|thought|good|nice|great|fun|happy|there|so|a|the|knew|felt|wondered)[a-z]+|(?:always |only )?(?:use(?! of)|keep(?! (?:going|on|it up|working|trying|up|at it|pushing|spreading|in touch|each other))|be (?=(?:very |extra |more |really )?(?:sure|careful|concise|brief|strict|explicit|precise|conservative|terse|thorough|consistent|mindful))|make sure|prefer|favou?r|stick|adhere|comply|follow|respect|match|mirror|mimic|treat|name|preserve|retain|maintain|ensure|remember|document|spell|prefix|default|stay|double-check|limit|cap|restrict|pin|wrap|indent|roll (?:that|it|this) back|log in json|answer|reply|respond|just (?:use|give|return|omit|keep|leave|reb)|ask)|type hints|at most
    ^order: please|make|be|put|move|write|return|print|set|send|pass|store|log|mock|test|change|replace|do|try|give|handle|wrap|format|indent|sort|group|split|merge|commit|push|deploy|release|import|verify|pin|call|drop|place|let|squash|raise|render|reject|refuse|report|tell|warn|consult|confirm|wait|focus|aim|think of|mark|rebase|bump|roll|just|minimal|fewer|less
    ^no: no(?=\W|$)(?! problem| worries| idea| doubt)|nope|nah|not (?:now|yet)|absolutely not|negative|rather not
    ^corrects: wrong|incorrect|correction|not (?:that|like that|what|quite)|oops|actually|that'?s (?:wrong|not|the old)|thats not|it'?s [\w./-]+, not|its called|it'?s called|i (?:meant|said|asked for)|once more
    ^asks: why|how|what|where|who|which|when do|is|are|do|does|did|should|has|have (?:you|we)|am i
    ^always: - if there|if there is|whenever|each time
    ^report: i'?m (?:kinda|just|trying|worried|stuck|considering|debating|not sure|unsure|wondering|thinking|looking|motivated|planning|curious|struggling|working|having|getting|feeling|excited|concerned|experimenting|also)|i(?:'ve|'d| have) (?!like|rather|prefer)|i added|i (?:went|was|had|got|am|did|saw|looked|know|need|always|never|put|tried|suspect)|there (?:is|are|was|were)|they|he|she|here|first
    permits: go ahead(?! of)|feel free|by all means|permission|you may|you(?:'re| are) (?:now )?(?:allowed|free)|you can (?:now|go|safely|push|delete|merge|deploy|commit|add|drop|ignore|skip|use|remove|edit|change|touch|print|modify|overwrite)|i (?:approve|consent|authori[sz]e)|approved|(?:it'?s|that'?s|is|are) (?:now |again )?(?:ok|okay|fine|alright|allowed|permitted|acceptable|welcome|writable|optional|editable)
    past: was|were|wasn'?t|weren'?t|had|did|didn'?t|went|got|came|took|ran|saw|told us|tried|yesterday|last (?:night|week|month|year|friday)|used to|ago|(?:i|we|they|he|she|it|you) (?:always |never |only |just )?\w{(2,)}(?<!ne)ed|ha(?:s|ve) been|i'?ve|i have|already|never (?:got|worked|finished|logged|picked|saw)|took|passed|so far|since yesterday|never \w+ed|(?<=who )\w+ed
    hypothetical: if we ever|if i ever|if (?:we|i|you|they) (?:were|had|sold|won)|imagine|suppose|what if|in an? (?:ideal|perfect) world|hypothetically|someday|were to|would (?:run|have|happen|that|never|always)|could have|whether
    says: says?|(?<!i )said|told me|wrote|writes|written|according to|readme|rfc|the (?:docs?|documentation|manual|spec|error|message|log|answer|page|article|book) (?:says?|states?|reads?|is)|claims?|reads(?=[:,]| ["“])
    task: just (?:validate|check|look)|need to (?:look|check|see)|rather wait|(?:need|want|like) (?:to add|to see|to know|to refactor|a|an|another|some|you to generate)(?= )|supposed to have|broke something|look what
    once: again|once more|now(?! on)|right now|quickly|quick|this time|today|tonight|one more time|for a moment|that one|in a (?:minute|moment|second)|line \d+|last (?:commit|two)|we are done|below|the (?:last|latest)
    guess: no tests ran|test took|left[.!]?$|seems?|maybe|perhaps|probably|i guess|might|must(?:'ve| have)|must be (?:a|an|the|some|because|due|wrong|missing|great|tough|really|so|nice|hard|awesome|amazing|rewarding)|should be (?:fine|good|ok|okay|enough|in a)|no idea|not sure|i don'?t (?:know|see|think|remember)|don'?t know|looks like|wonder|suspect|end up|(?:somebody|someone) should|one day|i think (?:you|there)|the bug|broken|crash\w*|end up|forget how|no tests ran|green
    binds: when(?:ever)? i (?:ask|mention|talk)|if i ask|when you (?:answer|respond|reply|write|explain)|in your (?:answers?|responses?|replies)|goes? to \w+ first|go(?:es)? through|pass(?:es)? through|(?:is|are) written in|references? an?|net of|excluding vat|closes at|works? (?:with|on|in) [A-Z0-9]|is bound to|has a look|takes a look|signs? (?:off|every|each)|stays? (?:under|below|within)|we (?:always|never)(?! had| have| end)|(?<!can )(?<!could )we (?:don'?t (?:use|do|want|need|allow)|use|keep|deploy|store|ship|host|target|support|write|release|maintain|pin|still)|stored (?:as|in)|in this (?:project|repo\w*|codebase)|by \w+ before|not expected|can only go|can'?t be (?:reached|changed)|only (?:has|have) \d|i'?m on|i am on|i use|my (?:machine|laptop|setup|editor|system)|(?:don'?t|dont|do not) have access|have no access|no (?:gpu|internet|access|network)|is running on|runs? on|are on|stuck|can'?t reach|consumed by|still (?:run|use)|lives? in|behind a|feasible|worked:|your host|has (?:only|no)|part of ci|mirrored|reviewed by|keeps(?! (?:me|us|you|him|her|them|going)\b)
    must: wait (?:for|until)|ask (?:me|before|first)|check with me|must(?:n'?t| not)?(?!-see|'ve| have| bring| feel| be (?:a|an|the|some|because|due|wrong|missing|great|tough|really|so|nice|hard|awesome|amazing|rewarding))|shall|should(?:n'?t| not)?(?! (?:have|we|i|be (?:fine|good|ok|okay|enough|able|easy|there)|mean|work|know|see|hear|try))|ha(?:ve|s) to(?! do with)|ha(?:s|ve) got to|needs? to(?: be)?|needs (?:a|an|two|its)|need two|ought to|requires?|required|mandatory|forbidden|prohibited|banned|not allowed|off[- ]limits|out of scope|read-only|frozen|non-negotiable|making sure|important (?:that|to)|forbidden to|essential that|(?:is|are) (?:not )?to be|can'?t (?:use|touch|change|accept|exceed|rely)|cannot (?:use|touch|change|accept|exceed|rely)|you may not|may not be (?:changed|modified|used|removed)|nothing in [^.]{1, 40} may|not supposed|in mind|don'?t forget to|is (?:decided|none)|belongs?|have to be|stays|remains?
    throughout: one at a time|in small steps|as you go|as each|each time|before you \w+|every(?!thing|one|body|where| hour| day| week| month)\w*|each|whenever|from (?:now|here) on|going forward|henceforth|at all times|in general|as a rule|by convention|no exceptions|whatever you do|in future
    always: always|never|ever
    every: all|every(?:thing|one|body|where)|any|anything|per \w+|new \w+s
    only: nobody else|no one else|no other|noone else|only|at (?:the very )?most|at (?:the very )?least|max(?:imum)?|min(?:imum)?|no more than|nothing but|nowhere else|nothing else|limits?|budget|strictly|under \d+|within \d+|as is|as-is|alone|unchanged|until|distinct|no explanations|to the point
    contrast: (?:in|to) (?:dutch|swedish|polish|turkish)|instead|rather than|(?<=, )not|never straight|over (?=\w+[.!]*$)|but not|and not|copy not|in (?:english|german|french|spanish|chinese|japanese|italian|portuguese|russian|korean|dutch|british|american|lower case|upper case|snake_case|plain|json|small steps|utc)|(?:snake_case|camelcase|upper case|lower case|british)
    condition: before|after|unless|without|when|once|except|if|while|for now|as each
    prefers: i(?:'d| would| really| strongly| generally| usually| personally| much| do| still)* (?:prefer|rather|favou?r)(?: you (?:\w+ed|didn'?t))?|i(?:'d| would) (?:like (?:it|them|all|every\w*|the|to (?:keep|use|avoid|stick))|go|keep|be happier|use)|i (?:hate|dislike|insist|expect|like my|won'?t accept|refuse)|i (?:really |just )?(?:don'?t|do not) (?:want|like)|i (?:only |just |really )?want (?=(?:no|all|every|only|it|them|each|nothing|to keep|the)\b)|i need every|my (?:preference|rule)|ideally|(?:is|it'?s|its|would be) (?:better|best)|is to+ (?:much|big)|be (?:very |extra |more )?(?:concise|brief|strict|explicit|precise|conservative|terse|thorough|careful|consistent)|briefly|concise|convention|policy|guidelines?|house style|small and|rule of thumb|we (?:will )?want
    decides: let'?s (?:always |only |just |all )?(?:use|keep|stick|stay|go with|call|name|avoid|not|never|always|drop|leave|limit|default|standardi[sz]e|settle|store|write|record|make (?:it|that|this) a)|let us|we'?ll (?:go|stick|use|keep|want)|we will (?:go|use|keep|want|need)|go(?:ing)? with|stick (?:to|with)|settle on|decided|agreed|we chose|stay on|i think we (?!could|might|can)|i think (?:by|it (?:should|must|is better))|basically we|do nothing
    feels: (?:is|are) (?:super |really |also )?(?:key|important(?: to me)?)(?=[.,]| and)|makes? (?:a lot of |perfect )?sense|sounds? exciting|constructive|can'?t wait|keep (?:up the good|growing)|should (?:really )?help|must be (?:disappoint|excit|frustrat)\w+|not only|i bring|awe-inspiring|aunts?|uncles?|grandma|rice|bread|bake\w*|ice cream|wedding|pool|grand\w+|mother|mum|mom|father|dad|sister|brother|wife|husband|kids|snow|weather|stop you|quit|give up|hesitate|success\w*|comfort|forward|challenges?|community|victor\w+|supporting|motivat\w+|ourselves|gotta|hobbies|generations|growth|shy away|kind|new trends|pals|stay on top|routine|relationships|inclusive|unique|city|lgbtq|world|audience|each other|daily|dog|photo|fixed up|smooth|funny|pup|intro|progress|striving|worries|afraid|stay safe|talk to you|soon|bond|goals|believe|acceptance|chat|problem|love|loved|loving|hope|feel(?:s|ing)?(?! free)|glad|happy|thanks?|thank you|wow|haha|lol|great|awesome|amazing|sorry|enjoy\w*|famil\w+|kids?|mom|dad|friends?|dogs?|pets?|trip|beautiful|fun|proud|dreams?|relax|weather|weekend|vacation|birthday|delicious|cook(?!ie)\w*|hik\w+|music|songs?|laugh|journey|cheer|in touch|yourself|motivated|strength|passion\w*|memor(?:ies|able)|adventures?|life|food|recipe|eat|rains?|nice|cool|inspir\w+|care of|wishing|excited|cute|support(?=ive|ing| you| me| each)|each other|people|heart|painting|book(?!ing)|movies?|garden\w*|yoga|game(?:s|r)?
    trade: buy|purchase|standby|modifications?|downgrades?|backpack|cards?|new ticket|charges|wrap this up|mms|sims?|signal|standby|seats?|zip code|reservations?|flights?|book(?:ing|ed)|refund\w*|(?:my|the|this|that|both|pending) orders?|gift cards?|credit cards?|passengers?|travel|insurance|luggage|bag(?:s|gage)|certificates?|economy|business class|exchange\w*|return(?:ing)? (?:all|the)|deliver\w+|shipping|payments?|my (?:plan|phone|line|account)|airport|cancel\w*|proceed|upgrad\w+ (?:to|all)|visa|mastercard|colou?r|sizes?|purchase\w*|price|2gb|data for|human agent|internet speed|option|pin
    work: type hints?|public \w+|feature flags?|legacy \w+|snapshots?|(?<!new )tickets?|per request|pull requests?|header|slower|composition|inheritance|interface|docstrings?|functions?|translation key|settings?|firmware|small steps|{_WORK}|(?<!on )files?|folders?|director(?:y|ies)|functions?|variables?|modules?|packages?|dependenc\w+|librar\w+|naming|comments?|changelog|documentation|docstrings?|fields|columns?|responses?|errors?|warnings?|exceptions?|timeouts?|retr(?:y|ies)|batch\w*|scripts?|abstractions?|reviewers?|spell\w*|explanations?|store|parser|spec|card numbers|generators?|firmware|checkpoints?|ie11|orm|eval|semicolons|scheduler|diffs?|lint|abbreviations|gettext|javascript|infra|refactor|recompute|attribution|squash|ledger\S*|warnings|explorer|gpu|lodash|columns|abstractions|pii|rewind|trailers|docstrings?|class names?|docs
    near: sorted|templates?|rows|environment|translations?|quotes?|single|double|table|approval|push\w*|build\w*|keys?|stores?|lists?|steps?|state|types?|methods?|names?|tables?|settings?|messages?|data|users?|accept|drop|german|english|french|chinese|british|version|limit|budget|memory|image|machine|access|block|edits?|money|cents|sleep|global|slower|security|design|style|format\w*|output|approach|guess(?:ed)?|mobile|pixels|header|release\w*|spaces|steps|assert\w+|answers?|explain\w*|requests?|approvals?|features?|lines?|strings?|delet\w*|remov\w+|publish|panels?|fridays|behaviour|flag|sessions?|prompt|expected|tab|review\w*|tickets?|drop|composition|inheritance|apologi\w+|worker|tooltips|mapping|legacy|destructive|storage|primary|fork|docs?|directory|trial|draft|snapshots?|interface|expert|class(?:es)?
    ^throughout: all (?!the|of|right|good|set|done|my|tests|that|this|i|in all)\w+ (?:are|is|go|have)
"""

_GERMAN = rf"""
    ^ban: keine?[nr]?|nie(?:mals)?|nicht|nichts|niemand|lass(?:t|en sie)? die finger|vermeide\w*|unter keinen umständen|auf keinen fall|hör auf|hört auf|ohne
    ^task: nimm für|nimm (?:die|den|das)|überspring\w*|zeig\w*|starte\w*|lass den|lass die|führ\w*|füg\w*|öffne\w*|schau\w*
    ^keeps: benutz\w*|verwend\w*|nutz\w*|nimm|nehmt|nehmen sie|halte\w*|lass\w*|mach\w*|schreib\w*|antworte\w*|frag\w*|achte\w*|prüf\w*|teste\w*|fass\w*|änder\w*|lösch\w*|leg\w*|speicher\w*|nenn\w*|gib|sag\w*|bleib\w*|behalt\w*|beacht\w*|denk\w*|stell\w*|push\w*|committe?\w*|merk\w*|sorg\w*
    ^order: bitte
    ^no: nein|nee|noch nicht|lieber nicht
    ^corrects: falsch|das ist falsch|das stimmt nicht|nicht so|ich meinte|eigentlich
    ^asks: warum|wieso|wie|was|wo|wer|welche\w*|kannst du|können sie|könntest|ist|sind|hat|soll|muss|müssen|dürfen
    permits: darfst (?:jetzt|nun|wieder)|ist (?:jetzt|wieder) erlaubt|kannst jetzt|du kannst (?:ruhig|gern\w*)
    past: gab es|ging(?:en)?|kam(?:en)?|vermisse|war|waren|hatte\w*|wurde\w*|ging|gestern|letzte \w+|mussten|musste|mochte|habe \w+|(?:habe|hat|haben|hast)(?= (?:\w+ ){{0,5}}(?:ge\w+[tn]|\w+iert)\b)|gesehen|damals|früher|noch nie|nie wieder
    hypothetical: wenn ich (?:chef|du|der)|falls wir je\w*|wenn wir (?:je|jemals|irgendwann)|stell dir vor|angenommen|würde\w*|wäre\w*|hätte\w*|könnte\w*|müsste\w*|dürften|im idealfall
    says: meinte\w*|predigte\w*|schild|plakat|sagt\w*|steht(?=[:,]| (?:geschrieben|dass|auf|da|drauf|drin))|anleitung|handbuch|laut|schreibt|schrieb|meint|heißt es|doku|zitat|behauptet|chef
    once: noch (?:ein)?mal|jetzt(?! an)|gerade|kurz (?=neu|mal)|schnell|heute|diesmal|zeile \d+|eben|gleich|wieder|zeig mir
    guess: funktioniert nicht|geht nicht mehr|stürzt|kaputt|vielleicht|wohl|vermutlich|wahrscheinlich|scheint|glaube|keine ahnung|schlägt fehl
    binds: wenn ich (?:dich )?(?:frage|nach)|in deinen antworten|wenn du (?:antwortest|schreibst)|geh(?:t|en) (?:\w+ )?an|verstehen sich|steht (?:im|in)|steht eine?|siez\w*|duz\w*|netto|brutto|allergisch|schließt|(?:arbeitet|arbeiten) (?:noch )?(?:mit|auf|unter|in)|(?:hängen|sitzen|stecken|hängt|sitzt|steckt)(?= (?:\w+ ){{0,5}}fest)|schaut(?= (?:\w+ ){{1,3}}drüber)|gibt(?= \w+ frei)|prüft|liest|lesen|sitzt in|(?:bleibt|bleiben) (?:unter|bei)|fasst niemand|rührt niemand|wir (?:verwenden|schreiben|speichern|bleiben|nutzen|deployen|setzen|behalten)|(?:schreiben|speichern|verwenden|nutzen|halten|deployen) wir|in diesem (?:projekt|repo)|ich (?:arbeite|bin) (?:unter|auf)|kein\w* zugriff|läuft (?:auf|unter)|kein internet|nicht erreichbar|mein (?:rechner|laptop)|nichts neueres
    must: frag\w* mich|muss|müssen|musst|darf|dürfen|darfst|soll(?:en|st|te|ten)?|braucht|brauchen|verboten|tabu|pflicht|zwingend|unbedingt|erforderlich|notwendig|erlaubt|stell\w* sicher|sicherstellen|achte\w* darauf|wichtig|gehör(?:t|en)|nicht (?:an|ändern|anfassen|verwenden|benutzen|löschen|pushen|vergessen)|(?:anfassen|ändern|verwenden|hinzufügen)(?=[.!]*$)
    throughout: jede\w*(?! (?:tag|woche|monat|jahr|morgen|abend|mal))|sämtliche\w*|ab (?:jetzt|sofort|heute)|von nun an|künftig|in zukunft|grundsätzlich|generell|überall|ohne ausnahme|kein\w* neuen?
    always: immer|nie(?:mals)?|stets|alle[nrs]?|neue[nrs]?
    only: kurz|knapp|unter \d+|nicht mehr als|fass(?:t|en)? (?:dich|euch|sie sich) kurz|niemand sonst|sonst niemand|kein anderer|niemand anders|unangetastet|nur(?: noch)?|ausschließlich|höchstens|maximal|mindestens|einzig|unverändert|so wie|grün bleib\w*|bleib\w*|kurz(?! neu)
    contrast: statt|anstatt|anstelle|(?<=, )nicht|und nicht|lieber|auf (?:deutsch|englisch|französisch)|als kommazahl
    condition: bevor|vor|nachdem|sobald|wenn|außer|es sei denn|solange|bis|ohne
    prefers: ich (?:bevorzuge|will|möchte|hätte gern\w*|mag|erwarte|wünsche)|lieber|am besten|besser|mir (?:ist|wäre) (?:es )?(?:wichtig|lieber)|zu viel
    decides: (?:haben|hatten) (?:\w+ ){{0,4}}(?:beschlossen|vereinbart|ausgemacht)|abgemacht|beschlossen|vereinbart|nehmen wir|lass uns|wir (?:nehmen|bleiben|verwenden|machen|entscheiden)|entschieden|bleiben wir|bleiben bei
    feels: tante|onkel|brot|kuchen|reis|eis|backen|zu hause|daheim|oma|opa|großmutter|mutter|vater|schwester|bruder|frau und ich|mein mann|meine frau|grünen?|liebe|hoffe|danke?\w*|toll|schön\w*|super|urlaub|wetter|regnet|kinder|familie|freunde?|wochenende|essen|problem|so eine sache|hund|lustig|froh|glücklich
    work: lösch\w*|deine antworten|migrationen|globale?|{_WORK}|datei\w*|ordner\w*|verzeichnis\w*|funktion\w*|klasse\w*|methode\w*|variable\w*|abhängigkeit\w*|bibliothek\w*|paket\w*|schnittstelle\w*|datenbank\w*|tabelle\w*|passw\w+|nachricht\w*|commit-\w+|kommentar\w*|antwort\w*|deutsch|englisch|zeitstempel|leerzeichen|warteschlange|zugriff|rechner|internet|geldbeträge|cent|zweig\w*|fehler\w*|version\w*|ausgabe|kunde|netz\w*|zustimmung|zeilen
"""

_FRENCH = rf"""
    ^ban: n(?:e |['’])\S.{{0,30}}? (?:pas|plus|jamais|rien)|ne jamais|ne pas|jamais|pas de|pas d['’]|aucune?|évite\w*|éviter|interdi\w+|arrête\w*|sous aucun prétexte|surtout pas|plus de|rien
    ^task: prends|prenez|saute\w*|montre\w*|lance\w*|redémarre\w*|relance\w*|ajoute\w*|ouvre\w*
    ^keeps: vouvoie\w*|tutoie\w*|utilise\w*|emploie\w*|garde\w*|laisse\w*|réponds|répondez|répondre|écris|écrivez|demande\w*|veille\w*|vérifie\w*|mets|mettez|fais|faites|supprime\w*|pense\w*|reste\w*|limite\w*|respecte\w*|préfère|privilégie\w*|modifie\w*|change\w*|préviens|assure\w*
    ^order: merci de|veuillez|prière de
    ^no: non|pas encore|pas maintenant
    ^corrects: faux|c['’]est faux|ce n['’]est pas|je voulais dire|en fait
    ^asks: pourquoi|comment|que|qu['’]est|où|qui|quel\w*|est-ce|peux-tu|pouvez-vous|pourrais|tu peux|faut-il
    permits: tu peux (?:maintenant|désormais)|vous pouvez (?:maintenant|désormais)|autorisé|est permis
    past: \w{{2,}}[bdgmnprtv](?:ait|aient)(?<!parfait)|nous \w{{2,}}ions|était|étaient|avait|avaient|avons dû|a dû|ai|hier|dernière?|n['’]ai|ont été|ai été|avons \w+é|(?:ai|as|avons|avez|ont) \w+(?:é|u|i)s?|revu
    hypothetical: si j['’]étais|si (?:on|tu|vous|il) (?:était|avait|pouvait)|(?:ser|aur|pourr|devr|fer|ir)ai(?:t|ent)|\w{{3,}}erai(?:t|ent)|\w{{2,}}rai(?:t|ent)|soit une|si jamais|si un jour|imagine\w*|supposons|serait|faudrait|devrions|pourrions|vendait|dans un monde idéal
    says: (?:dis|répét|exige)ai(?:t|ent)|(?:il est|c['’]est) écrit|écrit (?:de|que)|panneau|affiche|pancarte|dit|disent|selon|d['’]après|écrit(?! en)|la doc|documentation|prétend\w*|chef|citation
    once: encore une fois|maintenant(?<!de maintenant)|vite|rapidement|aujourd['’]hui|cette fois|ligne \d+|une fois|un instant|montre-moi|de nouveau
    guess: ne marche (?:pas|plus)|ne fonctionne (?:pas|plus)|plante|échoue\w*|peut-être|sans doute|probablement|semble|je crois|aucune idée|échoue\w*
    binds: quand je (?:te |vous )?(?:demande|pose)|dans tes réponses|quand tu réponds|passent? (?:d['’]abord )?par|(?:est|sont) écrite?s?|cit(?:e|ent)|mentionn(?:e|ent)|telle?s? quelle?s?|n['’]\w+ qu['’]\w+|ferme à|allergique|hors taxes|travaill(?:e|ent) (?:avec|sous|sur)|coincée?s?|bloquée?s? (?:sur|en|à)|relit|valide|rest(?:e|ent) (?:sous|en dessous)|lit|lisent|n['’]y touche|on (?:garde|utilise|déploie|stocke|reste|écrit)|nous (?:utilisons|gardons|déployons)|dans ce (?:projet|dépôt)|je suis sous|j['’]utilise|pas accès|tourne sur|n['’]a pas (?:internet|accès)|rien de plus récent|stockés?|rédigés?
    must: demande-moi|demandez-moi|doi(?:t|s|vent|vez)|devr\w+|il faut|faut|obligatoire\w*|interdit\w*|nécessaire|requis\w*|impérati\w+|assure\w*|veille\w* à|important|n['’]oublie\w*|a besoin|pas (?:modifier|toucher|utiliser|changer)|ne doi\w+
    throughout: chaque(?! (?:jour|semaine|mois|année|matin|soir|fois))|à partir de maintenant|dorénavant|désormais|à l['’]avenir|partout|systématiquement|quoi que ce soit|sans exception|en général
    always: toujours|jamais|tou(?:t|s|te|tes)|nouve\w+
    only: seule?s?|bref|brève|court|au maximum|au plus|sous \d+|pas plus de|personne d['’]autre|aucun autre|nul autre|seul\w*|seulement|uniquement|que(?= les? )|maximum|au plus|au moins|tel quel|reste\w*|court\w*|bref|brèves?
    contrast: plutôt que|au lieu de|(?<=, )pas|et non|à la place|en (?:français|anglais|allemand)|et pas
    condition: avant|après|sauf|sans|quand|dès que|tant que|jusqu['’]|si
    prefers: je (?:préfère|veux|voudrais|souhaite|n['’]aime pas|ne veux pas|tiens)|j['’](?:aimerais|aime)|mieux|de préférence|idéalement|trop|plutôt
    decides: (?:on a|nous avons|avons) (?:décidé|convenu)|convenu|décidé|on (?:part|garde|prend|reste|utilise|va|passe)|partons|restons|gardons|prenons|décidé\w*|utilisons
    feels: tante|oncle|grand-mère|pain|riz|glace|gâteau|vacances|enfants|maison|famille|vélo|grand-mère|grand-père|ma mère|mon père|ma sœur|mon frère|mon mari|ma femme|la mer|la plage|vert|merci(?! de)|super|génial|parfait|adore|aimé|espère|content\w*|vacances|pleut|temps|enfants|famille|amis?|week-end|légumes|mangent|marche pas|drôle|heureu\w+
    work: supprim\w+|{_WORK}|fichiers?|dossiers?|répertoires?|fonctions?|méthodes?|variables?|dépendances?|bibliothèques?|paquets?|base|bases|interface|messages?|commentaires?|réponses?|français|anglais|mots? de passe|dates?|montants?|centimes|file d['’]attente|accès|internet|versions?|erreurs?|branche|serveurs?|client|question|devine\w*|accord|lignes|espaces
"""

_SPANISH = rf"""
    ^ban: no (?!funciona|sé|hay problema|he|se\b|es\b|está|veo|entiendo|tengo|pasa\b|me\b)\w+|nunca|jamás|nada de|ningún|ninguna?|evita\w*|sin|prohibid\w+|deja de|bajo ningún concepto|ni
    ^task: toma|coge|sáltate|salta|enséñame|muéstrame|ejecuta\w*|reinicia\w*|añade|abre|revisa
    ^keeps: trata(?:d|les|los)?|tutea\w*|usa|usad|use|utili[zc]\w+|mantén|mantenga|mantener|deja|responde\w*|responda|escrib\w+|pregúnta\w*|pregunta|pide|procura\w*|asegúra\w*|pon|ponga|haz|haga|borra|recuerda|respeta|limita|prefiere|cambia|modifica|avísa\w*|guarda|llama|sigue
    ^order: por favor
    ^no: no(?=[,.!])|todavía no|mejor no|aún no
    ^corrects: mal|eso está mal|incorrecto|no es eso|quería decir|me refería|en realidad
    ^asks: por qué|cómo|qué|dónde|quién|cuál|puedes|podrías|es|hay
    permits: ya puedes|ahora puedes|puedes (?:borrar|usar|hacer)|está permitido|tienes permiso
    past: nunca me gust\w+|no me gust(?:ó|aron|aba)|\w{{2,}}(?:ábamos|íamos|aban|ían|aba|aron|ieron)|era|eran|fue|fueron|estaba\w*|había\w*|tuv\w+|ayer|gustar?on|he \w+[ai]do|hemos \w+[ai]do|ha \w+[ai]do|pasad[oa]|hice|hizo|vi|vuelto
    hypothetical: si (?:yo )?(?:fuera|tuviera|pudiera)|si (?:fuéramos|tuviéramos)|(?:ser|tendr|podr|habr|har|querr|trabajar|usar)ía(?:n|mos)?|tendría\w*|fuéramos|habría|si algún día|si alguna vez|imagina\w*|supongamos|vendiéramos|deberíamos|tuviéramos|sería|podríamos|en un mundo ideal
    says: (?:dec|repet|exig)ía\w*|cartel|escrito que|letrero|dice\w*|dijo|según|pone|escribió|la documentación|cita|afirma|jefe
    once: otra vez|de nuevo|ahora(?<!de ahora)|rápido|rápidamente|hoy|esta vez|línea \d+|un momento|una vez más|enséñame|muéstrame|ya está
    guess: no funciona\w*|fallan?|se rompe|quizás?|tal vez|probablemente|parece|creo|ni idea|falla\w*
    binds: cuando (?:te )?pregunte|en tus respuestas|cuando respondas|pasan? (?:primero )?por|está(?:n)? escrit[oa]s?|citan?|mencionan?|cierra a|alérgic[oa]|sin iva|trabajan? con|atad[oa]s? a|atascad[oa]s? en|anclad[oa]s? a|que lo (?:vea|revise|mire|apruebe)|no pasan? de|lo revisan?|lee|leen|aprueba|se queda|seguimos|usamos|guardamos|seguimos (?:con|en)|desplegamos|mantenemos|escribimos|se (?:escriben|guardan|usan|despliegan)|en este (?:proyecto|repo\w*)|estoy en|no tien\w+ (?:acceso|salida|internet)|corre en|sin acceso|no puede actualizar
    must: pregúnta\w*|deb(?:e|es|en|emos|erá|ería)|hay que|tien(?:e|es|en) que|tenemos que|es (?:obligatorio|necesario|importante|imprescindible)|obligatori\w+|prohibid\w+|necesita\w*|no (?:se )?pued(?:e|es|en)|asegúra\w*|procura\w*|recuerda|no olvid\w+|no se (?:toca|usa|permite)\w*
    throughout: cada(?! (?:día|semana|mes|año|vez))|a partir de ahora|de ahora en adelante|en adelante|en el futuro|en general|sin excepción
    always: siempre|nunca|jamás|tod(?:o|a|os|as)|cualquier|nuev(?:o|a|os|as)|nada
    only: breve|como (?:máximo|mucho)|por debajo de|no más de|corto|nadie más|ningún otro|ninguna otra|sol(?:o|amente)|sólo|únicamente|como máximo|como mínimo|máximo|al menos|tal cual|breves?|cort[oa]s?|nada más
    contrast: en lugar de|en vez de|(?<=, )no|y no|sino|en (?:español|inglés|francés|alemán)
    condition: antes de|después de|salvo|sin|cuando|hasta|mientras|si|a menos
    prefers: prefiero|quiero|no quiero|me gusta\w*|me gustaría|mejor|preferiblemente|idealmente|espero que|demasiado
    decides: hemos (?:decidido|acordado|quedado)|quedamos en|acordamos|acordado|vamos (?:con|a usar|usar)|usemos|quedamos|nos quedamos|seguimos|decidi\w+|hemos decidido|usaremos|optamos
    feels: tía|tío|abuela|abuelo|pan|arroz|helado|vacaciones|niños|casa|familia|playa|abuel[oa]s?|mi madre|mi padre|mi hermana|mi hermano|mi marido|mi mujer|playa|frío|calor|verde|gracias|genial|perfecto|encanta|espero(?! que)|feliz|vacaciones|llueve|hijos|familia|amigos?|fin de semana|verdura|comen|me gustaron|bonit\w+
    work: borr\w+|{_WORK}|archivos?|ficheros?|carpetas?|directorios?|funci(?:ón|ones)|métodos?|variables?|dependencias?|bibliotecas?|paquetes?|base de datos|interfaz|mensajes?|comentarios?|respuestas?|español|inglés|contraseñas?|fechas?|importes?|céntimos|cola|acceso|internet|versi(?:ón|ones)|errores|rama|servidor\w*|cliente|pruebas?|permiso|tabulaciones|espacios|líneas
"""

_PORTUGUESE = rf"""
    ^ban: não (?!funciona|sei|há|foi|é\b|está|vi\b|entendo|tenho|passa\b)\w+|nunca|jamais|nada de|nenhuma?|evite\w*|evitar|sem|proibid\w+|pare de|de jeito nenhum
    ^task: pegue|pule|tome|mostre\w*|rode\w*|execute\w*|reinicie\w*|adicione\w*|abra
    ^keeps: trat(?:e|a)(?:m|r)?|use|usem|utilize\w*|mantenha\w*|mantém|deixe\w*|responda\w*|escreva\w*|pergunte\w*|procure\w*|garanta\w*|certifique\w*|coloque\w*|faça\w*|apague\w*|lembre\w*|respeite\w*|limite\w*|prefira\w*|altere\w*|mude\w*|avise\w*|guarde\w*|só altere|só mexa
    ^order: por favor|favor
    ^no: não(?=[,.!])|ainda não|melhor não
    ^corrects: errado|está errado|incorreto|não é isso|eu quis dizer|na verdade
    ^asks: por que|como|o que|onde|quem|qual|pode|você pode|poderia|será
    permits: agora (?:você )?pode|já pode|você pode (?:apagar|usar|fazer)|está permitido|tem permissão
    past: \w{{2,}}(?:ávamos|íamos|avam|ava|aram|eram)|(?:a gente|eu|ele|ela) (?:sempre )?\w{{2,}}ia|era|eram|foi|foram|estava\w*|havia|tive\w*|ontem|gostei|vi|passad[oa]|fiz|fez|voltou
    hypothetical: se eu (?:fosse|tivesse|pudesse)|se (?:a gente|nós) \w+sse\w*|(?:ser|ter|poder|far|trabalhar|usar)ia(?:m|mos)?|teria\w*|seria|fôssemos|se um dia|se algum dia|imagine que|imagine\w*|suponha\w*|vendêssemos|deveríamos|tivéssemos|seria|poderíamos|num mundo ideal
    says: (?:diz|fal)(?:ia|ava)\w*|placa|escrito (?:que|para)|cartaz|diz\w*|disse|segundo|escreveu|a documentação|citação|afirma|chefe
    once: de novo|novamente|agora(?<!de agora)|rapidinho|rápido|hoje|desta vez|linha \d+|um momento|mais uma vez|mostre a
    guess: não funciona\w*|falham?|quebrou|talvez|provavelmente|parece|acho|sem ideia|falha\w*
    binds: quando eu (?:te )?perguntar|nas (?:suas|tuas) respostas|quando responder|passam? (?:primeiro )?pel[oa]s?|está(?:o)? escrit[oa]s?|citam?|fica(?:m)? como|escrevemos|fecha às|alérgic[oa]|sem imposto|trabalham? com|pres[oa]s? (?:a|ao|no|na)|travad[oa]s? (?:em|no|na)|dá uma olhada|revisa|aprova|ficam? (?:abaixo|em)|lê|leem|estou no|continuamos|usamos|guardamos|continuamos (?:no|na|com)|mantemos|escrevemos|são (?:escrit|guardad)\w+|neste (?:projeto|repo\w*)|estou (?:no|em)|não tem acesso|roda em|sem acesso|não oferece
    must: pergunte\w*|dev(?:e|es|em|emos|erá)|tem (?:que|de)|têm (?:que|de)|temos que|é (?:preciso|obrigatório|necessário|importante|proibido)|precisa\w*|obrigatóri\w+|proibid\w+|não pod(?:e|em)|certifique\w*|garanta\w*|lembre\w*|não esqueça|não se (?:usa|mexe)
    throughout: cada(?! (?:dia|semana|mês|ano|vez))|a partir de agora|de agora em diante|daqui em diante|no futuro|em geral|sem exceção
    always: sempre|nunca|jamais|tod(?:o|a|os|as)|qualquer|nov(?:o|a|os|as)|nada
    only: breve|no máximo|abaixo de|não mais (?:de|que)|curt[oa]s?|ninguém mais|mais ninguém|nenhum outro|só|só|somente|apenas|no máximo|no mínimo|máximo|pelo menos|como está|curt[oa]s?|breves?
    contrast: em vez de|ao invés de|no lugar de|(?<=, )não|e não|em (?:português|inglês|francês|espanhol)
    condition: antes de|depois de|salvo|sem|quando|até|enquanto|se|a menos
    prefers: prefiro|quero|não quero|gosto|gostaria|melhor|de preferência|idealmente|espero que|demais
    decides: decidimos|combinamos|ficou (?:decidido|combinado)|combinado|vamos (?:com|usar|de)|usemos|ficamos|continuamos|decidi\w+|usaremos|optamos
    feels: tia|tio|avó|avô|pão|arroz|sorvete|férias|crianças|em casa|família|praia|av[óô]s?|minha mãe|meu pai|minha irmã|meu irmão|meu marido|minha mulher|praia|crianças|verde|obrigad[oa]|legal|perfeito|adoro|amo|espero(?! que)|feliz|férias|chove|viajo|filhos|família|amigos?|fim de semana|legumes|comem|segundas\S*|bonit\w+
    work: apag\w+|{_WORK}|arquivos?|ficheiros?|pastas?|diretórios?|funç(?:ão|ões)|métodos?|variáve(?:l|is)|dependências?|bibliotecas?|pacotes?|banco|interface|mensagens?|comentários?|respostas?|português|inglês|senhas?|datas?|valores|centavos|fila|acesso|internet|vers(?:ão|ões)|erros|ramo|servidor\w*|cliente|testes?|aprovação|espaços|linhas|hospedagem
"""

_ITALIAN = rf"""
    ^ban: non (?!funziona|so\b|c['’]è|ho\b|è\b|sono|vedo|capisco|passa\b|mi\b)\w+|mai|niente|nessuna?|evita\w*|evitare|senza|vietat\w+|smetti\w*|in nessun caso
    ^task: prendi|salta|mostra\w*|lancia\w*|riavvia|rilancia|aggiungi|apri|esegui|controlla
    ^keeps: dai del|usa|usate|usare|utilizza\w*|tieni|mantieni|lascia\w*|rispondi|rispondere|scrivi|scrivere|chiedi\w*|assicurati|metti|fai|cancella|ricorda\w*|rispetta|limita|preferisci|cambia|modifica|avvisa\w*|salva
    ^order: per favore
    ^no: no(?=\W)|non ancora|meglio di no
    ^corrects: sbagliato|è sbagliato|non è così|intendevo|in realtà
    ^asks: perché(?=.{{0,80}}\?)|come|cosa|dove|chi|quale|puoi(?! modificare)|potresti|è
    permits: ora puoi|adesso puoi|puoi (?:pure|cancellare|usare)|è permesso|hai il permesso
    past: \w{{2,}}(?:avamo|evamo|ivamo|avano|evano|ava|eva)|era|erano|aveva\w*|fu|ieri|(?:ho|abbiamo|hanno|ha) (?:più |mai |già |dovuto )?\w+(?:t|s)[oaie]|piaciut\w+|scors[oa]
    hypothetical: se (?:fossi|avessi|potessi|fossimo|avessimo)|\w{{3,}}ebbe(?:ro)?|fossimo|dovrebbe\w*|sarebbe|se un giorno|se mai|immagina\w*|supponiamo|vendessimo|dovremmo|sarebbe|potremmo|in un mondo ideale
    says: (?:ripet|dic|sosten)eva\w*|sostiene|ripete|c['’]è scritto|sta scritto|cartello|dice|dicono|disse|secondo|ha scritto|la documentazione|citazione|capo
    once: ancora una volta|di nuovo|adesso|ora(?! in)|subito|veloce\w*|oggi|stavolta|riga \d+|un attimo|mostrami|un momento
    guess: non funziona\w*|fallisc\w+|si rompe|fallisce|un test fallisce|forse|probabilmente|sembra|credo|nessuna idea|fallisce|falliscono
    binds: quando (?:ti )?chied\w+|nelle tue risposte|quando rispondi|pass(?:a|ano) (?:prima )?(?:da|per)|(?:è|sono) scritt[oaei]|cit(?:a|ano)|riport(?:a|ano)|chiude alle|scriviamo|allergic[oa]|al netto|resta com['’]è|lavora(?:no)? con|ferm[ie] a|bloccat[ie] (?:a|su)|legat[ie] a|dà un['’]occhiata|rivede|approva|restano?|rimangono|legge|leggono|(?:viene|vengono) \w+|usiamo|salviamo|restiamo su|manteniamo|scriviamo|si (?:scrivono|salvano|usano)|in questo (?:progetto|repo\w*)|sono su|non ha(?:i|nno)? accesso|gira su|senza accesso|non può aggiornare
    must: chiedi\w*|dev(?:e|i|ono|ete)|dobbiamo|bisogna|occorre|va(?:nno)? \w+[aeiu]t[oaie]|è (?:obbligatorio|necessario|importante|vietato)|obbligatori\w+|vietat\w+|serve|assicurati|ricorda\w*|non si (?:usa|tocca)|non può|non possono|non dimenticare
    throughout: ogni(?! (?:giorno|settimana|mese|anno|volta|sera))|ognun\w+|d['’]ora in poi|da adesso in poi|in futuro|qualsiasi|qualunque|in generale|senza eccezioni
    always: sempre|mai|tutt[oaie]|nuov[oaie]|niente
    only: soltanto|solamente|solo|soltanto|breve|al massimo|sotto i? ?\d+|non più di|nessun altro|nessun'altra|puoi \w+ solo|sol(?:o|tanto)(?! un)|solamente|esclusivamente|al massimo|almeno|massimo|così com['’]è|brev[ei]|cort[oaie]
    contrast: in (?:inglese|italiano|tedesco|francese|spagnolo)|invece di|invece degli|invece che|anziché|al posto|(?<=, )non|e non|piuttosto|in (?:italiano|inglese|francese)
    condition: prima di|dopo|tranne|senza|quando|finché|a meno|se
    prefers: preferisco|voglio|non voglio|mi piace|vorrei|meglio|preferibilmente|idealmente|troppo
    decides: abbiamo (?:deciso|concordato|stabilito)|deciso|stabilito|andiamo (?:con|su)|usiamo|restiamo|rimaniamo|deciso|teniamo|prendiamo|optiamo
    feels: zia|zio|nonna|nonno|pane|riso|gelato|vacanza|bambini|casa|famiglia|mare|nonn[ao]|mia madre|mio padre|mia sorella|mio fratello|mio marito|mia moglie|mare|spiaggia|bambini|verde|grazie|bello|perfetto|adoro|amo|spero|felice|vacanza|piove|figli|famiglia|amic\w+|fine settimana|verdura|mangiano
    work: cancell\w+|{_WORK}|file|cartell\w+|directory|funzion[ei]|metod[oi]|variabil[ei]|dipendenz[ae]|libreri[ae]|pacchett\w+|interfaccia|messagg\w+|comment[oi]|rispost[ae]|italiano|inglese|password|dat[ae]|import[oi]|centesimi|coda|accesso|internet|version[ei]|errori|ramo|cliente|consenso|spazi|righe
"""

_RUSSIAN = rf"""
    ^ban: не (?!работает|знаю|вижу|понимаю|видел\w*|получается|проходит|помню|так\b)\w+|никогда|ничего не|никаких|никто|нельзя|ни в коем случае|избегай\w*|хватит|перестань\w*|без|запрещено
    ^task: возьми|пропусти|запусти\w*|покажи\w*|добавь\w*|удали\w*|перезапусти\w*|открой\w*
    ^keeps: обращай\w*|называй\w*|используй\w*|запускай\w*|отвечай\w*|пиши\w*|спрашивай\w*|спроси\w*|держи\w*|оставь\w*|оставляй\w*|проверяй\w*|следи\w*|меняй\w*|храни\w*|называй\w*|делай\w*|помни\w*|учти\w*|учитывай\w*|соблюдай\w*|ограничь\w*|убедись|коммить\w*|предупреждай\w*
    ban: не \w{{3,}}ть(?=[,.!]|$)
    ^order: пожалуйста
    ^no: нет(?=\W)|пока не|ещё не|лучше не
    ^corrects: неверно|неправильно|это не так|я имел в виду|на самом деле
    ^asks: почему|как|что|где|кто|какой|какая|можешь|можете|нужно ли|нам всегда
    permits: теперь можно|можешь теперь|можно (?:удалить|использовать)|разрешаю|разрешено
    past: \w{{3,}}(?:лся|лась|лось|лись)|(?:мы|я|они|он|она) (?:всегда |никогда )?\w{{2,}}л[аи]?|был\w*|вчера|пришлось|любил\w*|видел\w*|\w{(3,)}(?:ал|ил|ел|ял)(?:а|и|о|ась|ись|ся)?|раньше|больше не
    hypothetical: если бы|бы не|будь я|бы|если бы|если когда-нибудь|представь\w*|допустим|предположим|было бы|бы|в идеальном мире
    says: говорил\w*|считает|твердил\w*|табличк\w|вывеск\w|плакат\w?|говорит|сказал\w*|пишет|написано|согласно|по словам|в документации|цитата|начальник
    once: ещё раз|снова|сейчас|быстро|сегодня|на этот раз|строк\w* \d+|на минутку|один раз|покажи
    guess: не работа(?:ет|ют)|пада(?:ет|ют)|сломал\w+|может быть|наверное|вероятно|кажется|похоже|думаю|понятия не имею|падает|не работает
    binds: когда я (?:спрашиваю|спрошу)|в (?:своих )?ответах|когда отвечаешь|(?:идут|идёт|идет) (?:\w+ )?(?:к|через)|написан[аоы]? в|указываем|пишем|ставим|не планируем|закрывается в|оста[её]тся как|аллерги\w+|без ндс|работа(?:ет|ют) (?:в|с|на)|застрял\w|сидим на|сид(?:ит|ят) на|смотр(?:ит|ят)|проверя(?:ет|ют)|утвержда(?:ет|ют)|чита(?:ет|ют)|принадлеж(?:ит|ат)|никто не трогает|только команда|используем|остаёмся на|деплоим|собираем|держим|в этом (?:проекте|репо\w*)|у меня(?= [A-Z])|нет (?:доступа|интернета)|работает на|крутится на|хран\w+|пишем
    must: спроси\w* меня|спрашивай\w*|долж\w+|нужно|надо|следует|необходимо|обязательн\w*|обязан\w*|нельзя|запрещ\w+|требуется|важно|убедись|не забудь\w*|не забывай\w*|не допускается|не разрешается|никаких
    throughout: кажд\w+(?! (?:день|недел\w|месяц|год|утро|вечер|раз))|с этого момента|отныне|впредь|в будущем|везде|без исключений
    always: всегда|никогда|все(?:х|м|ми)?|всё|люб\w+|вообще|нов\w+|что-то|что-либо
    only: коротко|кратко|не (?:больше|более)|максимум|не дольше|больше никто|никто другой|никто больше|и никто|только|лишь|исключительно|максимум|минимум|не более|не больше|не менее|как есть|коротк\w+|коротко|кратко
    contrast: вместо|(?<=, )не|, а не|а не|на (?:английском|русском)|по-русски|по-английски|напрямую
    condition: перед|прежде|до|после|если|когда|пока|кроме|без|через
    prefers: предпочитаю|хочу|не хочу|мне (?:нравится|больше нравится|удобнее|хотелось)|лучше|желательно|предпочтительно|в идеале|слишком
    decides: решили|договорились|решено|условились|давай\w*|возьмём|берём|остаёмся|решили|решено|будем|выбираем|пойдём
    feels: тёт\w|тет\w|дяд\w|бабушк\w|рис|хлеб|морожен\w+|отпуск\w?|дет(?:и|ьми|ей)|дом[ау]?|сем\w{{1,2}}|дач\w|бабушк\w+|дедушк\w+|мам[аеы]|пап[аеы]|сестр\w+|брат\w*|муж|жена|дети|море|восторге|\w*объед\w+|спасибо|отлично|здорово|классно|люблю|надеюсь|рад|отпуск|дождь|дети|семья|друзья|выходные|овощи|едят|красив\w+|зелён\w+
    work: удал\w+|публичн\w+|менять|файл\w*|папк\w+|каталог\w*|функци\w+|метод\w*|переменн\w+|зависимост\w+|библиотек\w*|пакет\w*|баз\w+|интерфейс\w*|сообщени\w+|комментари\w*|ответ\w*|отвечай\w*|парол\w+|дат\w+|сумм\w+|копейк\w+|очеред\w+|доступ\w*|интернет\w*|верси\w+|ошибк\w+|ветк\w+|сервер\w*|клиент\w*|тест\w*|коммит\w*|пуш\w*|лог\w*|код\w*|сборк\w*|сборочн\w+|релиз\w*|деплой\w*|миграци\w+|таб\w*|пробел\w*|строк\w*|настройк\w+|русск\w+|английск\w+|по-русски|согласия|(?<![A-Za-z])(?:{_WORK})(?![A-Za-z])
"""

_CHINESE = rf"""
    ^task: 这个图|这张
    ^order: 请|麻烦|帮我|用|使用|改|删|加|写|看|跑|运行|提交|把
    ^no: 不，|先别|不行|不同意|先不|暂时不|暂时别
    ^corrects: 不对|不是|错了|搞错|搞反|反了|更正|纠正|等等|其实|你说错|我(?:要|说|指)的是|我的意思是|我说过|不，
    permits: 可以.{{0,30}}了(?!吗|么)|(?:好的?|行|可以|同意|没问题|批准|准许|允许|是的|(?<!不)对)[，,。!！ ]+.{{0,6}}(?:删|推|合并|部署|提交|执行|继续|发布|运行|改|用|做)|放心.{{0,4}}(?:删|改|做|用)|尽管.{{1,10}}|现在(?:可以|允许)|随便(?:用|改|你)|允许(?:你|在|使用)|(?<!不)可以用
    past: 昨天|已经|了(?:两|三|几)?次|过了|不得不|从来|见过|跑完了|通过了|失败了|她说|去年|上周|注意到
    hypothetical: 要是|如果(?:哪天|有一天|我是|我当)|假如|倘若|想象一下|如果有一天|假如|假设|要是有一天|万一|想象|如果我们
    says: 牌子|标语|写着|(?<!小)说(?!中文|英文|错|完成|可以|过)|文档里|写着|据说|根据|老板|所谓
    once: 再(?:跑|试|看|来|做)?一次|(?<!看)一下(?!子)|(?<!出)现在(?!开始|起|可以|允许)|赶紧|今天|第 ?\d+ ?行|给我看(?!一下)|这次|马上|看看
    guess: 报错|崩溃|跑不起来|打不开|可能|也许|大概|好像|看起来|不知道|应该(?:是|没|不会|可以了|好了|没问题|快|已经)(?!.{{1,30}}不是)|总是(?:报错|失败|出错|超时|下)
    binds: 我问|我提到|回答(?:时|里|中|的时候)|先给|先(?:发|交)给|用\S{{1,6}}(?:写|命名)|写上|注明|标明|填上|跟\S{{1,6}}一致|(?<![了要])不(?:放|安排|加|接|收)|只(?:认|收|看|支持)|宁可|用[“「]?您|过敏|还在用|仍在用|只能用|卡在|先让|看一眼|过目|按\S{{1,8}}算|以\S{{1,8}}计|归\S{{1,10}}管|由\S{{1,10}}(?:负责|审|批)|我们(?:一直|都|还)?(?:在用|用|停留|部署|跑在)|存储|存成|访问不到|我用的是|我在用|访问不了|连不上|没有(?:外网|权限|访问)|运行在|停留在|为单位
    ban: (?<![要想])不要(?![紧求])|(?<![特分区类级个识辨性派鉴判告差])别(?![的人名处墅致称样说])|禁止|不得(?!不|已|了)|不准|不许|不允许|严禁|切勿|请勿|勿|千万|避免|不(?:能|可以?|应该?|应当)(?!运行|工作|用了|跑|正常|启动|编译|打开|访问|连接|登录|显示|复现|确定|通过)|停止(?:使用|添加|加|用)|杜绝|不接受|不必|无需|不用再|不用.{{1,12}}了|我们从?不(?:用|写|做|搞)|(?:里|中|上|下|码)不行|不再(?:使用|用|需要)|没有我的
    must: 都要|才(?:能|行)|(?:端口|版本|名字|分支|目录|语言|数据库|格式)(?:请)?(?:用|使用|是|为|叫|改|设)|给我看一下|前给我|先问我?|必须|务必|一定(?:要|得|不能)|应(?:该|当)(?:用|使用|先|改|放|写|统一|保留)|需要(?:用|使用|先|改|放)|记(?:住|得)|注意(?!到|力)|保持|确保|都要|都得|要有|(?<![我你他她们想需不主重只就还])要(?![求紧么点素是不])(?=[\u4e00-\u9fff]{{1,6}}[。！]?$)|锁死|保留|留着|原样|坚持|遵循|遵守|按照|改用|换成|换用|改成|改为|采用|沿用|控制在|限定|严格|为准|小心|来写|尽量|优先
    throughout: 每(?![天年周月晚])|以后(?!再说|会|可能)|今后|从现在(?:开始|起)|每次(?!运行|启动|打开|执行|点击)|每个|所有|任何|一律|一概|始终|凡是|都(?:用|要|必须|存|别|不)|统一|默认
    always: 永远|总是(?:用|使用|要|先|在)|一直
    only: 简短|简洁|以内|最多|不超过|控制在|别人不|别人都不|只有.{{1,12}}(?:才|能|可以)|只(?:能|用|改|允许|准|可以|许|做|看|读|在)|仅(?:限|用|在)|不超过|最多|至少|不低于|不少于|上限|下限|底线|限制在|简短|以外|短一点
    contrast: 而不是|不用(?!了)|代替|用(?:中文|英文|英语|日文|日语|德语)|写(?:中文|英文)|说中文|为单位|先.{{1,20}}再
    condition: 之前|前先|前必须|提交前|先问|除(?:了|非)|否则|没跑过|没有我的同意
    prefers: 我(?:更|比较)?(?:喜欢|希望|倾向|偏好|建议|想要|不想|不希望|不喜欢|宁愿|宁可)|最好|太多
    decides: 决定|说好了?|约定|定好了?|(?:就|还是|那就|决定|咱们|最终)(?:用|使用|选|采用|定|叫|走|按)|(?:方案|决定|结论)(?:是|：|:|为)|就这(?:么|样)(?:定|办|做)|改主意|重新考虑
    feels: 姑姑|阿姨|叔叔|奶奶|爷爷|妈妈|爸爸|饭|面包|冰淇淋|度假|孩子|家里|周末|旅行|小时候|奶奶|爷爷|妈妈|爸爸|海边|吃得|谢谢|很好|太好|开心|喜欢星期|下雨|休假|孩子|家人|朋友|周末|蔬菜|不客气|哈哈
    work: 同意|英语|pnpm|npm|分支|测试|回答|回复|构建|目录|提交|函数|依赖|数据库|生产|接口|缩进|制表符|空格|时间|服务器|外网|密码|日志|文件|变量|代码|注释|命名|合并|部署|缓存|端口|版本|格式|字段|线上|环境|标准库|金额|队列|返回值|连接串|单测|英文|中文|文档|方案|配置|脚本|错误信息|改动|功能|旧表|推送|删除|异步|函数式|日期|依赖|行|全局|邮箱|超时|类型|信息|表|(?<![A-Za-z])(?:{_WORK})(?![A-Za-z])
"""

_JAPANESE = rf"""
    ^task: このグラフ
    ^order: どうか|なお
    ^no: いいえ|いや|まだ
    ^corrects: 違います|違う|そうではなく|正しくは|実は
    permits: てもいい|ても構いません|てかまいません|許可します|していいです
    past: ことがあり|でした|ました(?!ら)|昨日|かった|ていました|なりませんでした|ずっと|先週|見ていません|言って
    hypothetical: もし|だったら|としたら|いいのに|もし|仮定|仮に|としたら|だったら|万が一|想像
    says: 看板|貼り紙|書いてあ|書かれて|と書いて|と書いて|と言って|によると|によれば|ドキュメントには|上司|「
    once: もう一度|もう一回|今(?!後)|ちょっと|すぐに?|今日|今回|\d+ ?行目|見せて|一度
    guess: 動きません|動かない|エラーが|失敗し|かもしれ|たぶん|おそらく|みたい|ようです|と思います|失敗します|動きません|わかりません
    binds: 聞いたら|尋ねたら|質問したら|聞いたとき|回答(?:では|には)|答えるとき|先に\S{{1,10}}(?:へ|に)回|を入れます|を書きます|から書き|入れません|税抜|税込|敬語|は[^。、]{{1,16}}にしてください|アレルギー|のまま|レビューし|確認し|承認し|担当|が行い|だけが|まだ\S{{1,12}}を使|に合わせ|を使っています|で書いています|で動いて|環境は|アクセスできません|接続できません|使っているのは|まま使って|で保存して|単位
    ban: ないように(?=し|。|$|お)|消さない|触らない|入れない|ないで|しないこと|してはいけ|てはいけません|てはならない|禁止|(?:使わ|触ら|変え|消さ|書か|出さ|入れ)ない(?:で|こと)|避けて|避ける(?!べき[？?])|控えて|やめて|ダメ|だめ|不可
    order: してください|てください|お願いします|して。
    must: 確認して|必ず|べき(?!です?か|[？?])|なければな|ないといけ|こと(?=[。]?$)|を使って|が必要|必須|守って|してほしい|ようにして|すること
    throughout: ごとに|毎(?=[^日朝晩年])|常に|毎回|すべて|全て|全部|今後|これから|以後|それぞれ|各|どんな|どの.{{1,8}}も|新しい|何か|一切|絶対に?|原則
    always: いつも
    only: 短く|簡潔|以内|まで(?=[。で]|$)|だけ|だけが|のみが|だけ|のみ|しか|以内|以下の|最大|最低|そのまま|まま|短め|短く|簡潔
    contrast: ではなく|じゃなく|代わりに|よりも|直接|(?:日本語|英語|中国語)で
    condition: 前に|後に|場合|とき|なしに|なく(?=新)|許可
    prefers: 好み|好き(?=です。?$)|ほうがいい|方がいい|ほうが好|希望|てほしい|たいです|望ましい|できれば|なるべく|多すぎ
    decides: 決まりました|決めました|ことにしました|ことになりました|と決め|ことにします|ことにしました|で行きましょう|でいきます|にしましょう|にします|を採用|決めました|決定
    feels: 叔母|叔父|祖母|母|父|ご飯|パン|アイス|休暇|子ども|家族|週末|旅行|祖母|祖父|子ども|海に|両親|ありがとう|完璧|嬉しい|楽し|休み|雨|うちの子|家族|友達|週末|野菜|食べ|最高|素敵|苦手|緑です
    work: コミット|テスト|プッシュ|サーバ|ビルド|フォルダ|関数|依存|データベース|本番|メッセージ|英語|日本語|金額|整数|キュー|変数|公開|インデント|タブ|スペース|日時|外部|接続|パスワード|ログ|ファイル|回答|答え|ブランチ|コード|コメント|環境|バージョン|設定|アクセス|デプロイ|マージ|リリース|型|エラー|削除|グローバル|(?<![A-Za-z])(?:{_WORK})(?![A-Za-z])
"""

_KOREAN = rf"""
    ^order: 부디
    ^no: 아니요|아니|아직
    ^corrects: 틀렸|그게 아니라|제 말은|사실은
    permits: 해도 됩니다|해도 돼|하셔도|허용합|허락합
    past: 했어요(?!요)|했습니다|었어요|았어요|어제|적이 없|했던|봤어|였|지난
    hypothetical: 만약|라면 |텐데|다면 |만약|만일|가정|상상|라면|판다면|혹시라도
    says: 표지판|적혀|쓰여|라고|다고|에 따르면|적혀|말라고|문서에는|상사|“
    once: 다시|한번|한 번|지금(?!부터)|잠깐|빨리|오늘|이번|\d+번째|보여 ?주|이제 (?!부터)|당장
    guess: 작동하지|오류가|실패했|아마|것 같|모르겠|실패해|안 돼요|안돼요|듯
    binds: 물어보면|물으면|물어볼 때|답변(?:에는|할 때)|먼저 \S{{1,8}}에게|[을를] 넣습니다|부터 씁니다|잡지 않습니다|별도|존댓말|반말|보다 .{{1,12}}(?:좋|낫)|알레르기|아직 \S{{1,10}} ?(?:\S{{1,8}})?(?:씁|쓰|사용)|검토합|확인합|승인합|담당|팀만|만 합니다|씁니다|사용합니다|돌아갑니다|제 환경|접근할 수 없|연결되어 있지 않|쓰고 있|단위|로 저장합
    ban: 지 ?마(?:세요|라|십시오|요|시)?|지 ?말(?:고|아|것|자|아야)|하면 안|으면 안|면 안 (?:됩|되|돼)|금지|피해 ?(?:주|야(?! 하나)|라)|피하|삼가|안 됩니다|않도록|않게
    order: 하세요|으세요|세요(?=[.!]?$)|해 ?주세요|주세요
    must: 유지해|지켜|안 됩니다|안 돼|물어|반드시|꼭|해야 (?:합|해요|한다|함|됩)|있어야|필요합|필수|도록|십시오|할 것|바랍니다|지켜|먼저 물어
    throughout: 매번|모든|모두|마다|앞으로|이제부터|지금부터|무엇이든|어떤|절대로?|새 |새로운|전부|원칙
    always: 항상|언제나|늘|계속
    only: 이하|이내|까지만|짧게|간단|만 가능|만(?= )|오직|까지만|최대|최소|이내|그대로|짧게|간단히|간결|외에는
    contrast: (?:영어|한국어|일본어|중국어)(?=[, 입])|대신|말고|아니라|직접|(?:한국어|영어|일본어|중국어)로
    condition: 전에|후에|없이|때마다|경우|먼저
    prefers: 선호|좋겠|원합|원해|싫|낫|가능하면|되도록|이면 좋|너무 많
    decides: 하기로 했|정했|합의했|결정했|하기로|로 하(?:자|죠)|로 갑시다|로 가(?:자|죠)|결정|씁시다|쓰기로
    feels: 이모|삼촌|할머니|엄마|아빠|밥|빵|아이스크림|아이들|가족|여행|고마|감사|완벽|좋아한|사랑|기뻐|휴가|비가|애들|가족|친구|주말|채소|먹어|초록|재미
    work: 커밋|테스트|푸시|서버|빌드|폴더|함수|의존성|데이터베이스|운영|메시지|영어|한국어|금액|정수|큐|변수|공개|공백|탭|날짜|인터넷|비밀번호|로그|파일|답변|답해|브랜치|코드|주석|환경|버전|설정|접근|배포|병합|릴리스|타입|오류|삭제|전역|사용|(?<![A-Za-z])(?:{_WORK})(?![A-Za-z])
"""

LATIN = {
    "en": "the an is are to of and or for with it this that you we my not does was be please don't never always all new every only"
    " at by from if can each needs should must one when they them will would have has had there here what who our your no a use i i'm i'd i've i'll in on let's it's",
    "es": "el la los las un una son y o para en con de del que se por mi tu nunca siempre cada hay está al lo si más usa uses"
    " nada prefiero evita nuestro antes estoy mis no ahora hagas ese a como esta este muy sin pero sus todo toda tres dos nuestros",
    "de": "der die das ein eine ist sind und oder nicht mit für auf den dem zu ich wir du bitte kein keine nie niemals immer im"
    " auch wenn nur alle bei mir mich es unser jede ab statt deine verwende achte dich dir wird werden hat haben vor bis zwei drei"
    " etwas geht einen einem einer vom zum zur noch als was da man niemand brauchen braucht arbeitet keinen unsere",
    "fr": "le la les un une des est sont et ou ne pas pour dans sur avec je tu nous il elle du de au que qui jamais toujours ce"
    " cette mes mon si ça j'aimerais en à réponds n'utilise évite utilise chaque doit on seul seule tout tous aux nos leur avant",
    "pt": "o os um uma é são e ou não para em com de da dos das na no que se por meu você nunca sempre sem cada há ao está isso"
    " mais nada prefiro evite só à antes pergunte estou mantenha respostas vamos continuamos gostei a ao aos pelo pela nossos nossa têm até três dois seja toda todo",
    "it": "il lo la gli le un una è sono e o non con di del della che si mi tu mai sempre senza ogni su da al più nel sul niente"
    " preferisco evita usa dei nei d'ora poi tieni per file puoi fallisce dal nella alla degli delle siamo hanno prima tre due solo"
    " nostri nostro viene sii i",
}
"""Words by which a language in Latin letters is known; of two that know as many, the first is taken."""
LETTERS = {
    "de": frozenset("äöüß"),
    "es": frozenset("ñ¿¡"),
    "pt": frozenset("ãõ"),
    "fr": frozenset("èêœ"),
    "it": frozenset("òì"),
}
"""Letters that only one of them has."""
SHARED = frozenset("a no o e i in on en la de un una con que per se si tu use on es".split())
"""Words that more than one of them has: they tell less."""

_TABLES = {
    "en": _ENGLISH,
    "de": _GERMAN,
    "fr": _FRENCH,
    "es": _SPANISH,
    "pt": _PORTUGUESE,
    "it": _ITALIAN,
    "ru": _RUSSIAN,
    "zh": _CHINESE,
    "ja": _JAPANESE,
    "ko": _KOREAN,
}
_UNSPACED = ("zh", "ja", "ko")
_TOPICS = ("work", "near")


@dataclass(frozen=True, slots=True)
class Words:
    """The patterns of a language; their groups are the names of features."""

    start: re.Pattern[str]
    anywhere: re.Pattern[str]
    topic: re.Pattern[str]


@cache
def words_of(language: str) -> Words:
    """Compiled when the language is first met: few conversations need more than one."""
    rows = [row.strip().partition(": ")[::2] for row in _TABLES[language].strip().splitlines()]
    before, after = ("", "") if language in _UNSPACED else (r"(?<!\w)", r"(?!\w)")
    return Words(
        start=_pattern([(name[1:], found) for name, found in rows if name.startswith("^")], "", after),
        anywhere=_pattern([row for row in rows if not row[0].startswith("^") and row[0] not in _TOPICS], before, after),
        topic=_pattern([row for row in rows if row[0] in _TOPICS], before, after),
    )


def _pattern(rows: list[tuple[str, str]], before: str, after: str) -> re.Pattern[str]:
    groups = "|".join(f"(?P<{name}>{found})" for name, found in rows)
    # For texts in small letters: to ignore case, each alternative would be tried at each letter, in thrice the time.
    return lazy_regex(f"{before}(?:{groups}){after}".replace("A-Z", "a-z"))
