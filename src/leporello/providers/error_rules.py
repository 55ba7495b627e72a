"""The table by which error bodies are judged. Every line names the sample body that it was made for, by id.

Three kinds of evidence, in this order: codes a machine wrote, sentences with numbers, sentences without. A body that
matches nothing is left to its HTTP status.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class ErrorKind(StrEnum):
    INPUT_OVERFLOW = "input_overflow"
    OUTPUT_CAP = "output_cap"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    RATE_LIMIT = "rate_limit"
    AUTH = "auth"
    QUOTA = "quota"
    TRANSIENT = "transient"
    CONTENT_POLICY = "content_policy"
    MALFORMED = "malformed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Phrase:
    """A sentence, the kind it proves, and the body it was read from. `cause` is a finer word for the caller."""

    kind: ErrorKind
    sample: str
    pattern: re.Pattern[str]
    cause: str = ""


@dataclass(frozen=True, slots=True)
class SizePattern:
    """A sentence that states token counts: groups `limit`, `input`, `output` (asked for), `cap` (largest allowed).

    `limit` is the window, or the largest input where a provider limits that; `cap` only ever limits the answer;
    `least` is an input that the server did not count to its end.
    """

    sample: str
    pattern: re.Pattern[str]


_NUMBER = re.compile(r"<(limit|input|least|output|cap|total|count)>")


def _re(pattern: str) -> re.Pattern[str]:
    """A pattern in which `<limit>` and the like stand for numbers."""
    return re.compile(_NUMBER.sub(r"(?P<\1>\\d[\\d,]{0,29})", pattern), re.IGNORECASE | re.DOTALL)


def _phrases(*rows: tuple[ErrorKind, str, str, *tuple[str, ...]]) -> tuple[Phrase, ...]:
    return tuple(Phrase(kind, sample, _re(pattern), *cause) for kind, sample, pattern, *cause in rows)


def _sizes(*rows: tuple[str, str]) -> tuple[SizePattern, ...]:
    return tuple(SizePattern(sample, _re(pattern)) for sample, pattern in rows)


CODES: dict[str, tuple[ErrorKind, str]] = {
    "context_length_exceeded": (ErrorKind.INPUT_OVERFLOW, "openai-context-length"),
    "exceed_context_size_error": (ErrorKind.INPUT_OVERFLOW, "llamacpp-exceed-500"),
    "model_max_prompt_tokens_exceeded": (ErrorKind.INPUT_OVERFLOW, "copilot-prompt-token-count-code"),
    "tokens_limit_reached": (ErrorKind.INPUT_OVERFLOW, "github-models-body-too-large"),
    "request_too_large": (ErrorKind.PAYLOAD_TOO_LARGE, "anthropic-413-bytes"),
    "rate_limit_error": (ErrorKind.RATE_LIMIT, "anthropic-rate-limit"),
    "rate_limit_exceeded": (ErrorKind.RATE_LIMIT, "openai-tpm-too-large"),
    "resource_exhausted": (ErrorKind.RATE_LIMIT, "gemini-openai-429"),
    "ratelimitexceeded": (ErrorKind.RATE_LIMIT, "vertex-429"),
    "insufficient_quota": (ErrorKind.QUOTA, "openai-quota"),
    "invalid_api_key": (ErrorKind.AUTH, "openai-bad-key"),
    "authentication_error": (ErrorKind.AUTH, "anthropic-bad-key"),
    "content_filter": (ErrorKind.CONTENT_POLICY, "azure-content-filter"),
    "responsibleaipolicyviolation": (ErrorKind.CONTENT_POLICY, "litellm-azure-content-filter"),
    "invalid_prompt": (ErrorKind.CONTENT_POLICY, "openai-invalid-prompt"),
    "overloaded_error": (ErrorKind.TRANSIENT, "anthropic-overloaded"),
    "unavailable": (ErrorKind.TRANSIENT, "gemini-overloaded"),
    "server_error": (ErrorKind.TRANSIENT, "openai-server-error"),
}
"""Codes of the vendors' own error catalogues that no body above shows, by the same rule."""
CATALOGUE: dict[str, ErrorKind] = {
    "billing_error": ErrorKind.QUOTA,
    "enforced_spend_limit_reached": ErrorKind.QUOTA,
    "permission_error": ErrorKind.AUTH,
    "permission_denied": ErrorKind.AUTH,
    "unauthenticated": ErrorKind.AUTH,
    "api_error": ErrorKind.TRANSIENT,
    "timeout_error": ErrorKind.TRANSIENT,
    "deadline_exceeded": ErrorKind.TRANSIENT,
    "image_content_policy_violation": ErrorKind.CONTENT_POLICY,
    "content_policy_violation": ErrorKind.CONTENT_POLICY,
    "bio_policy": ErrorKind.CONTENT_POLICY,
    "misalignment_policy_violation": ErrorKind.CONTENT_POLICY,
    "request_body_too_large_after_decoding": ErrorKind.PAYLOAD_TOO_LARGE,
}

OVERRIDES = _phrases(
    # These sentences correct the code that comes with them.
    (ErrorKind.PAYLOAD_TOO_LARGE, "openai-tpm-too-large", r"request too large for .{0,200}tokens per min"),
    (ErrorKind.PAYLOAD_TOO_LARGE, "openai-string-too-long", r"'(?:messages|input)\b[^']*': string too long"),
    (ErrorKind.PAYLOAD_TOO_LARGE, "openai-array-too-long", r"'(?:messages|input)': array too long"),
    (ErrorKind.TRANSIENT, "omlx-memory-guard", r"prefill memory guard|prefill_memory_exceeded", "memory"),
)

OUTPUT_CAPS = _sizes(
    ("anthropic-max-output", r"max_tokens: <output> > <cap>, which is the maximum allowed number of output"),
    ("openai-max-tokens-too-large", r"supports at most <cap> completion tokens"),
    ("deepseek-max-tokens", r"range of max_tokens (?:is|should be) \[\d+, ?<cap>\]"),
    ("volcengine-max-tokens", r"max_tokens\b.{0,120}expected a value <= <cap>"),
    ("bedrock-max-tokens", r"maximum tokens you requested exceeds? the model limit of <cap>"),
    ("groq-max-tokens", r"max_tokens`? must be less than or equal to `?<cap>"),
    ("litellm-server-limit", r"max_tokens exceeds server limit \(<cap>\)"),
    ("tgi-max-new-tokens", r"error: `max_new_tokens` must be <= <cap>"),
)

SUMS = _sizes(
    # Input and output together: whether it is an overflow depends on the input alone.
    ("anthropic-sum-output", r"exceed context limit: <input> \+ <output> > <limit>"),
    (
        "vllm-at-least",
        r"maximum context length is <limit> tokens.{0,40}requested <output> output tokens and "
        r"your prompt contains at least <least> input tokens",
    ),
    (
        "vllm-max-completion-too-large",
        r"too large: <output>\. This model's maximum context length is <limit> tokens and your "
        r"request has <input> input tokens",
    ),
    (
        "sglang-sum-output",
        r"maximum context length of <limit> tokens.{0,80}: <input> tokens from the input "
        r"messages and <output> tokens for the completion",
    ),
    ("tgi-sum-output", r"must be <= <limit>\. Given: <input> `inputs` tokens and <output> `max_new"),
    (
        "vllm-passed-input",
        r"passed <input> input tokens and requested <output> output tokens.{0,80}context length is only <limit>",
    ),
)

BREAKDOWN = _re(
    r"maximum context length is <limit> tokens[.,] however,? (?:you requested|your messages resulted in) "
    r"(?:about )?<total> tokens \((?P<parts>[^)]{0,400})\)"
)
"""`... you requested 8256 tokens (64 in the messages, 8192 in the completion)`; sample `openai-sum-output`."""
BREAKDOWN_PART = _re(r"<count> (?:in|of|for) (?:the |your )?(?P<what>[a-z ]+)")
OUTPUT_WORDS = ("completion", "output")

INPUTS = _sizes(
    ("anthropic-prompt-too-long", r"prompt is too long: <input> tokens > <limit> maximum"),
    ("openai-context-length", r"maximum context length is <limit> tokens.{0,60}resulted in <input> tokens"),
    ("openai-configured-limit", r"configured limit of <limit> tokens.{0,60}resulted in <input> tokens"),
    (
        "gemini-input-token-count",
        r"input token count \(<input>\) exceeds the maximum number of tokens allowed \(<limit>\)",
    ),
    ("gemini-input-token-count-bare", r"input token count exceeds the maximum number of tokens allowed \(<limit>\)"),
    ("siliconflow-max-prompt-tokens", r"input tokens \(<input>\) has exceeded max_prompt_tokens \(<limit>\)"),
    ("xai-prompt-length", r"maximum prompt length is <limit> but the request contains <input> tokens"),
    ("copilot-prompt-token-count", r"prompt token count of <input> exceeds the limit of <limit>"),
    ("github-models-body-too-large", r"request body too large for .{1,80} max size: <limit> tokens"),
    ("vllm-decoder-prompt-500", r"\(length <input>\) is longer than the maximum model length of <limit>"),
    ("llamacpp-exceed-measured", r"request \(<input> tokens\) exceeds the available context size \(<limit> tokens\)"),
    ("llamacpp-python-requested", r"requested tokens \(<input>\) exceed context window of <limit>"),
    ("lmstudio-keep-first", r"keep the first <input> tokens .{0,90}context length of only <limit> tokens"),
    ("omlx-prompt-too-long", r"<input> tokens exceeds max context window of <limit>"),
    ("mistral-too-large", r"prompt contains <input> tokens.{0,60}too large for model with <limit> maximum context"),
    ("kimi-token-limit", r"exceeded model token limit: <limit> \(requested: <input>\)"),
    ("cerebras-while-limit", r"current length is <input> while limit is <limit>"),
    ("fireworks-model-maximum", r"prompt is too long: <input>, model maximum context length: <limit>"),
    ("sglang-longer", r"input \(<input> tokens\) is longer than the model's context length \(<limit>"),
    (
        "variant-input-exceeds-length",
        r"(?:input|prompt|messages) \(<input> tokens\) exceeds? (?:the )?(?:model's )?(?:maximum |max )?"
        r"context (?:length|window|size)(?: of| is|:)? \(?<limit>",
    ),
    # Only the window, and no word about the answer: what asks for too large an answer says so.
    (
        "variant-maximum-context-length",
        r"^(?!.*(?:max_\w{0,40}tokens|output|completion)).*maximum context length is <limit> tokens",
    ),
)

PHRASES = _phrases(
    (ErrorKind.QUOTA, "anthropic-credit", r"credit balance is too low"),
    (ErrorKind.QUOTA, "openai-quota-no-code", r"exceeded your current quota"),
    (ErrorKind.QUOTA, "deepseek-balance", r"insufficient balance"),
    (ErrorKind.QUOTA, "openrouter-credits", r"requires more credits"),
    (ErrorKind.QUOTA, "openrouter-key-limit", r"create a key with a higher"),
    (ErrorKind.RATE_LIMIT, "bedrock-throttling", r"throttlingexception"),
    (ErrorKind.RATE_LIMIT, "openai-rate-limit-ms", r"rate[- ]limit(?:ed)? (?:reached|of|upstream|for)"),
    (ErrorKind.CONTENT_POLICY, "anthropic-content-filter", r"blocked by content filtering policy"),
    (ErrorKind.CONTENT_POLICY, "azure-content-filter-plain", r"content management policy"),
    (ErrorKind.CONTENT_POLICY, "openai-invalid-prompt", r"violating our usage policy"),
    (ErrorKind.MALFORMED, "anthropic-signature", r"invalid `signature` in `thinking`", "stale_thinking"),
    (
        ErrorKind.MALFORMED,
        "openai-reasoning-item",
        r"'reasoning' was provided without its required following item|without its required 'reasoning' item",
        "stale_thinking",
    ),
    (ErrorKind.MALFORMED, "anthropic-thinking-expected", r"expected `thinking` or `redacted", "missing_thinking"),
    (
        ErrorKind.MALFORMED,
        "anthropic-compatible-thinking-back",
        r"in the thinking mode must be passed back",
        "missing_thinking",
    ),
    (ErrorKind.MALFORMED, "gemini-thought-signature", r"missing a thought_signature", "missing_thinking"),
    (ErrorKind.MALFORMED, "openai-max-tokens-unsupported", r"unsupported parameter"),
    (ErrorKind.PAYLOAD_TOO_LARGE, "qwen-string-length", r"string value length \(\d+\) exceeds"),
    (ErrorKind.PAYLOAD_TOO_LARGE, "bedrock-max-length", r"expected maxlength: \d+, actual: \d+"),
    (ErrorKind.MALFORMED, "bedrock-not-less-or-equal", r"malformed input request"),
    (ErrorKind.PAYLOAD_TOO_LARGE, "openresty-413-buffer", r"buffer the request body: length limit"),
    (ErrorKind.INPUT_OVERFLOW, "anthropic-413-window", r"exceeds (?:the context window|model context window)"),
    (ErrorKind.INPUT_OVERFLOW, "bedrock-input-too-long", r"input is too long for requested model"),
    (ErrorKind.INPUT_OVERFLOW, "lmstudio-exceeded", r"context size has been exceeded"),
    (ErrorKind.INPUT_OVERFLOW, "minimax-window-exceeds", r"context window exceeds limit"),
    (ErrorKind.INPUT_OVERFLOW, "lmstudio-keep-greater", r"greater than the context length"),
    # The answer's limit is judged before the vaguer sentences: it may be the reason for them.
    (
        ErrorKind.OUTPUT_CAP,
        "variant-max-tokens-too-large",
        r"max_(?:completion_|output_|new_)?tokens\b[^.\n]{0,40}?(?:too (?:large|high|big)|exceeds?\b)",
    ),
    (ErrorKind.INPUT_OVERFLOW, "variant-prompt-too-long", r"(?<!system )\bprompt (?:is |was )?too long"),
    # Not behind the name of a parameter: a name or a label that is too long is no overflow.
    (
        ErrorKind.INPUT_OVERFLOW,
        "variant-input-too-long",
        r"""(?:^|\n|[.!-] |["']|(?:errors?|exception): )(?:the |your )?input (?:is |was )?too long""",
    ),
    (
        ErrorKind.INPUT_OVERFLOW,
        "variant-context-length-exceeded",
        r"context (?:length|window|size) (?:limit )?(?:is |was |has been )?exceeded",
    ),
    (ErrorKind.INPUT_OVERFLOW, "variant-reduce", r"reduce the length of (?:the|your) (?:messages|prompt|input)"),
)

STATUSES: dict[int, ErrorKind] = {
    400: ErrorKind.MALFORMED,
    401: ErrorKind.AUTH,
    402: ErrorKind.QUOTA,
    403: ErrorKind.AUTH,
    404: ErrorKind.MALFORMED,
    405: ErrorKind.MALFORMED,
    408: ErrorKind.TRANSIENT,
    409: ErrorKind.TRANSIENT,
    413: ErrorKind.PAYLOAD_TOO_LARGE,
    415: ErrorKind.MALFORMED,
    422: ErrorKind.MALFORMED,
    425: ErrorKind.TRANSIENT,
    429: ErrorKind.RATE_LIMIT,
}
"""What a status means when the body proves nothing. 5xx is transient."""
