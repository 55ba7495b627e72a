"""The English words that speak for a standing rule or against one, and the words by which a language is known.

Each line names a feature and its words (as a pattern without case). A name with `^` stands for words that count at the
start of a clause only. Other languages are read by signs alone (`leporello.ledger.rule_score`).
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

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

_TOPICS = ("work", "near")


class Words(Struct, frozen=True):
    """Patterns whose groups are the names of features."""

    start: re.Pattern[str]
    anywhere: re.Pattern[str]
    topic: re.Pattern[str]


@cache
def english() -> Words:
    """Compiled when the first English sentence is met."""
    rows = [row.strip().partition(": ")[::2] for row in _ENGLISH.strip().splitlines()]
    before, after = r"(?<!\w)", r"(?!\w)"
    return Words(
        start=_pattern([(name[1:], found) for name, found in rows if name.startswith("^")], "", after),
        anywhere=_pattern([row for row in rows if not row[0].startswith("^") and row[0] not in _TOPICS], before, after),
        topic=_pattern([row for row in rows if row[0] in _TOPICS], before, after),
    )


def _pattern(rows: list[tuple[str, str]], before: str, after: str) -> re.Pattern[str]:
    groups = "|".join(f"(?P<{name}>{found})" for name, found in rows)
    # For texts in small letters: to ignore case, each alternative would be tried at each letter, in thrice the time.
    return lazy_regex(f"{before}(?:{groups}){after}".replace("A-Z", "a-z"))
