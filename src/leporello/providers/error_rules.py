"""The table by which error bodies are judged. Every line names the sample body that it was made for, by id.

Three kinds of evidence, in this order: codes a machine wrote, sentences with numbers, sentences without. A body that
matches nothing is left to its HTTP status.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class ErrorKind(StrEnum):
    """What an error means for the next step."""

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
    pattern: re.Pattern[str]
    sample: str
    cause: str = ""


@dataclass(frozen=True, slots=True)
class SizePattern:
    """A sentence that states token counts: groups `limit`, `input`, `output` (asked for), `cap` (largest allowed).

    `limit` is the window, or the largest input where a provider limits that; `cap` only ever limits the answer.
    """

    pattern: re.Pattern[str]
    sample: str
    floor: bool = False
    """The input count is a lower bound: the server stopped counting."""


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


_N = r"\d[\d,]{0,29}"

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

OVERRIDES: tuple[Phrase, ...] = (
    # These sentences correct the code that comes with them.
    Phrase(ErrorKind.PAYLOAD_TOO_LARGE, _re(r"request too large for .{0,200}tokens per min"), "openai-tpm-too-large"),
    Phrase(ErrorKind.PAYLOAD_TOO_LARGE, _re(r"'(?:messages|input)\b[^']*': string too long"), "openai-string-too-long"),
    Phrase(ErrorKind.PAYLOAD_TOO_LARGE, _re(r"'(?:messages|input)': array too long"), "openai-array-too-long"),
    Phrase(ErrorKind.TRANSIENT, _re(r"prefill memory guard|prefill_memory_exceeded"), "omlx-memory-guard", "memory"),
)

OUTPUT_CAPS: tuple[SizePattern, ...] = (
    SizePattern(
        _re(rf"max_tokens: (?P<output>{_N}) > (?P<cap>{_N}), which is the maximum allowed number of output"),
        "anthropic-max-output",
    ),
    SizePattern(_re(rf"supports at most (?P<cap>{_N}) completion tokens"), "openai-max-tokens-too-large"),
    SizePattern(_re(rf"range of max_tokens (?:is|should be) \[\d+, ?(?P<cap>{_N})\]"), "deepseek-max-tokens"),
    SizePattern(_re(rf"max_tokens\b.{{0,120}}expected a value <= (?P<cap>{_N})"), "volcengine-max-tokens"),
    SizePattern(_re(rf"maximum tokens you requested exceeds? the model limit of (?P<cap>{_N})"), "bedrock-max-tokens"),
    SizePattern(_re(rf"max_tokens`? must be less than or equal to `?(?P<cap>{_N})"), "groq-max-tokens"),
    SizePattern(_re(rf"max_tokens exceeds server limit \((?P<cap>{_N})\)"), "litellm-server-limit"),
    SizePattern(_re(rf"error: `max_new_tokens` must be <= (?P<cap>{_N})"), "tgi-max-new-tokens"),
)

SUMS: tuple[SizePattern, ...] = (
    # Input and output together: whether it is an overflow depends on the input alone.
    SizePattern(
        _re(rf"exceed context limit: (?P<input>{_N}) \+ (?P<output>{_N}) > (?P<limit>{_N})"), "anthropic-sum-output"
    ),
    SizePattern(
        _re(
            rf"maximum context length is (?P<limit>{_N}) tokens.{{0,40}}requested (?P<output>{_N}) output tokens and "
            rf"your prompt contains at least (?P<input>{_N}) input tokens"
        ),
        "vllm-at-least",
        floor=True,
    ),
    SizePattern(
        _re(
            rf"too large: (?P<output>{_N})\. This model's maximum context length is (?P<limit>{_N}) tokens and your "
            rf"request has (?P<input>{_N}) input tokens"
        ),
        "vllm-max-completion-too-large",
    ),
    SizePattern(
        _re(
            rf"maximum context length of (?P<limit>{_N}) tokens.{{0,80}}: (?P<input>{_N}) tokens from the input "
            rf"messages and (?P<output>{_N}) tokens for the completion"
        ),
        "sglang-sum-output",
    ),
    SizePattern(
        _re(rf"must be <= (?P<limit>{_N})\. Given: (?P<input>{_N}) `inputs` tokens and (?P<output>{_N}) `max_new"),
        "tgi-sum-output",
    ),
    SizePattern(
        _re(
            rf"passed (?P<input>{_N}) input tokens and requested (?P<output>{_N}) output tokens.{{0,80}}context length "
            rf"is only (?P<limit>{_N})"
        ),
        "vllm-passed-input",
    ),
)

BREAKDOWN = _re(
    rf"maximum context length is (?P<limit>{_N}) tokens[.,] however,? (?:you requested|your messages resulted in) "
    rf"(?:about )?(?P<total>{_N}) tokens \((?P<parts>[^)]{{0,400}})\)"
)
"""`... you requested 8256 tokens (64 in the messages, 8192 in the completion)`; sample `openai-sum-output`."""
BREAKDOWN_PART = _re(rf"(?P<count>{_N}) (?:in|of|for) (?:the |your )?(?P<what>[a-z ]+)")
OUTPUT_WORDS = ("completion", "output")

INPUTS: tuple[SizePattern, ...] = (
    SizePattern(
        _re(rf"prompt is too long: (?P<input>{_N}) tokens > (?P<limit>{_N}) maximum"), "anthropic-prompt-too-long"
    ),
    SizePattern(
        _re(rf"maximum context length is (?P<limit>{_N}) tokens.{{0,60}}resulted in (?P<input>{_N}) tokens"),
        "openai-context-length",
    ),
    SizePattern(
        _re(rf"configured limit of (?P<limit>{_N}) tokens.{{0,60}}resulted in (?P<input>{_N}) tokens"),
        "openai-configured-limit",
    ),
    SizePattern(
        _re(rf"input token count \((?P<input>{_N})\) exceeds the maximum number of tokens allowed \((?P<limit>{_N})\)"),
        "gemini-input-token-count",
    ),
    SizePattern(
        _re(rf"input token count exceeds the maximum number of tokens allowed \((?P<limit>{_N})\)"),
        "gemini-input-token-count-bare",
    ),
    SizePattern(
        _re(rf"input tokens \((?P<input>{_N})\) has exceeded max_prompt_tokens \((?P<limit>{_N})\)"),
        "siliconflow-max-prompt-tokens",
    ),
    SizePattern(
        _re(rf"maximum prompt length is (?P<limit>{_N}) but the request contains (?P<input>{_N}) tokens"),
        "xai-prompt-length",
    ),
    SizePattern(
        _re(rf"prompt token count of (?P<input>{_N}) exceeds the limit of (?P<limit>{_N})"),
        "copilot-prompt-token-count",
    ),
    SizePattern(
        _re(rf"request body too large for .{{1,80}} max size: (?P<limit>{_N}) tokens"), "github-models-body-too-large"
    ),
    SizePattern(
        _re(rf"\(length (?P<input>{_N})\) is longer than the maximum model length of (?P<limit>{_N})"),
        "vllm-decoder-prompt-500",
    ),
    SizePattern(
        _re(rf"request \((?P<input>{_N}) tokens\) exceeds the available context size \((?P<limit>{_N}) tokens\)"),
        "llamacpp-exceed-measured",
    ),
    SizePattern(
        _re(rf"requested tokens \((?P<input>{_N})\) exceed context window of (?P<limit>{_N})"),
        "llamacpp-python-requested",
    ),
    SizePattern(
        _re(rf"keep the first (?P<input>{_N}) tokens .{{0,90}}context length of only (?P<limit>{_N}) tokens"),
        "lmstudio-keep-first",
    ),
    SizePattern(
        _re(rf"(?P<input>{_N}) tokens exceeds max context window of (?P<limit>{_N})"),
        "omlx-prompt-too-long",
    ),
    SizePattern(
        _re(
            rf"prompt contains (?P<input>{_N}) tokens.{{0,60}}too large for model with (?P<limit>{_N}) maximum context"
        ),
        "mistral-too-large",
    ),
    SizePattern(
        _re(rf"exceeded model token limit: (?P<limit>{_N}) \(requested: (?P<input>{_N})\)"),
        "kimi-token-limit",
    ),
    SizePattern(_re(rf"current length is (?P<input>{_N}) while limit is (?P<limit>{_N})"), "cerebras-while-limit"),
    SizePattern(
        _re(rf"prompt is too long: (?P<input>{_N}), model maximum context length: (?P<limit>{_N})"),
        "fireworks-model-maximum",
    ),
    SizePattern(
        _re(rf"input \((?P<input>{_N}) tokens\) is longer than the model's context length \((?P<limit>{_N})"),
        "sglang-longer",
    ),
    SizePattern(
        _re(
            rf"(?:input|prompt|messages) \((?P<input>{_N}) tokens\) exceeds? (?:the )?(?:model's )?(?:maximum |max )?"
            rf"context (?:length|window|size)(?: of| is|:)? \(?(?P<limit>{_N})"
        ),
        "variant-input-exceeds-length",
    ),
    # Only the window, and no word about the answer: what asks for too large an answer says so.
    SizePattern(
        _re(rf"^(?!.*(?:max_\w{{0,40}}tokens|output|completion)).*maximum context length is (?P<limit>{_N}) tokens"),
        "variant-maximum-context-length",
    ),
)

PHRASES: tuple[Phrase, ...] = (
    Phrase(ErrorKind.QUOTA, _re(r"credit balance is too low"), "anthropic-credit"),
    Phrase(ErrorKind.QUOTA, _re(r"exceeded your current quota"), "openai-quota-no-code"),
    Phrase(ErrorKind.QUOTA, _re(r"insufficient balance"), "deepseek-balance"),
    Phrase(ErrorKind.QUOTA, _re(r"requires more credits"), "openrouter-credits"),
    Phrase(ErrorKind.QUOTA, _re(r"create a key with a higher"), "openrouter-key-limit"),
    Phrase(ErrorKind.RATE_LIMIT, _re(r"throttlingexception"), "bedrock-throttling"),
    Phrase(ErrorKind.RATE_LIMIT, _re(r"rate[- ]limit(?:ed)? (?:reached|of|upstream|for)"), "openai-rate-limit-ms"),
    Phrase(ErrorKind.CONTENT_POLICY, _re(r"blocked by content filtering policy"), "anthropic-content-filter"),
    Phrase(ErrorKind.CONTENT_POLICY, _re(r"content management policy"), "azure-content-filter-plain"),
    Phrase(ErrorKind.CONTENT_POLICY, _re(r"violating our usage policy"), "openai-invalid-prompt"),
    Phrase(ErrorKind.MALFORMED, _re(r"invalid `signature` in `thinking`"), "anthropic-signature", "stale_thinking"),
    Phrase(
        ErrorKind.MALFORMED,
        _re(r"'reasoning' was provided without its required following item|without its required 'reasoning' item"),
        "openai-reasoning-item",
        "stale_thinking",
    ),
    Phrase(
        ErrorKind.MALFORMED, _re(r"expected `thinking` or `redacted"), "anthropic-thinking-expected", "missing_thinking"
    ),
    Phrase(
        ErrorKind.MALFORMED,
        _re(r"in the thinking mode must be passed back"),
        "anthropic-compatible-thinking-back",
        "missing_thinking",
    ),
    Phrase(ErrorKind.MALFORMED, _re(r"missing a thought_signature"), "gemini-thought-signature", "missing_thinking"),
    Phrase(ErrorKind.MALFORMED, _re(r"unsupported parameter"), "openai-max-tokens-unsupported"),
    Phrase(ErrorKind.PAYLOAD_TOO_LARGE, _re(r"string value length \(\d+\) exceeds"), "qwen-string-length"),
    Phrase(ErrorKind.PAYLOAD_TOO_LARGE, _re(r"expected maxlength: \d+, actual: \d+"), "bedrock-max-length"),
    Phrase(ErrorKind.MALFORMED, _re(r"malformed input request"), "bedrock-not-less-or-equal"),
    Phrase(ErrorKind.PAYLOAD_TOO_LARGE, _re(r"buffer the request body: length limit"), "openresty-413-buffer"),
    Phrase(
        ErrorKind.INPUT_OVERFLOW, _re(r"exceeds (?:the context window|model context window)"), "anthropic-413-window"
    ),
    Phrase(ErrorKind.INPUT_OVERFLOW, _re(r"input is too long for requested model"), "bedrock-input-too-long"),
    Phrase(ErrorKind.INPUT_OVERFLOW, _re(r"context size has been exceeded"), "lmstudio-exceeded"),
    Phrase(ErrorKind.INPUT_OVERFLOW, _re(r"context window exceeds limit"), "minimax-window-exceeds"),
    Phrase(ErrorKind.INPUT_OVERFLOW, _re(r"greater than the context length"), "lmstudio-keep-greater"),
    # The answer's limit is judged before the vaguer sentences: it may be the reason for them.
    Phrase(
        ErrorKind.OUTPUT_CAP,
        _re(r"max_(?:completion_|output_|new_)?tokens\b[^.\n]{0,40}?(?:too (?:large|high|big)|exceeds?\b)"),
        "variant-max-tokens-too-large",
    ),
    Phrase(ErrorKind.INPUT_OVERFLOW, _re(r"(?<!system )\bprompt (?:is |was )?too long"), "variant-prompt-too-long"),
    # Not behind the name of a parameter: a name or a label that is too long is no overflow.
    Phrase(
        ErrorKind.INPUT_OVERFLOW,
        _re(r"""(?:^|\n|[.!-] |["']|(?:errors?|exception): )(?:the |your )?input (?:is |was )?too long"""),
        "variant-input-too-long",
    ),
    Phrase(
        ErrorKind.INPUT_OVERFLOW,
        _re(r"context (?:length|window|size) (?:limit )?(?:is |was |has been )?exceeded"),
        "variant-context-length-exceeded",
    ),
    Phrase(
        ErrorKind.INPUT_OVERFLOW, _re(r"reduce the length of (?:the|your) (?:messages|prompt|input)"), "variant-reduce"
    ),
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
