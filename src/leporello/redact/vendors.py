"""Keys that their own first letters give away, one line of a table per vendor and format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from leporello.lazy_regex import lazy_regex
from leporello.redact.formed_keys import formed_key_spans
from leporello.redact.spans import SecretSpan, matches
from leporello.redact.values import is_drawn

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_ID = "[A-Za-z0-9_-]"
_ALNUM = "[A-Za-z0-9]"
_HEX = "[0-9a-f]"

# The letters a key starts with, and what follows them.
_STARTS: dict[str, str] = {
    **dict.fromkeys(
        "dt0c01. dt0s01. dt0s02. dt0s08. dt0s16.".split(), r"[A-Z0-9]{8,24}\.[A-Z0-9a-z]{40,}+"
    ),  # Dynatrace
    "rdme_": rf"{_ALNUM}{{40,}}+",  # ReadMe
    "bb_live_": rf"{_ID}{{16,}}+",  # Browserbase
    "lep-": rf"{_ID}{{20,}}+",  # our own gateway
    # OpenAI and who follows it
    "sk-": rf"(?:(?:proj|svcacct|admin|ant|or-v1|lf)-{_ID}{{20,}}+|(?:[a-z]{{2,12}}-)?{_ALNUM}{{32,}}+"
    r"|[a-z]{2,12}(?:-[a-z0-9]{7}){4}(?![A-Za-z0-9-]))",  # Helicone
    "AIza": rf"{_ID}{{30,}}+",  # Google
    "AQ.": rf"A{_ID}{{40,}}+",
    "ya29.": rf"{_ID}{{20,}}+",
    "1//0": rf"{_ID}{{30,}}+",
    "GOCSPX-": rf"{_ID}{{20,}}+",
    "AKIA": r"[A-Z0-9]{16}(?![A-Za-z0-9])",  # AWS
    "ASIA": r"[A-Z0-9]{16}(?![A-Za-z0-9])",
    "ABSK": r"[A-Za-z0-9+/]{40,}={0,2}",
    "ABIA": r"[A-Z0-9]{16}(?![A-Za-z0-9])",
    "FwoGZXIvYXdz": r"[A-Za-z0-9+/=]{40,}+",
    "IQoJb3JpZ2lu": r"[A-Za-z0-9+/=]{40,}+",
    "amzn.mws.": _UUID,
    "LTAI": rf"{_ALNUM}{{12,30}}(?!{_ALNUM})",  # Alibaba
    "AKID": rf"{_ALNUM}{{32}}(?!{_ALNUM})",  # Tencent
    "AQVN": rf"{_ID}{{34,38}}(?!{_ID})",  # Yandex
    "pa-": rf"{_ID}{{40,}}+",  # Voyage
    "wandb_v1_": rf"{_ID}{{30,}}+",
    "esecret_": rf"{_ID}{{20,}}+",  # Anyscale
    "rpa_": rf"{_ALNUM}{{30,}}+",  # RunPod
    "gsk_": rf"{_ID}{{30,}}+",  # Groq
    "xai-": rf"{_ID}{{40,}}+",
    "pplx-": rf"{_ID}{{30,}}+",
    "r8_": rf"{_ID}{{30,}}+",  # Replicate
    "hf_": rf"{_ALNUM}{{30,}}+",
    "api_org_": rf"{_ALNUM}{{30,}}+",
    "tvly-": rf"{_ID}{{24,}}+",  # Tavily
    "fc-": rf"{_HEX}{{32}}(?!{_ALNUM})",  # Firecrawl
    "jina_": rf"{_ID}{{40,}}+",
    "nvapi-": rf"{_ID}{{40,}}+",
    "fw_": rf"{_ALNUM}{{22,}}+",  # Fireworks
    "csk-": rf"{_ALNUM}{{40,}}+",  # Cerebras
    "lsv2_": rf"(?:pt|sk)_{_HEX}{{32}}_{_HEX}{{10}}",  # LangSmith
    "pcsk_": rf"{_ID}{{40,}}+",  # Pinecone
    "e2b_": rf"{_HEX}{{40}}",
    "ctx7sk-": rf"{_ID}{{20,}}+",
    "ghp_": rf"{_ALNUM}{{30,}}+",  # GitHub
    "gho_": rf"{_ALNUM}{{30,}}+",
    "ghu_": rf"{_ALNUM}{{30,}}+",
    "ghs_": rf"{_ID}{{30,}}+",
    "ghr_": rf"{_ALNUM}{{30,}}+",
    "github_pat_": rf"{_ID}{{40,}}+",
    **dict.fromkeys(
        "glpat- gloas- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- glsoat- glffct- glwt-".split(),
        r"[A-Za-z0-9_.-]{20,}+",  # GitLab
    ),
    "GR1348941": rf"{_ID}{{20,}}+",
    "BBDC-": r"[A-Za-z0-9+/]{40,}+",  # Bitbucket
    "ATBB": rf"{_ALNUM}{{28,}}+",
    "ATATT3": r"[A-Za-z0-9_=+/-]{50,}+",  # Atlassian
    "ATCTT3": r"[A-Za-z0-9_=+/-]{50,}+",
    "xox": r"(?:[abceoprsd]|e\.xox[bp])-[A-Za-z0-9_.%+/=-]{20,}+",  # Slack
    "xapp-": r"\d-[A-Za-z0-9-]{30,}+",
    "xwfp-": rf"{_ID}{{30,}}+",
    "SG.": rf"{_ID}{{16,}}\.{_ID}{{30,}}+",  # SendGrid
    "key-": rf"{_HEX}{{32}}(?!{_ALNUM})",  # Mailgun
    "xkeysib-": rf"{_HEX}{{64}}-{_ALNUM}{{16}}",  # Brevo
    "xsmtpsib-": rf"{_HEX}{{64}}-{_ALNUM}{{16}}",
    "re_": rf"{_ALNUM}{{6,12}}_{_ALNUM}{{20,}}+",  # Resend
    "npm_": rf"{_ALNUM}{{30,}}+",
    "pypi-": rf"{_ID}{{50,}}+",
    "rubygems_": rf"{_HEX}{{40,}}+",
    "cio": rf"{_ALNUM}{{32}}(?!{_ALNUM})",  # crates.io
    "oy2": rf"[a-z0-9]{{43}}(?!{_ALNUM})",  # NuGet
    "cio-": rf"{_HEX}{{40,}}+",
    "sk_": rf"(?:(?:live|test|prod)_{_ALNUM}{{16,}}+|{_HEX}{{48}}(?!{_ALNUM}))",  # Stripe and others, ElevenLabs
    "rk_": rf"(?:live|test|prod)_{_ALNUM}{{16,}}+",
    "whsec_": r"[A-Za-z0-9+/=]{20,}+",
    **dict.fromkeys(("dop_v1_", "doo_v1_", "dor_v1_"), rf"{_HEX}{{64}}"),  # DigitalOcean
    "dapi": rf"{_HEX}{{32}}(?:-\d)?(?!{_ALNUM})",  # Databricks
    "dose": rf"{_HEX}{{32}}(?:-\d)?(?!{_ALNUM})",
    **dict.fromkeys(("shpat_", "shpca_", "shppa_", "shpss_", "shpua_"), rf"{_ALNUM}{{32,}}+"),  # Shopify
    "sq0": rf"(?:atp|csp|idp)-{_ID}{{20,}}+",  # Square
    "EAAA": rf"{_ID}{{56,}}+",
    "EAA": rf"{_ALNUM}{{80,}}+",  # Facebook
    "IGQ": rf"{_ID}{{80,}}+",
    "access_token$": rf"(?:production|sandbox)\${_ALNUM}{{10,}}\${_HEX}{{32}}",  # Braintree
    "EZAK": rf"{_ALNUM}{{50,}}+",  # EasyPost
    "EZTK": rf"{_ALNUM}{{50,}}+",
    "shippo_": rf"(?:live|test)_{_HEX}{{40}}",
    "duffel_": rf"(?:live|test)_{_ID}{{40,}}+",
    "FLW": rf"(?:SECK|PUBK)(?:_TEST)?-{_ID}{{20,}}+",  # Flutterwave
    **dict.fromkeys(("hvs.", "hvb.", "hvr."), rf"{_ID}{{24,}}+"),  # Vault
    "s.": rf"{_ALNUM}{{24,26}}(?![A-Za-z0-9_(\[.])",
    "s.CAES": rf"{_ID}{{60,}}+",
    "tkn.v1_": r"[A-Za-z0-9+/=_-]{40,}+",  # Teamwork
    "mdb_sa_sk_": rf"{_ID}{{30,}}+",  # MongoDB Atlas
    **dict.fromkeys(("ak_live_", "ak_test_", "flb_live_"), rf"{_ALNUM}{{20,}}+"),  # Pagar.me, Fleetbase
    "fio-u-": rf"{_ID}{{60,}}+",  # Frame.io
    "ion_": rf"{_ALNUM}{{42}}(?!{_ALNUM})",  # Ionic
    "BBFF-": rf"{_ALNUM}{{30,34}}(?!{_ALNUM})",  # Ubidots
    "shltm_": rf"{_ID}{{40,}}+",  # Flexport
    "odt_": rf"{_ALNUM}{{32,}}+",  # Dependency-Track
    **dict.fromkeys(("s-s4t2ud-", "s-s4t2af-"), rf"{_HEX}{{64}}"),  # 42
    "live_": rf"\d{{6,12}}_{_ALNUM}{{26,}}+",  # Twitch
    "00D": rf"{_ALNUM}{{12,15}}![A-Za-z0-9._]{{80,}}+",  # Salesforce
    "hawk.": rf"{_ALNUM}{{20}}\.{_ALNUM}{{20}}(?!{_ALNUM})",  # StackHawk
    "tk.eyJ": rf"{_ID}{{20,}}\.{_ID}{{16,}}+",  # Mapbox
    "eyJrIjoi": r"[A-Za-z0-9+/]{40,}+={0,2}",  # Grafana
    "NRAA-": rf"{_HEX}{{27}}(?!{_ALNUM})",  # New Relic
    "NRIQ-": rf"{_ID}{{19,}}+",
    "eu01xx": rf"{_HEX}{{30}}NRAL",
    "dckr_": rf"(?:pat|oat)_{_ID}{{24,}}+",
    "lin_": rf"(?:api|oauth|wh)_{_ALNUM}{{32,}}+",
    "ntn_": rf"{_ALNUM}{{40,}}+",  # Notion
    "secret_": rf"{_ALNUM}{{40,}}+",
    "figd_": rf"{_ID}{{30,}}+",
    **dict.fromkeys(("figoh_", "figor_"), rf"{_ID}{{30,}}+"),
    "CFPAT-": rf"{_ID}{{40,}}+",  # Contentful
    "pat": rf"{_ALNUM}{{14}}\.{_HEX}{{64}}(?!{_ALNUM})",  # Airtable
    "pat-": rf"(?:na|eu)\d-{_UUID}",  # HubSpot
    **dict.fromkeys(("1/", "2/"), rf"(?:\d{{12,20}}/)?\d{{12,20}}:{_HEX}{{32}}(?!{_ALNUM})"),  # Asana
    "token-": r"[a-z0-9]{5}:[a-z0-9]{54}(?![A-Za-z0-9])",  # Rancher
    "PMAK-": rf"{_HEX}{{24}}-{_HEX}{{34}}",  # Postman
    "dp.": r"(?:pt|st|ct|sa|scim|audit)\.(?:[A-Za-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,}+",  # Doppler
    "AGE-SECRET-KEY-1": r"[A-Z0-9]{50,}+",
    "glsa_": rf"{_ALNUM}{{32}}_{_HEX}{{8}}",  # Grafana
    "glc_": r"[A-Za-z0-9+/=_-]{32,}+",
    **dict.fromkeys("NRAK- NRJS- NRII- NRRA- NRSP-".split(), rf"{_ALNUM}{{19,}}+"),  # New Relic
    **dict.fromkeys(("sntrys_", "sntryu_"), r"[A-Za-z0-9_+/=-]{30,}+"),  # Sentry
    "phx_": rf"{_ID}{{40,}}+",  # PostHog
    "pscale_": r"(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{20,}+",
    "sb_secret_": rf"{_ID}{{20,}}+",  # Supabase
    "sbp_": rf"(?:v0_)?{_HEX}{{40}}",
    "pul-": rf"{_HEX}{{40}}",
    "HRKU-": rf"{_ID}{{30,}}+",
    "nfp_": rf"{_ALNUM}{{30,}}+",  # Netlify
    **dict.fromkeys(("vcp_", "vci_", "vck_", "vca_", "vcr_"), rf"{_ALNUM}{{24,}}+"),  # Vercel
    "rnd_": rf"{_ALNUM}{{28,}}+",  # Render
    "fo1_": rf"{_ID}{{40,}}+",  # Fly
    **dict.fromkeys("fm1_ fm2_ fm1a_ fm1r_ fm2a_ fm2r_".split(), r"[A-Za-z0-9+/=_-]{30,}+"),
    "sl.": rf"(?:u\.|B)?{_ID}{{100,}}+",  # Dropbox
    "sgp_": rf"(?:{_ALNUM}{{16}}_|local_)?[0-9a-fA-F]{{40}}(?!{_ALNUM})",  # Sourcegraph
    "slk_": rf"{_HEX}{{64}}",
    "tfp_": rf"{_ID}{{40,}}+",  # Typeform
    "aio_": rf"{_ALNUM}{{28}}(?!{_ALNUM})",  # Adafruit
    "ops_": rf"eyJ{_ID}{{100,}}[=]{{0,3}}",  # 1Password
    "A3-": r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
    "apify_api_": rf"{_ALNUM}{{30,}}+",
    "cfut_": rf"{_ALNUM}{{32,}}+",  # Cloudflare
    "cfat_": rf"{_ALNUM}{{32,}}+",
    "cfk_": rf"{_ALNUM}{{32,}}+",
    "v1.0-": rf"{_HEX}{{24}}-{_HEX}{{146}}",
    "tskey-": rf"(?:auth|api|client|scim|webhook)-{_ID}{{16,}}+",  # Tailscale
    "AKC": r"[A-Za-z0-9]{60,}+",  # Artifactory
    "cmVmd": rf"{_ALNUM}{{55,}}+",
    "waka_": _UUID,
    "CCIPAT_": rf"{_ALNUM}{{10,}}_{_HEX}{{40}}",  # CircleCI
    "bkua_": rf"{_HEX}{{40}}",  # Buildkite
    "bkct_": rf"{_ALNUM}{{20,}}+",
    "squ_": rf"{_HEX}{{40}}",  # SonarQube
    "sqp_": rf"{_HEX}{{40}}",
    "sqa_": rf"{_HEX}{{40}}",
    "sm_": rf"(?:pat|eu_pat|us_pat)_{_ID}{{40,}}+",
    "sdk-": _UUID,  # LaunchDarkly
    "api-": _UUID,
    "mob-": _UUID,
    "pnu_": rf"{_ALNUM}{{36}}",  # Prefect
    "SK": rf"{_HEX}{{32}}(?!{_ALNUM})",  # Twilio
    "AC": rf"{_HEX}{{32}}[^A-Za-z0-9\n]{{1,12}}{_HEX}{{32}}(?!{_ALNUM})",  # an account and, beside it, its token
    **dict.fromkeys(("xprv", "yprv", "zprv", "tprv"), rf"{_ALNUM}{{100,}}+"),  # wallets
    **dict.fromkeys(("5H", "5J", "5K"), r"[1-9A-HJ-NP-Za-km-z]{49}(?![A-Za-z0-9])"),
    # Key files and service accounts in base64.
    "b3BlbnNzaC1rZXktdjE": r"[A-Za-z0-9+/=]{20,}+",
    "LS0tLS1CRUdJTi": r"B(?:SU0EgUFJJ|QUklWQVRF|FQyBQUkl|PUEVOU1NI|FTkNSWVBU|EU0EgUFJJ|QR1AgUFJJ)[A-Za-z0-9+/=]{20,}+",
    "eyJ0eXBlIjo": r"(?:gInNlcnZpY2Vf|ic2VydmljZV9)[A-Za-z0-9+/=]{20,}+",
    "ewogICJ0eXBlIjogInNlcnZpY2Vf": r"[A-Za-z0-9+/=]{20,}+",
    "rzp_": rf"(?:live|test)_{_ALNUM}{{14,}}+",  # Razorpay
    **dict.fromkeys(("prod:", "dev:", "preview:"), rf"[a-z]{{2,20}}-[a-z]{{2,20}}-\d{{1,6}}\|{_ID}{{40,}}+"),  # Convex
    "unkey_": rf"{_ALNUM}{{20,}}+",
    "vtwn_": rf"{_ALNUM}{{24,}}+",  # Val Town
    **dict.fromkeys(("ak-", "as-"), rf"(?=[A-Za-z]{{0,20}}\d){_ALNUM}{{22}}(?![A-Za-z0-9_-])"),  # Modal
    "key_": rf"{_HEX}{{64}}(?!{_ALNUM})",  # Cursor
    "chpt_": rf"{_HEX}{{12,}}+",  # Chromatic
    "tgp_v1_": rf"{_ID}{{30,}}+",  # Together
    "CLOJARS_": r"[a-z0-9]{40,}+",
    "napi_": r"[a-z0-9]{40,}+",  # Neon
    "hca": r"[a-z]k_[a-z0-9]{40,}+",  # Honeycomb
    "dt0": r"[a-z]\d\d\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}(?![A-Za-z0-9])",  # Dynatrace
    "pk_": rf"\d{{5,12}}_[A-Z0-9]{{32}}(?!{_ALNUM})",  # ClickUp
    "dG9rO": r"[A-Za-z0-9+/]{40,}={0,2}",  # Intercom: "tok:" in base64
    "st.": rf"{_HEX}{{24}}\.{_HEX}{{32}}\.{_HEX}{{32}}(?!{_ALNUM})",  # Infisical
    "snyk_": rf"(?:uat|sat|pat)\.{_HEX}{{8}}\.[A-Za-z0-9_.-]{{40,}}+",
    "sk.eyJ": rf"{_ID}{{40,}}\.{_ID}{{20,}}+",  # Mapbox
    "AAAAAAAAAAAAAAAAAAAAA": r"[A-Za-z0-9%]{60,}+",  # Twitter
    "xaat-": _UUID,  # Axiom
    "pylf_v1_": rf"[a-z]{{2}}_{_ALNUM}{{30,}}+",  # Logfire
    "signkey-": rf"(?:prod|test|branch)-{_HEX}{{32,}}+",  # Inngest
    **dict.fromkeys(("access-sandbox-", "access-development-", "access-production-"), _UUID),  # Plaid
    "AQE": r"[A-Za-z0-9+/]{80,}={0,2}-[A-Za-z0-9+/]{30,}={0,2}-\S{16,}",  # Adyen
    "rdme_xn8s9h": rf"{_ALNUM}{{40,}}+",  # ReadMe
    "AVNS_": rf"{_ID}{{15,}}+",  # Aiven
    "CCDB1_": rf"{_ID}{{50,}}+",  # CockroachDB
    "y0_": rf"{_ID}{{50,}}+",  # Yandex
    "vercel_blob_rw_": rf"{_ALNUM}{{12,}}_{_ALNUM}{{24,}}+",
}
# What begins like a key and is none: names of code, paths.
_PATH_PART = r"(?:[A-Z]?[a-z]{1,40}\d{0,3}|[A-Z]{1,40})"
_SHORT_WORDS = "By|Id|To|Of|On|In|Is|At|Or|As|Up|Db"
_SPOKEN_WORD = rf"(?:[A-Z](?=[a-z]{{0,20}}[aeiouy])[a-z]{{2,}}+|{_SHORT_WORDS})"
_LOOKS_LIKE = {
    "s.": lazy_regex(
        rf"s\.(?:(?:[a-z]{{3,}}+)?(?:[A-Z][a-z]{{2,}}+|{_SHORT_WORDS}){{1,12}}+|[A-Za-z]{{25,26}}"
        # Runs of capitals between words: `s.clientTLSCertificatePath`. So few drawn keys read so that none is lost.
        rf"|(?:is|[a-z]{{3,}}+)?{_SPOKEN_WORD}{{0,8}}(?:[A-Z]{{2,6}}{_SPOKEN_WORD}{{1,8}}){{0,2}}(?:[A-Z]{{1,6}}|IPv[46])?)"
    ),
    "xox": lazy_regex(rf"xox[a-z](?:\.xox[a-z])?-{_PATH_PART}(?:[-_./]{_PATH_PART}){{0,40}}"),
}
# What stands in the middle or at the end of a key and nowhere else, what comes before it and after it.
_MIDDLES: dict[str, tuple[str, str]] = {
    ":AA": (r"\d{8,12}", rf"{_ID}{{30,40}}(?!{_ALNUM})"),  # Telegram
    "-us": (rf"{_HEX}{{32}}", r"\d{1,2}(?!\w)"),  # Mailchimp
    ".atlasv1.": (rf"{_ALNUM}{{14}}", rf"{_ID}{{50,}}+"),  # Terraform
    **{
        f"{digit}Q~": (r"[A-Za-z0-9_~.-]{3}", r"[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])") for digit in range(10)
    },  # Entra
    "AzCa": (r"[A-Za-z0-9+/-]{42,60}", r"[A-Za-z0-9+/=-]{4,30}"),  # Azure's own check letters
    "AzSe": (r"[A-Za-z0-9+/-]{42,60}", r"[A-Za-z0-9+/=-]{4,30}"),
    "+AMC": (r"[A-Za-z0-9+/]{70,80}", r"[A-Za-z0-9+/=]{4,10}"),
    "+ASt": (r"[A-Za-z0-9+/]{70,80}", r"[A-Za-z0-9+/=]{4,10}"),
    "AZDO": (r"[a-z0-9]{52}|[A-Za-z0-9]{76}", rf"{_ALNUM}{{4,24}}(?!{_ALNUM})"),
    "NRAL": (rf"{_HEX}{{36}}", rf"(?!{_ALNUM})"),  # New Relic
    "JQQJ99": (rf"{_ALNUM}{{40,54}}", rf"{_ALNUM}{{24,40}}"),
    "T3BlbkFJ": (rf"sk-{_ID}{{20,100}}", rf"{_ID}{{20,100}}"),  # OpenAI, old
}
_LONGEST_HEAD = 104
_DISCORD_STARTS = ("MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT")
_WEB_TOKEN = r"[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+){1,3}"
_DISCORD = r"[A-Za-z0-9]{16,26}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,40}(?!\w)"
_START_PATTERNS = {
    word: rf"(?<![A-Za-z0-9{'' if len(word) > 3 and word[-1] in '_-' else '_'}]){re.escape(word)}{rest}"
    for word, rest in (*_STARTS.items(), ("eyJ", _WEB_TOKEN), *dict.fromkeys(_DISCORD_STARTS, _DISCORD).items())
}
"""As texts: a program meets few of these vendors, and each pattern is compiled when its word is first met."""
_MIDDLE_PATTERNS = {
    word: (lazy_regex(rf"(?:{before})$"), lazy_regex(re.escape(word) + after))
    for word, (before, after) in _MIDDLES.items()
}
VENDOR_WORDS = {**_START_PATTERNS, **{word: re.escape(word) + after for word, (_, after) in _MIDDLES.items()}}
"""What a vendor's key begins with or holds, and the pattern that matches from there."""


@cache
def _start_pattern(word: str) -> re.Pattern[str]:
    return re.compile(_START_PATTERNS[word])


def vendor_spans(text: str, words: set[str]) -> Iterator[SecretSpan]:
    """Keys of known formats, wherever they stand. `words` are those that stand in the text, perhaps in other case."""
    yield from formed_key_spans(text)
    for word in VENDOR_WORDS.keys() & words:
        if word in _START_PATTERNS:
            other = _LOOKS_LIKE.get(word)
            for match in matches(_start_pattern(word), text, word, text):
                if is_drawn(match[0][len(word) :]) and (other is None or other.fullmatch(match[0]) is None):
                    yield SecretSpan(*match.span(), "vendor_key")
        else:
            before, after = _MIDDLE_PATTERNS[word]
            for match in matches(after, text, word, text):
                head = before.search(text, max(0, match.start() - _LONGEST_HEAD), match.start())
                if head is not None:
                    yield SecretSpan(head.start(), match.end(), "vendor_key")
