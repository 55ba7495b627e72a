"""Keys of vendors are masked whatever is drawn, and public ids that are formed like them stay."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable

import pytest

from leporello.redact import PLACEHOLDER, redact

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
DRAWS = 2_000


def _drawn(source: random.Random, length: int, alphabet: str = ALNUM) -> str:
    return "".join(source.choices(alphabet, k=length))


def _escaped(source: random.Random) -> str:
    """Base64 as an address writes it."""
    return _drawn(source, 100, ALNUM + "+/").replace("+", "%2B").replace("/", "%2F") + "%3D"


KEYS: dict[str, Callable[[random.Random], str]] = {
    "Vault": lambda source: "s" + "." + _drawn(source, 24),
    "Vault, newer": lambda source: "hvs" + "." + _drawn(source, 95, ALNUM + "_-"),
    "Slack bot": lambda source: (
        f"xo{'xb'}-{_drawn(source, 12, string.digits)}-{_drawn(source, 13, string.digits)}-{_drawn(source, 24)}"
    ),
    "Slack user": lambda source: f"xo{'xp'}-{_drawn(source, 12, string.digits)}-{_drawn(source, 32, HEX)}",
    "Slack cookie": lambda source: f"xo{'xd'}-{_escaped(source)}",
    "Slack cookie, as it is": lambda source: f"xo{'xd'}-{_drawn(source, 100, ALNUM + '+/')}",
    "Slack cookie, short": lambda source: f"xo{'xd'}-{_drawn(source, 24, ALNUM + '%')}",
    "Slack refresh": lambda source: f"xo{'xe'}-1-{_drawn(source, 140)}",
    "Slack rotated": lambda source: f"xo{'xe'}.xo{'xp'}-1-{_drawn(source, 150)}",
    "GitHub": lambda source: "gh" + "p_" + _drawn(source, 36),
    "GitLab": lambda source: "glp" + "at-" + _drawn(source, 20, ALNUM + "_-"),
    "OpenAI": lambda source: "sk" + "-proj-" + _drawn(source, 48),
    "Stripe": lambda source: "sk" + "_live_" + _drawn(source, 24),
    "npm": lambda source: "np" + "m_" + _drawn(source, 36),
    "Google": lambda source: "AI" + "za" + _drawn(source, 35, ALNUM + "_-"),
}


@pytest.mark.parametrize("vendor", KEYS)
def test_every_key_that_is_drawn_goes(vendor: str) -> None:
    """None is let pass for the letters it happens to have."""
    source = random.Random(vendor)
    keys = [KEYS[vendor](source) for _ in range(DRAWS)]
    assert [key for key in keys if redact(f"use {key} there") != f"use {PLACEHOLDER} there"] == []


@pytest.mark.parametrize(
    "text",
    [
        "s.handleAuthenticationFlowNow",
        "s.handleAuthenticationState = true",
        "s.makeKubeConfigController = args",
        "s.AcceptanceTimeoutSeconds",
        "s.findUserByIdAndTenantName",
        "https://github.com/xo" + "xa-nyc/xo" + "xa-nyc.github.io/blob/main/README.md",
        "xo" + "xb-rotation-policy/docs/Guide2.md",
        "s.clientTLSCertificatePath = p",
        "s.createdAtInUTCWithTZInfo",
        "s.allowUserIDInQueryString",
        "s.isAWSLambdaEnabledForVPC = true",
        "s.webhookURLForProductionA",
        "s.jsonRPCEndpointURLForDev",
        "s.maxConcurrentStreamsIPv6 = 5",
        "s.defaultHTTPClientTimeout = 30",
    ],
)
def test_names_and_paths_that_begin_like_keys_stay(text: str) -> None:
    """Words of code in CamelCase, and the parts of a path."""
    assert redact(text) == text


# <n> stands for so many letters and digits.
IDS = """
prj_<28> dpl_<28> team_<24> icfg_<28> hook_<28> deployment_<30> dep-<30> srv-<36> env_<32> vol_<32> inst_<36>
run_<30> workflow_<32> wf_<36> exec_<32> execution_<40> build_<36> job_<36> req_<36> request-<40> trace_<36> inv_<32>
cur_<32> cursor-<44> page_<40> after_<44> continuation_<60>
"next_cursor":"abc_<40>" "endCursor":"xyz-<44>" ?cursor=abc_<40>&limit=20 cursor:'xy_<40>'
gclid=Cj0KCQjw-<40> ?gclid=<30>_<40> gclid=ads_<40> fbclid=IwAR<10>-<40> wbraid=<20>-<30>
css-1a2b3c4 css-<7> class="css-<36>" className="abc-<40>" sc-<36> jss-<40> svelte-<36> mui-<36>
turbo-<30> turbo-cable-stream-<36> id="turbo-frame-<36>" data-turbo-id="turbo-<36>" radix-<36>
etag-<36> etag:W/"ab-<36>" "etag":"abc-<40>" ETag:"ab-<40>"
integrity=sha384-<64> sha512-<86> "integrity":"abc-<64>" checksum-<44>
"deploymentId":"abc_<36>" project_id="abc_<36>" "teamId":"abc_<36>" build-id:abc-<40> runId=abc_<40>
"requestId":"abc_<40>" x-request-id:abc_<40> "traceId":"abc_<36>" x-correlation-id:abc_<40>
app-<40>.css vendor-<40>.js main_<36>.woff2 logo-<40>.png lazy-<40>.mjs
pi_<36> seti_<36> sub_<36> cs_live_<58> si_<36> plink_<36> file-<36> vs_<36> rs_<50> thread_<36>
feature-<36> tmp-<36> lambda-prod-<24> bucket-dev-<28> test-<22>
page_token_<32> next_token_<32> hash_key_<32> cache_key_<32> publishable_key_<32> idempotency_key_<32>
"userId":"abc_<36>" sessionID=abc_<36> client_id:abc_<36>
""".split()
# The name's own last word, or whose it is, tells of a key.
OWN = """
client_secret_<32> app_token_<32> account_token_<32> env_key_<32> order_token_<32> device_token_<32> message_key_<32>
function_key_<32> vs_key_<32> widget_secret_<40> client-secret-<36> user_pat_<32> webhook_api_key_<32> file_token2_<32>
account_live_<24> app_prod_<28> payment_live_<24> device_prod_<24>
device_password_<32> client_jwt_<32> service_access_<32> channel_auth_<32>
account:acme_<40> user:foo_<40> client="foo_<40>" app:foo_<40> env:foo_<40> state:depot_<40> config_id=foo_<40>
after:acme_<40> session:acme_<40> message:acme_<40> component:foo_<40> id_:foo_<40> ID-=foo_<40>
""".split()


@pytest.mark.parametrize("shape", OWN)
def test_a_key_goes_whoever_it_belongs_to(shape: str) -> None:
    """`client_secret_…` is no id of a client, and `account: …` says whose key follows."""
    source = random.Random(shape)
    for _ in range(20):
        key = next(_drawn(source, int(length)) for length in re.findall("<(.+?)>", shape))
        if sum(map(str.isdigit, key)) > 1:
            assert key not in redact(f"saw {re.sub('<.+?>', key, shape)} here")


@pytest.mark.parametrize("shape", IDS)
def test_public_ids_stay(shape: str) -> None:
    """Of cursors, clicks, styles, deployments, requests and their like: nobody opens anything with them."""
    source = random.Random(shape)
    for _ in range(20):
        text = f"saw {re.sub('<(.+?)>', lambda slot: _drawn(source, int(slot[1])), shape)} here"
        assert redact(text) == text
