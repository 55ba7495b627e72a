"""The table by which error bodies are judged. Every line names the sample body that it was made for, by id.

Three kinds of evidence, in this order: codes a machine wrote, sentences with numbers, sentences without. A body that
matches nothing is left to its HTTP status.
"""

from __future__ import annotations

import re
from enum import StrEnum

from msgspec import Struct

from leporello.lazy_regex import lazy_regex


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


class Phrase(Struct, frozen=True):
    """A sentence, the kind it proves, and the body it was read from. `cause` is a finer word for the caller."""

    kind: ErrorKind
    sample: str
    pattern: re.Pattern[str]
    cause: str = ""


class SizePattern(Struct, frozen=True):
    """A sentence that states token counts: groups `limit`, `input`, `output` (asked for), `cap` (largest allowed).

    `limit` is the window, or the largest input where a provider limits that; `cap` only ever limits the answer;
    `least` is an input that the server did not count to its end.
    """

    sample: str
    pattern: re.Pattern[str]


_NUMBER = lazy_regex(r"<(limit|input|least|output|cap|total|count)>")


def _re(pattern: str) -> re.Pattern[str]:
    """A pattern in which `<limit>` and the like stand for numbers."""
    return lazy_regex(_NUMBER.sub(r"(?P<\1>\\d[\\d,]{0,29})", pattern), re.IGNORECASE | re.DOTALL)


def _phrases(*rows: tuple[ErrorKind, str, str, *tuple[str, ...]]) -> tuple[Phrase, ...]:
    return tuple(Phrase(kind, sample, _re(pattern), *cause) for kind, sample, pattern, *cause in rows)


def _sizes(*rows: tuple[str, str]) -> tuple[SizePattern, ...]:
    return tuple(SizePattern(sample, _re(pattern)) for sample, pattern in rows)


CODES: dict[str, tuple[ErrorKind, str]] = {
    "context_length_exceeded": (ErrorKind.INPUT_OVERFLOW, "openai-context-length"),
    "exceed_context_size_error": (ErrorKind.INPUT_OVERFLOW, "llamacpp-exceed-500"),
    "model_max_prompt_tokens_exceeded": (ErrorKind.INPUT_OVERFLOW, "copilot-prompt-token-count-code"),
    "tokens_limit_reached": (ErrorKind.INPUT_OVERFLOW, "github-models-body-too-large"),
    "1261": (ErrorKind.INPUT_OVERFLOW, "zhipu-1261"),
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
    "336103": ErrorKind.INPUT_OVERFLOW,
    "336007": ErrorKind.INPUT_OVERFLOW,
    "10907": ErrorKind.INPUT_OVERFLOW,
    # MiniMax numbers its causes in a field of its own, `base_resp`.
    "minimax-1001": ErrorKind.TRANSIENT,
    "minimax-1002": ErrorKind.RATE_LIMIT,
    "minimax-1004": ErrorKind.AUTH,
    "minimax-1008": ErrorKind.QUOTA,
    "minimax-1024": ErrorKind.TRANSIENT,
    "minimax-1026": ErrorKind.CONTENT_POLICY,
    "minimax-1027": ErrorKind.CONTENT_POLICY,
    "minimax-1033": ErrorKind.TRANSIENT,
    "minimax-1039": ErrorKind.INPUT_OVERFLOW,
    "minimax-1041": ErrorKind.RATE_LIMIT,
    "minimax-2013": ErrorKind.MALFORMED,
    "minimax-2049": ErrorKind.AUTH,
    "minimax-2056": ErrorKind.QUOTA,
}

OVERRIDES = _phrases(
    # These sentences correct the code that comes with them.
    (ErrorKind.PAYLOAD_TOO_LARGE, "openai-tpm-too-large", r"request too large for .{0,200}tokens per min"),
    (ErrorKind.PAYLOAD_TOO_LARGE, "openai-string-too-long", r"'(?:messages|input)\b[^']*': string too long"),
    (ErrorKind.PAYLOAD_TOO_LARGE, "openai-array-too-long", r"'(?:messages|input)': array too long"),
    (
        ErrorKind.INPUT_OVERFLOW,
        "llamacpp-context-size-500",
        r"context size has been exceeded|exceeds the available context size",
    ),
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
    ("cohere-max-output", r"max tokens must be less than or equal to <cap>"),
    ("databricks-max-tokens", r"max_tokens \(<output>\) cannot exceed <cap>"),
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
    (
        "vllm-input-characters",
        r"requested <output> output tokens.{0,60}length is only <limit> tokens, resulting in a "
        r"maximum input length of 0 ",
    ),
    (
        "sambanova-generation",
        r"prompt is <input> tokens long, so generating <output> tokens.{0,120}sequence length is just <limit>",
    ),
    ("tabbyapi-request-length", r"request length <input> \+ <output> is greater than max_seq_len <limit>"),
    (
        "perplexity-sum",
        r"requested <output> to generate tokens, following a prompt of length <input>, which exceeds "
        r"the max limit of <limit>",
    ),
    ("ai21-sum", r"too many tokens: <input> \+ <output> > <limit>"),
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
    ("vertex-input-token-count-plain", r"input token count exceeds the maximum number of tokens allowed <limit>"),
    ("aistudio-truncate", r"cannot truncate to <limit>, required <input>: text:"),
    ("lmstudio-reached-context", r"reached context length of <limit> tokens"),
    ("xai-prompt-length", r"maximum prompt length is <limit> but the request contains <input> tokens"),
    ("copilot-prompt-token-count", r"prompt token count of <input> exceeds (?:the limit|max token count) of <limit>"),
    ("github-models-body-too-large", r"request body too large for .{1,80} max size: <limit> tokens"),
    ("vllm-decoder-prompt-500", r"\(length <input>\) is longer than the maximum model length of <limit>"),
    ("llamacpp-exceed-measured", r"request \(<input> tokens\) exceeds the available context size \(<limit> tokens\)"),
    ("lmstudio-keep-first", r"keep the first <input> tokens .{0,90}context length of only <limit> tokens"),
    ("omlx-prompt-too-long", r"<input> tokens exceeds max context window of <limit>"),
    ("cerebras-while-limit", r"current length is <input> while limit is <limit>"),
    ("fireworks-model-maximum", r"prompt is too long: <input>, model maximum context length: <limit>"),
    (
        "poolside-allowed-input",
        r"(?:input|prompt) length \(?<input>\)? exceeds (?:the |model's )?(?:maximum )?(?:allowed )?"
        r"(?:input |context |sequence )?length (?:of )?\(?<limit>",
    ),
    ("vertex-input-token-count-is", r"input token count is <input> but (?:the )?model only supports up to <limit>"),
    ("yandex-no-more-than", r"input tokens must be no more than <limit>, got <input>"),
    ("trtllm-max-seq-len", r"prompt length <input> plus query length \d{1,9} is larger than max_seq_len <limit>"),
    ("trtllm-max-num-tokens", r"prompt length \(<input>(?:\.\d)?\).{0,60} not exceed max_num_tokens \(<limit>\)"),
    ("titan-too-many-input", r"max input tokens: <limit>, request input token count: <input>"),
    (
        "cloudflare-estimated",
        r"input and maximum output tokens \(<total>\) exceeded this model context window limit \(<limit>\)",
    ),
    ("cohere-prompt-and-prediction", r"tokens \(prompt and prediction\) cannot exceed <limit>"),
    ("cohere-total-max", r"total tokens exceeds? the model's max of <limit>"),
    ("dashscope-input-range", r"range of input length should be \[\d{1,9}, ?<limit>\]"),
    ("huggingface-less-than", r"`inputs` must have less than <limit> tokens\. given: <input>"),
    ("ds4-configured-size", r"prompt has <input> tokens, but the configured context size is <limit>"),
    ("novelai-requested", r"has <limit> tokens maximum, <input> tokens context requested"),
    ("moonshot-max-length", r"model max length exceeded, max length: ?<limit>"),
    ("replicate-max-input", r"max input length is <limit> tokens, but you supplied <input>"),
    ("wasmedge-prompt", r"prompt too long \(<input> tokens, max <limit>\)"),
    (
        "onnx-input-ids",
        r"input_ids size \(<input>\) \+ current sequence length \(\d{1,9}\) exceeds max length \(<limit>\)",
    ),
    ("transformers-max-length", r"input length of input_ids is <input>, but `?max_length`? is set to <limit>"),
    ("petals-preallocated", r"prefix \d{1,9} \+ current <input> exceeds pre-allocated maximum <limit>"),
    ("siliconflow-max-prompt", r"number of input tokens \(<input>\) has exceeded max_prompt_tokens \(<limit>\)"),
    ("snowflake-max-tokens", r"max tokens of <limit> exceeded(?! per)"),
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
    (ErrorKind.MALFORMED, "anthropic-defer-loading-extra", r"\bdefer_loading\b", "tool_search"),
    (ErrorKind.MALFORMED, "anthropic-tool-tag", r"input tag 'tool_search\w{0,60}' found", "tool_search"),
    (ErrorKind.MALFORMED, "kimi-tool-search-type", r"tool type \W{0,2}tool_search\W{0,2} is not", "tool_search"),
    (ErrorKind.MALFORMED, "openai-tool-search-value", r"invalid value: 'tool_search'", "tool_search"),
    (ErrorKind.MALFORMED, "openai-max-tokens-unsupported", r"unsupported parameter"),
    (ErrorKind.PAYLOAD_TOO_LARGE, "qwen-string-length", r"string value length \(\d+\) exceeds"),
    (ErrorKind.PAYLOAD_TOO_LARGE, "bedrock-max-length", r"expected maxlength: \d+, actual: \d+"),
    (ErrorKind.MALFORMED, "bedrock-not-less-or-equal", r"malformed input request"),
    (ErrorKind.PAYLOAD_TOO_LARGE, "yandex-text-length", r"text length is \d{1,20}, which is outside the range"),
    (ErrorKind.PAYLOAD_TOO_LARGE, "google-payload-size", r"request payload size exceeds the limit"),
    (ErrorKind.PAYLOAD_TOO_LARGE, "openresty-413-buffer", r"buffer the request body: length limit"),
    (ErrorKind.INPUT_OVERFLOW, "bedrock-input-too-long", r"input is too long for requested model"),
    (ErrorKind.INPUT_OVERFLOW, "volcengine-total-tokens", r"tokens of image and text exceed max message tokens"),
    # The answer's limit is judged before the vaguer sentences: it may be the reason for them.
    (
        ErrorKind.OUTPUT_CAP,
        "variant-max-tokens-too-large",
        r"max_(?:completion_|output_|new_)?tokens\b[^.\n]{0,40}?(?:too (?:large|high|big)|exceeds?\b)",
    ),
    (ErrorKind.INPUT_OVERFLOW, "minimax-token-limit", r"(?:^|\n|status_msg\W{1,8})token limit(?:$|[\n\"'\\])"),
    (ErrorKind.INPUT_OVERFLOW, "ibm-user-message", r"\buser message is too long"),
    (ErrorKind.INPUT_OVERFLOW, "variant-prompt-too-long", r"(?<!system )\bprompt (?:is |was )?too long"),
    # Not behind the name of a parameter: a name or a label that is too long is no overflow.
    (
        ErrorKind.INPUT_OVERFLOW,
        "variant-input-too-long",
        r"""(?:^|\n|[.!-] |["']|(?:errors?|exception): )(?:the |your )?input (?:text )?(?:is |was )?too long""",
    ),
    (ErrorKind.INPUT_OVERFLOW, "variant-reduce", r"reduce the length of (?:the|your) (?:messages|prompt|input)"),
)

OVERFLOW_WORDS = tuple(
    lazy_regex("|".join(words), re.IGNORECASE)
    for words in (
        # Something is more ...
        (
            r"exceed|too (?:long|large|big|many)|(?:longer|greater|larger|bigger|more) than|no more than|at most|>=",
            r"must (?:be|have) (?:less|fewer|<)|limit (?:is |was )?(?:reached|exceeded)|token limit is|reached context",
            r"maximum (?:allowed )?is|\bfull\b",
        ),
        # ... of what a request consists of ...
        (
            r"\b(?:input|prompt|messages?|conversation|context|history|tokens?|request|sequence|session|question)|_total_tokens",
            r"[`\"']inputs",
        ),
        # ... than a window takes.
        (
            r"\btokens?\b|context|n_ctx|max_(?:seq|model|input|context)|session (?:max )?length|\bkv size",
            r"(?:input|prompt|maximum|max|conversation|question) (?:\w{1,20} ){0,3}(?:length|limit|tokens)",
            r"conversation is too|max (?:length|input)|too large to process|physical batch",
        ),
    )
)
"""A sentence in which all of them are found says that a request was too large, however a server puts it."""
OTHER_LIMITS = lazy_regex(
    r"per[- ](?:sec|min|hour|day|week|month)|\b[tr]p[mhd]\b|\brate\b|quota|daily|today|monthly|credit|balance|\bplan\b"
    r"|usage|subscription|concurren|try again (?:in|later|after)|too many (?:requests|inputs|tools)|images?\b|bytes"
    r"|\b[mk]b\b|\b(?:tool|function|file|user|field|key|schema|property|access|api|auth\w*)s?\b|\w_key\b|expired"
    r"|\b(?:names?|ids?|url|stop|seconds|characters?)\b|max_(?:completion_|output_|new_)?tokens|\boutput|thinking"
    r"|completion|invalid token|每分钟|速率|频率|额度|余额",
    re.IGNORECASE,
)
"""... unless it speaks of another limit."""
OVERFLOW_ELSEWHERE = lazy_regex(
    r"(?:输入|輸入|上下文|对话|對話|提示词|prompt|tokens?).{0,20}(?:超过|超過|超出|超长|超長|超限|过长|過長)"
    r"|(?:入力|トークン|コンテキスト|プロンプト).{0,20}(?:超え|超過|長すぎ)"
    r"|(?:입력|토큰|컨텍스트|프롬프트).{0,20}(?:초과|너무 깁|너무 길)"
    r"|превы[а-я]{1,20}.{0,40}(?:контекст|токен|длин)|(?:контекст|токен|промпт)[а-я]{0,9}.{0,30}превы",
    re.IGNORECASE,
)
SENTENCE_END = lazy_regex(r"[.!?;。！](?=\s|$)|\n")
COUNT = lazy_regex(r"(?<![\w.])\d[\d,]{2,15}(?![\w.]?\w)")
"""A number of tokens in a sentence, not one in a version or an id."""

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
NEVER_OVERFLOW = frozenset((401, 402, 403, 404, 408, 409, 429))
"""Statuses of other limits: their words are not read for a window's."""
