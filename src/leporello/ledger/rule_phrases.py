"""How rules are worded: patterns in English and Chinese, one phrasing a line. `leporello.ledger.rules` reads by them.

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

ORDER = any_of(
    r"""
    # bans
    (?:do not|don'?t|dont|don't you dare|never|never ever)\s+(?:ever\s+|even\s+|just\s+)?(?!(?:found|know|think|see|remember|understand|have|believe|mind|recall|worry|care|get|really|seem|appear|feel|agree|wanna|exist|work|make sense|always)\b)[a-z`]
    (?:avoid|refrain from|cease|steer clear|hold off|beware|watch out|watch for|under no circumstances|not (?:ever|under any))\b
    not [\w./-]+, (?:but )?\S
    (?:stop|quit) \w+ing\b
    no longer\s+[a-z]
    stay (?:away|off|out|within|under|in|clear|on|with|at)\b
    (?:hands|keep your hands) off\b
    no (?!problem|worries|idea|way|one\b|matter|doubt|question|luck|thanks|it\b|that\b|i\b|we\b|you\b|the\b|there\b|this\b|reason|clue|need\b|file\b)(?!.{0,2000}\b(?:was|were|is|are|has|have|had|ran|came|got|seems?|\w{3,}ed)\b)[\w-]+(?: [\w`./-]+){0,7}(?<!\.)[.!]*$
    no (?:more|new)\b(?!.{0,2000}\b(?:seems?|was|were|is|are)\b).+
    no need (?:to|for)\b
    nothing (?:may|should|must|gets?)\b
    (?:skip|ignore|exclude|omit)\b
    # orders
    always\s+[a-z`]
    (?:make|be)\s+(?:very |absolutely |extra |really )?(?:sure|certain)\b
    (?:be )?(?:very |extra )?(?:careful|mindful)\b
    be (?:very |extra |more )?(?:aware|consistent|concise|brief|strict|explicit|precise|conservative|terse|thorough)\b
    go easy on\b|easy on the\b|focus on\b|aim for\b|strive for\b|concentrate on\b|better (?:to|not)\b|freeze\b|lock\b|hard limit\b
    (?:ensure|take care|double[- ]check that|see to it|mind the)\b
    (?:keep|bear|have) in mind\b
    (?:remember|don'?t forget|take into account)\b
    (?:keep (?!going|on\b|it up|working|trying|up\b|at it|in pending)\S|preserve\b|retain\b|maintain\b)
    leave\b.{0,2000}\b(?:alone|as|untouched|unchanged|in place|out|intact|that|off|on|there)\b
    (?:prefer|favou?r|stick (?:to|with)|go with|adhere to|comply with|conform to|abide by)\b
    (?:follow|respect|obey|honou?r|mimic|match|mirror) (?:the|our|my|this|that|existing|its|these)\b
    use (?!it\b|that\b|them\b|this\b|for\b|of\b|case|.{0,2000}:$)\S
    (?:name (?:it|them|the|this|branches|files|commits|tests|variables|functions|classes|columns|tables|modules|keys)|call (?:it|them|the new|this)|pin|default to|treat|limit|cap|restrict)\b
    only\s+(?:ever\s+)?(?!\w+s\b|(?:one|two|three|four|five|six|ten|a|some|half|part|then|now|after|problem|thing|issue)\b|if there|if you)[a-z]+\b
    just (?:use|do|run|change|touch|edit|return|print|omit|keep|leave|skip|ignore|validate|check)\b
    (?:at (?:most|least)|no more than|max(?:imum)?\b[^.]{0,20}\d)\b
    (?:every time|each time|any ?time|whenever)\b
    do (?:it|this|that) (?:only|without|by|with|in)\b
    (?:mock|touch|change|edit|modify|commit|push|deploy|print|copy|include|test|run|work) (?:only|not|nothing)\b
    (?:the )?same \w+ as\b
    as (?:few|little|small|short|simple|many|much|close) .{0,30}as possible\b
    (?:minimal|smallest possible|less|fewer) \w+
    (?:revert|undo|roll back) (?:that|it|this) and\b
    [\w-]+(?: [\w-]+){0,3},? only[.!]*$
    [\w./-]+(?: [\w./-]+){0,3} (?:rather than|instead of) [\w./-]+(?: [\w./-]+){0,3}(?<!\.)[.!]*$
    # consent first
    (?:ask|tell|warn|consult|check with|confirm with|wait for|get) (?:me|us|my|approval|permission|confirmation|\w+) (?:before|first|for approval|approval)\b
    (?:ask (?:before|first)|ask me|check with me|run it by me|let me (?:review|approve|see|check) .{0,2000}(?:before|first))\b
    wait (?:for (?:me|my|approval|confirmation|feedback|the user|user)|until (?:i|we|the user))\b
    # form
    (?:answer|reply|respond|write|speak|document|talk|comment|explain)\b[^.]*\bin (?:english|german|french|spanish|chinese|japanese|italian|portuguese|russian|korean|dutch|plain|simple|british|american|short|full sentences|one sentence|bullet)\b
    (?:indent|format|spell|prefix|suffix|wrap|quote)\b.+\b(?:with|as|in|by|at)\b
    """
)
"""Orders, at the start of a clause."""

CONDITION = re.compile(
    r"\b(?:before|after|until|unless|without|each time|every time|whenever|when) "
    r"(?:you |we |i |any |every |each |asking|touching|changing|breaking)?\s*"
    r"(?:commit|push|deploy|merg|releas|delet|edit|chang|touch|modif|ask|break|submit|finish|add|ship|publish|creat|writ|fix|rewrit)\w*|\b(?:until|unless|except)\b",
    re.IGNORECASE,
)
CONTRAST = any_of(
    r"""
    \binstead of\b
    \binstead[.!]*$
    ^instead\b
    \brather than\b
    (?:,| and| but) not\b
    \b(?:all|every|any) new \w+
    \bno(?:where| where) else\b
    \bnothing but\b
    \b(?:one|single|two) [\w-]+ (?:per|for each|for every|a) \w+
    \bper (?:line|file|commit|test|function|module|request|call|page|row|class|change)\b
    \bonly[.!]*$
    \bin (?:json|yaml|toml|csv|markdown|utc|english|german|french|spanish|chinese|japanese|british|american|plain|lower ?case|upper ?case|title case)\b
    \b(?:briefly|tersely|verbatim|strictly|consistently|alphabetically)\b
    \bnothing else\b
    \bas[- ]is\b
    (?<!read[ -])\bonly the\b
    """
)
VERB = re.compile(
    r"(?:use|rename|make|create|add|put|move|run|write|call|return|print|show|set|send|pass|store|save|log|mock|test|change|update"
    r"|replace|do|try|take|give|treat|handle|build|wrap|format|indent|sort|group|split|merge|commit|push|deploy|release|install|import"
    r"|export|open|close|start|check|verify|pin|name|read|get|turn|switch|go|remove|delete|drop|place|have|let|rebase|squash|raise"
    r"|throw|catch|fix|render|hold|postpone|delay|block|pause|reject|refuse|answer|reply|respond|name|report|track|ship|order|declare|describe|mark|note|list|limit|display|convert|parse|load|copy|link|tag|sign|document|implement|extend|inherit|override|inline|extract)\b",
    re.IGNORECASE,
)
"""Verbs an order may begin with. By themselves they ask for work, which is no rule; with a condition or a contrast they are."""

REQUIRES = any_of(
    r"""
    \bmust(?: not|n'?t)?\b
    \bshall(?: not)?\b
    \byou may not\b
    \b(?:you|we) (?:can'?t|can ?not) (?:ever |just )?(?:use|touch|change|modify|edit|delete|remove|push|commit|merge|deploy|add|install|rename|break|skip|import|rely|depend|assume|exceed|share|log|store|introduce|ship|release|mock|disable|upgrade)\b
    \bmay not (?:be (?:changed|modified|used|touched|removed|edited|renamed|committed|logged|stored|printed|called|deleted|exceeded)|drop|exceed|fall|contain|use|change|go)\b
    \b(?:is|are) (?:not )?to be\b
    \b(?:is|are) not to\b
    \b(?:has|ought) to\b
    \bneeds? to be\b
    \b(?:you|every\w*|each|all|any|they|these|those|\w+s)\b[^,]{0,40} (?:have|needs?) to (?!do a lot|know|say|go now)
    \b(?:every\w*|each|any\w*|all)\b[^,]{0,40} needs? (?:a|an|its own|to|at least|\d+|one|two|three) \w+
    ^\W*(?:every|each|any) (?:new |single )?[\w-]+(?: [\w-]+)? (?:gets|goes|uses|starts with|comes with|carries|lives)\b
    ^\W*all\b.{1,40}\b(?:go|goes) (?:through|via|into|to|in|under)\b
    ^\W*all\b.{1,40}\bare (?:stored|kept|written|saved|named|formatted|measured|expressed|given) (?:in|as|with|under)\b
    ^\W*(?:deploy\w*|releases?|merges|migrations|commits|pushes) only (?:happen|go|run|land)\b
    \bcan be as (?:large|long|big|many) as\b
    \b(?:names|messages|subjects|titles|branches|commits|ids|keys) (?:start|begin|end) with\b
    \bnot supposed to\b
    \bthis (?:repo|repository|project|codebase|team|file|package) (?:uses|follows|requires|sticks)\b
    \b(?:is|are) (?:preferred|preferable|discouraged|frowned upon|unacceptable|a must|a no-go|taboo|no-go)\b
    \b(?:is|are) not (?:ok|okay|fine|acceptable|wanted|welcome|an option)\b
    \b(?:max(?:imum)?|min(?:imum)?)\b[^.]{0,40}\b(?:is|of|:)\b[^.]{0,12}\d
    \b(?:stays?|remains?)(?: as (?:is|it is)| the same| unchanged| put| where (?:it is|they are)| on top)?[.!]?$
    \bat the (?:very )?(?:most|least)\b
    \b(?:is|are) (?:strictly |absolutely )?(?:not allowed|forbidden|prohibited|mandatory|off[- ]limits|out of scope|read-only|frozen|protected|non-negotiable|not negotiable|banned|not permitted|to stay|to remain)\b
    \bit(?:'s| is) (?:very |really )?(?:important|essential|crucial|critical|vital|imperative)\b
    ^\W*(?:nobody|no one|nothing)\b(?!.{0,2000}\b(?:was|were|did|knows?|has|had|is|happens?|works?|\w+ed)\b)
    \bnone of your business\b
    \bbelongs? (?:in|next|under|into|to|on|beside|with)\b
    \b(?:is|are) required(?= (?:for|to|in|on|before|by)\b|[.!]?$)
    \b(?:you can|may|should) only\b
    \b(?:should|will|to) (?:always|never)\b
    \bshould(?:n'?t| not)?\b(?! have (?:been|gone|done|seen|had|got|known|thought|said|told|\w+ed)\b|'ve\b| we\b| i\b| you\b)
    (?<!to )(?<!just )(?<!want )\b(?:make sure|ensure|be sure to)\b
    """
)
"""Requirements: something must or should be so."""

NOT_REQUIRED = any_of(
    r"""
    \b(?:i|we|they|who)(?:'ll|'d|'m| am| will| would| might| may| just| really| still| also| don'?t| didn'?t| wouldn'?t| do not)* (?:have|need) to\b
    \b(?:and|financially|hi|hey)\b[^,]{0,2000}\bneed to\b
    \bmight have to\b
    \bhad to\b
    \bif you need to\b
    \bwhich\b[^,]{0,30}\bneed to\b
    \b(?:this|that|it|which|you) should(?:n'?t)? (?:mean|cover|work|be (?:good|fine|ok|enough|it|able|there|easy|all)|know|do it|suffice|help)\b
    \bshould (?:be (?:good|fine|ok|okay|enough|able|in the|in my|there|easy|possible|correct)|know|now (?:work|be)|still|already|mean|show up|happen)\b
    \bshould be .{0,2000}\b(?:in a (?:minute|moment|second)|soon|by now|shortly)\b
    \bwe should (?:look|check|see|try|discuss|talk|think|be)\b
    \bit seems\b
    \b(?:that|this|it) must be\b
    \byou should (?:see|hear|try|check out|have a look)\b
    \b(?:somebody|someone|they) should\b
    \bhas to do with\b
    \b(?:if|whether|why|how|what|where|when|which|who)\b[^,]{0,60}\bshould\b
    \b(?:must|might)(?:'ve| have| be (?:a|an|some|because|due|wrong|missing|something))\b
    \bi must (?:have|say|admit)\b
    incorrect
    """
)
"""The same words as a guess, a report or a plan of the user's own."""

WE_MUST = re.compile(r"\b(?:we|you) (?:also |really |still |do )*(?:have|need) to\b|\byou'?ve got to\b", re.IGNORECASE)

PREFERS = any_of(
    r"""
    \bi(?:'d| would| really| strongly| generally| usually| personally| much| do| still)* (?:prefer|rather|favou?r)\b(?! that[.!]?$)
    \bi(?:'d| would) (?:be happier|like (?:it|them|the \w+|all|every\w*|everything|to (?:keep|use|avoid|stick|stay|have (?:it|them|all|every)))\b)
    \bi (?:hate|dislike|can'?t stand|insist|expect|like my|won'?t accept|can'?t accept|cannot accept|will not accept|refuse)\b
    \bi(?: really| just)? (?:don'?t|do not) (?:want|like)\b
    \bi(?:'d| would)? (?:need|want|expect|require|like) (?:every|all|each|any|the|our) .{1,60}? to\b
    \bi(?: only| just| really)* want (?:no\b|all|every|only|it|them|each|nothing|to keep|the \w+ (?:to|in|as))
    \bmy preference\b
    \bi would keep\b
    \bit would be (?:better|best|nicer|good) (?:if|to)\b
    """
)

CONVENTION = any_of(
    r"""
    ^\W*not (?:on|in|for|before|until|without|more than|too|so) \S
    \bwe (?:always|never|only|all) (?!(?:end|get|got|have|had|see|saw|seem|run into|fail|wait|\w+ed)\b)
    \beverywhere\b(?!.{0,2000}\b(?:is|are|was|were)\b)
    \b(?:lower ?case|upper ?case|snake_case|camelcase|kebab-case|pascalcase|title case)\b(?!.{0,2000}\b(?:is|are|was|were)\b)
    \bwe (?:don'?t|do not) (?:use|do|write|want|allow|commit|push|ship|need to|mix|touch|add)\b
    \b(?:our|my|the|house|team|project) (?:[\w-]+ )?(?:convention|policy|rule|guideline|standard|preference|budget|limit|deadline|style|invariant)s?\b[^.]{0,60}(?:\bis\b|\bare\b|:|\bsays?\b)
    \b(?:policy|convention|guidelines?|standards?|style guide) (?:requires?|demands?|forbids?|wants?)\b
    \bwe (?:need|have) to (?:support|comply|stay (?:with|on|under|within|compatible)|remain|keep (?:support\w*|compatib\w*|the|our|all)|avoid)\b
    \bthe (?:rule|overriding directive|constraint|requirement) (?:is|here)\b
    \b(?:as a rule|by convention|no exceptions|house style)\b
    \b(?:from now on|going forward|henceforth|from here on)\b
    """
)

DECIDES = any_of(
    r"""
    ^\W*(?:ok(?:ay)?,? |so,? |then,? |alright,? )*(?:let'?s|lets|let us) (?:use|go with|go for|keep|run|call|name|stick|switch|make sure|not\b|avoid|drop|pin|stay|always|never|only|settle|pick|choose|standardi[sz]e)
    ^\W*we(?:'ll| will)? (?:go|stick|stay|settle) (?:with|on|for)\b
    ^\W*(?:final )?decision\b
    \b(?:i|we)(?:'ve| have)? (?:decided|agreed|settled|chosen)\b
    ^\W*name (?:the|it)\b
    \bit is decided\b
    ^\W*(?:go|going) with\b
    """
)

CORRECTS = any_of(
    r"""
    ^\W*(?:no|nope|nah|wrong|incorrect|correction|not (?:that|like that|what|quite|the)|sorry|oops|actually)\b(?=.{6,}$)
    ^\W*(?:that|this|it)(?:'s| is|s) (?:wrong|not (?:right|correct|what|the|how|it)|incorrect)\b(?=.{6,}$)
    \bi (?:meant|said|asked for)\b
    \bi(?:'ve| have)?(?: already)? told you\b
    \b(?:as|like) i (?:already )?said\b
    \bit'?s [\w./-]+, not\b
    ^\W*(?:[\w ]{2,20}: [./-]{0,3})?\w[\w./-]*(?: [\w./-]+){0,2}, not [\w./-]+(?: [\w./-]+){0,2}(?<!\.)[.!]*$
    \bon second thoughts?\b
    \b(?:i(?:'ve)? )?changed? my mind\b
    (?<!if )(?<!whether )\bit should (?:be|have been|read|say)\b
    \bshould be [^,]{1,2000}, not\b
    """
)
INSTEAD = any_of(
    r"""
    \b(?:instead|rather|not \w+|meant|called|named|want|keep|it'?s|should|goes?)\b
    \bis (?:on|in|at|under|called)\b
    """
)

PERMITS = any_of(
    r"""
    \b(?:go ahead(?! of)|feel free|by all means|permission granted|you have permission)\b
    \byou(?: may|(?:'re| are) (?:now )?allowed|(?:'re| are) free| have permission| have my| now have| do(?:n'?t| not) (?:have|need) to (?:ask|wait))\b
    \byou can (?:now|go|safely|just|also|push|delete|merge|deploy|commit|add|drop|ignore|skip|use|remove|edit|change|touch|print|modify|overwrite)\b
    \bi (?:hereby )?(?:approve|consent|authori[sz]e|agree to)\b
    (?:^|\bis |\bare )approved\b
    \b(?:it'?s|it is|that'?s) (?:ok|okay|fine|alright|all right|allowed|acceptable) (?:now )?(?:to|if you|for you)\b
    \b(?:is|are) (?:now |again )?(?:fine|ok|okay|allowed|permitted|acceptable|welcome|writable|optional|editable)\b(?=.{0,2000}\b(?:again|now|after all)\b|[.!]|$)
    """
)
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
NO = re.compile(r"^\W*(?:no|nope|nah|not (?:now|yet)|hold off|absolutely not|negative|rather not)\b", re.IGNORECASE)

POLITE = re.compile(r"^\W*(?:can|could|would|will) (?:you|we)\b", re.IGNORECASE)
POLITE_ORDER = re.compile(
    r"^\W*(?:can|could|would|will) (?:you|we)(?: please| maybe| just| also)* "
    r"(?:always|never|not|stop|avoid|ensure|make sure|keep|only|use .{0,2000}(?:instead|rather|not)|leave|stick|prefer)\b",
    re.IGNORECASE,
)
"""Orders in the form of a question; everything else asked so politely is a request for work."""
SUBJECT = re.compile(r"^\W*(?:i|we|they|he|she|it|this|that|there)\b", re.IGNORECASE)
REPORT = re.compile(
    r"^\W*(?:i|i'm|i've|i'll|they|he|she|it|it's|there|what|why|how|who|which|does|did|is|are|was|to|now on)\b",
    re.IGNORECASE,
)

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

ZH_ORDER = any_of(
    r"""
    (?<![要想])不要(?![紧求])
    (?<![特分区类级个识辨性派鉴判告差])别(?![的人名处墅致称样说])
    必须|禁止|务必|不得(?!不|已|了)|不准|不许|严禁|切勿|请勿|勿|千万|避免
    一定(?:要|得|不能)
    只(?:能|用|改|允许|准|需要?|可以|许|做|看|读|在.{1,12}(?:执行|运行|使用|用|改|做|部署))
    不用.{1,12}了
    请(?:用|使用|保持|确保|始终|先|务必|统一|遵守|按|不要|别|尽量|优先)
    记(?:住|得)(?!.{0,2000}吗)
    注意(?!到|力)
    今后|从现在(?:开始|起)|以后(?!再说|会|可能|.{0,2000}[吗？])
    凡是|一概|杜绝|严格(?:按|遵|执|控|限)?|底线|上限|下限|不接受|原样|留着|保留
    (?:不低于|不少于|不高于|不大于|小于|控制在|限定)
    除(?:了|非).{1,20}(?:都|否则|不|一律)
    (?:里|中|上|下|码)不行
    (?:之前|前)(?:先)?(?:给我|让我|要|必须|请|得)
    (?<![我你他她们想需不主重只就还])要(?![求紧么点素是不])(?=[\u4e00-\u9fff]{1,6}[。！]?$)
    (?:缩进|命名|注释|换行|引号|文档|变量名?|函数名?|代码)(?:请|都|统一)?(?:用|跟|按|写|要)
    每次.{0,12}(?:前|后|都要|都必须|请|先|要)
    优先(?:使用|考虑|用|选)?|统一(?:使用|用|采用|改|成)?
    (?<!没有)保持
    先问(?:我|一下)|无需|不需要|不用再|不必|小心|尽量|一律|始终
    总是(?:用|使用|要|先|在)|永远(?:不|别|要|用)|绝(?:对)?不(?:能|要|可|允许|准)
    不(?:能|可以?|应该?|应当)(?!运行|工作|用了|跑|正常|启动|编译|打开|访问|连接|登录|显示|复现|确定|通过)
    (?:应该|应当|需要|得)(?:用|使用|先|改|放|写|统一|保留|是.{1,30}(?:不是|而不是))
    我们从?不(?:用|写|做|搞)|默认.{1,12}(?:设为|设成|用)
    改用|换成|换用|改成|改为|采用|沿用|限制在|不超过|最多|至少|坚持|遵循|遵守|按照|以.{1,12}为准
    (?:写|用|说|回复?)(?:英文|中文|英语|日文|日语|德语)
    先.{1,20}再
    仅(?:限|用|在)
    停止(?:使用|添加|加|用)|不再(?:使用|用|需要)
    (?:用|使用).{1,24}(?:不要|不用|别用|而不是|代替|来写|来做|格式|就行|即可|回答|回复)
    而不是|用中文|用英文|用英语|说中文
    所有.{1,24}(?:都要|都得|都用|必须|一律)
    (?:端口|版本|名字|分支|目录|语言|数据库|格式)(?:请)?(?:用|使用|是|为|叫|改|设)
    """
)
ZH_VETO = any_of(
    r"""
    要不要|能不能|可不可以|是不是|需不需要|该不该
    注意到
    总是(?:报错|失败|出错|崩溃|卡住|超时)
    应该(?:是|没|不会|可以了|好了|没问题|快|已经)(?!.{0,2000}不是)
    不得不
    没(?:有)?必要吗
    每次(?:运行|启动|打开|执行|点击|都(?:报错|失败|崩))
    """
)
ZH_PREFERS = re.compile(r"我(?:更|比较)?(?:喜欢|希望|倾向|偏好|建议|想要|不想|不希望|不喜欢|宁愿|宁可)|最好")
ZH_CORRECTS = any_of(
    r"""
    ^\W*(?:不对|不是|错了|搞错|搞反|反了|更正|纠正|不，|不行|等等|其实|你说错|我(?:要|说|指)的是|我的意思是|我说过)
    应该是.{1,40}(?:不是|才对|而不是)
    改主意|重新考虑
    """
)
ZH_PERMITS = any_of(
    r"""
    可以.{0,30}了(?!吗|么)
    (?:好的?|行|可以|同意|没问题|批准|准许|允许|是的|对)[，,。!！ ]+.{0,6}(?:删|推|合并|部署|提交|执行|继续|发布|运行|改|用|做)
    放心.{0,4}(?:删|改|做|用)
    尽管.{1,10}
    现在(?:可以|允许)
    随便(?:用|改|你)
    允许(?:你|在|使用)
    """
)
ZH_DECIDES = any_of(
    r"""
    (?:就|还是|那就|决定|我们|咱们|最终)(?:用|使用|选|采用|定|叫|走|按)
    (?:方案|决定|结论)(?:是|：|:|为)
    (?:就这么|就这样)(?:定|办|做)
    """
)
ZH_REFUSES = re.compile(r"^\W*(?:不，|先别|不行|不同意|先不|暂时不|暂时别)")

OTHER_LANGUAGES = any_of(
    r"""
    \b(?:niemals|immer|darfst|dürfen|muss|müssen|bitte kein\w*|bitte nicht|nicht \w+en|ausschließlich|nur noch|keine neuen?)\b
    \b(?:darf|sollst|sollen|soll) (?:nicht|nie|kein\w*)\b|^\W*(?:bitte )?nie\b
    \b(?:nooit|altijd|niet (?:gebruiken|aanraken|wijzigen|verwijderen))\b
    \b(?:nunca|siempre|jamás|debes?|evita|no (?:uses|toques|cambies|borres|hagas))\b
    \b(?:jamais|toujours|doit|il faut|sempre)\b|(?:^|[,;:] )\W{0,20}(?:merci de |veuillez )?n(?:e |['’])\w.{0,30}? (?:pas|plus)\b
    \b(?:non (?:usare|usate|toccare|toccate|modificare|cambiare|cancellare|eliminare|aggiungere|scrivere|fare)|devi|dovete|evita\w*|solo (?:con|in|la|il))\b
    \bnão (?:use|usem|toque|mude|altere|apague|faça|adicione|modifique|remova|mexa|escreva)\b|\b(?:deve|devem|evite)\b
    \b(?:никогда|всегда|нельзя|не надо|не нужно|должен|должны|обязательно|запрещено|избегай\w*)\b
    \bне (?:используй|трогай|меняй|изменяй|удаляй|добавляй|пиши|коммить|делай|пушь|забывай|забудь|ломай|трожь)(?:те)?\b
    \b(?:nigdy|zawsze|nie (?:używaj|zmieniaj|usuwaj|dodawaj|dotykaj))\b
    絶対に|必ず|しないで|してはいけ|ないでください|使わないで|は禁止
    항상|절대|하지 마|반드시
    """
)
"""A few plain words each of other languages users write in; who said it, and where, needs none of them."""

BAN_HEADING = re.compile(
    r"^\W*(?:never|don'?ts?|do not|avoid|must not|forbidden|not allowed|red flags|anti-?patterns|不要|禁止|避免)(?: do)?\W*$",
    re.IGNORECASE,
)
"""A heading that turns the list below it into bans."""
LIST_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s")
