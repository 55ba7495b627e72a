"""Makes secrets of every usual shape at run time, so that none stands in the repository."""

from __future__ import annotations

import base64
import json
import random
import string

DIGITS = string.digits
HEX = "0123456789abcdef"
ALNUM = string.ascii_letters + DIGITS
UPPER = string.ascii_uppercase + "234567"
BASE64 = ALNUM + "+/"


def rand(length: int, alphabet: str = ALNUM, seed: int = 7) -> str:
    """Random characters, the same in every run; a digit and both cases are among them when the alphabet allows."""
    source = random.Random(f"{length}{alphabet}{seed}")
    text = [source.choice(alphabet) for _ in range(length)]
    for place, wanted in enumerate((DIGITS, string.ascii_lowercase, string.ascii_uppercase)):
        usable = [character for character in wanted if character in alphabet]
        if usable and length > 6:
            text[2 + place] = source.choice(usable)
    return "".join(text)


def web_token() -> str:
    """A signed JSON web token."""

    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part({'sub': '1234567890', 'name': 'Ada'})}.{rand(43)}"


def key_body(lines: int = 8) -> str:
    """The lines of a private key."""
    return "\n".join(rand(64, BASE64, seed) for seed in range(lines))


def vendor_keys() -> dict[str, str]:
    """One key of each vendor."""
    return {
        "aws key id": "AKIA" + rand(16, UPPER),
        "aws temporary key id": "ASIA" + rand(16, UPPER),
        "google api": "AI" + "za" + rand(35),
        "google oauth access": "ya29." + rand(60),
        "google client secret": "GOC" + "SPX-" + rand(28),
        "openai old": "sk-" + rand(20) + "T3Blbk" + "FJ" + rand(20, seed=9),
        "openai project": "sk-" + "proj-" + rand(48),
        "openai service account": "sk-" + "svcacct-" + rand(60),
        "anthropic": "sk-" + "ant-api03-" + rand(93) + "AA",
        "openrouter": "sk-" + "or-v1-" + rand(64, HEX),
        "groq": "gsk_" + rand(52),
        "xai": "xai-" + rand(80),
        "perplexity": "pplx-" + rand(48),
        "replicate": "r8_" + rand(37),
        "hugging face": "hf_" + rand(34),
        "github classic": "ghp_" + rand(36),
        "github oauth": "gho_" + rand(36),
        "github app": "ghs_" + rand(36),
        "github fine-grained": "github_" + "pat_" + rand(22) + "_" + rand(59),
        "gitlab": "glpat-" + rand(20),
        "slack bot": "xoxb-" + rand(12, DIGITS) + "-" + rand(12, DIGITS) + "-" + rand(24),
        "slack app": "xapp-1-A" + rand(10, UPPER) + "-" + rand(13, DIGITS) + "-" + rand(64, HEX),
        "telegram": rand(10, "123456789") + ":AA" + rand(33),
        "sendgrid": "SG." + rand(22) + "." + rand(43),
        "mailgun": "key-" + rand(32, HEX),
        "mailchimp": rand(32, HEX) + "-us12",
        "npm": "npm_" + rand(36),
        "pypi": "pypi-" + "AgEIcHlwaS5vcmc" + rand(70),
        "stripe live": "sk_" + "live_" + rand(24),
        "stripe restricted": "rk_" + "live_" + rand(24),
        "stripe webhook": "whsec_" + rand(32),
        "digitalocean": "dop_v1_" + rand(64, HEX),
        "databricks": "dapi" + rand(32, HEX),
        "shopify": "shpat_" + rand(32, HEX),
        "square": "sq0atp-" + rand(22),
        "vault": "hvs." + rand(95),
        "docker hub": "dckr_pat_" + rand(27),
        "atlassian": "ATATT3xFfGF0" + rand(180),
        "linear": "lin_api_" + rand(40),
        "notion": "ntn_" + rand(46),
        "figma": "figd_" + rand(40),
        "airtable": "pat" + rand(14) + "." + rand(64, HEX),
        "discord bot": base64.b64encode(rand(18, DIGITS).encode()).decode() + "." + rand(6) + "." + rand(27),
        "sentry org": "sntrys_" + rand(100),
        "postman": "PMAK-" + rand(24, HEX) + "-" + rand(34, HEX),
        "doppler": "dp.pt." + rand(43),
        "age": "AGE-SECRET-KEY-1" + rand(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"),
        "grafana": "glsa_" + rand(32) + "_" + rand(8, HEX),
        "new relic": "NRAK-" + rand(27, UPPER),
        "planetscale": "pscale_tkn_" + rand(43),
        "supabase": "sb_" + "secret_" + rand(31),
        "pulumi": "pul-" + rand(40, HEX),
        "terraform cloud": rand(14) + ".atlasv1." + rand(67),
        "rubygems": "rubygems_" + rand(48, HEX),
        "heroku": "HRKU-" + rand(60),
        "netlify": "nfp_" + rand(40),
        "web token": web_token(),
    }
