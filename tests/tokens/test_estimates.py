"""Counts against independent oracles: exact where the vocabulary is there, within stated bounds elsewhere."""

from __future__ import annotations

import pytest

from leporello.tokens import TokenCounter, family_of
from leporello.tokens.families import KINDS, kind_counts
from tests.tokens.samples import SAMPLES, Sample

BY_KIND = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.kind)

# Relative error of the estimate for Claude, per kind. German is the honest outlier: o200k packs it far better.
BOUNDS = {"german": 0.26}
BOUND = 0.08


@BY_KIND
def test_openai_text_is_counted_exactly(sample: Sample) -> None:
    """Text for OpenAI models counts as tiktoken counts it."""
    assert TokenCounter.for_model("gpt-5").text(sample.text) == sample.o200k
    assert TokenCounter.for_model("gpt-4-turbo").text(sample.text) == sample.cl100k


@BY_KIND
@pytest.mark.parametrize(
    ("model", "field"),
    [("claude-sonnet-4-5", "claude_3"), ("claude-opus-4-8", "claude_4_7"), ("claude-fable-5", "claude_4_7")],
)
def test_claude_estimates_stay_within_their_bounds(sample: Sample, model: str, field: str) -> None:
    """Per kind of text and language, before any real usage was seen."""
    truth = getattr(sample, field)
    guess = TokenCounter.for_model(model).text(sample.text)
    assert abs(guess / truth - 1) <= BOUNDS.get(sample.kind, BOUND), (guess, truth)


@pytest.mark.parametrize(("model", "field"), [("claude-3-5-sonnet", "claude_3"), ("claude-opus-5", "claude_4_7")])
def test_a_mixed_session_is_within_five_per_cent(model: str, field: str) -> None:
    """Errors of kinds cancel out over a session that mixes them."""
    counter = TokenCounter.for_model(model)
    truth = sum(getattr(sample, field) for sample in SAMPLES)
    assert abs(sum(counter.text(sample.text) for sample in SAMPLES) / truth - 1) <= 0.05


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.kind != "english"], ids=lambda sample: sample.kind)
def test_characters_divided_by_four_would_not_do(sample: Sample) -> None:
    """The estimate beats the usual rule of thumb, which was made for English prose, on everything else."""
    guess = TokenCounter.for_model("claude-opus-4-8").text(sample.text)
    rule_of_thumb = len(sample.text) / 4
    assert abs(guess - sample.claude_4_7) < abs(rule_of_thumb - sample.claude_4_7)


@BY_KIND
def test_gemini_is_estimated_from_its_own_vocabulary(sample: Sample) -> None:
    """Gemini's vocabulary is slow to run, so it is estimated; the estimate follows it."""
    truth = TokenCounter(family_of(None).__class__("gemma", "gemma3")).text(sample.text)
    assert abs(TokenCounter.for_model("gemini-3-pro").text(sample.text) / truth - 1) <= 0.15


@pytest.mark.parametrize(
    ("model", "vocabulary"),
    [
        ("gpt-5.6-sol", "o200k_base"),
        ("openrouter/openai/gpt-4.1-mini", "o200k_base"),
        ("o3", "o200k_base"),
        ("gpt-oss-120b", "o200k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("azure/gpt-4", "cl100k_base"),
        ("meta-llama/Llama-3.1-70B-Instruct", "llama3"),
        ("qwen3-coder-plus", "qwen3"),
        ("deepseek/deepseek-chat", "deepseek_v3"),
        ("mistral-large-latest", "mistral_v3"),
        ("codestral-2508", "mistral_v2"),
        ("z-ai/glm-4.6", "glm4"),
        ("moonshotai/kimi-k2", "kimi_k2"),
        ("phi-4", "phi4"),
    ],
)
def test_a_models_own_vocabulary_is_used_and_called_exact(model: str, vocabulary: str) -> None:
    """Any of a model's names leads to its vocabulary."""
    counter = TokenCounter.for_model(model)
    assert counter.family.vocabulary == vocabulary
    assert counter.exact
    assert counter.text("The quick brown fox") > 0


@pytest.mark.parametrize("model", ["claude-opus-5", "gemini-3-pro", "grok-4", "qwen3.7-plus", "my-own-model"])
def test_an_estimate_never_calls_itself_exact(model: str) -> None:
    """Where the vocabulary is not the model's own, the counter says so."""
    assert not TokenCounter.for_model(model).exact


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-3-5-sonnet-20241022", "claude-3"),
        ("bedrock/us.anthropic.claude-opus-4-6-v1:0", "claude-3"),
        ("claude-4.5-sonnet", "claude-3"),
        ("claude-haiku-4-5", "claude-3"),
        ("claude-sonnet-4-20250514", "claude-3"),
        ("claude-opus-4-7", "claude-4.7"),
        ("anthropic/claude-opus-4.8", "claude-4.7"),
        ("claude-sonnet-5", "claude-4.7"),
        ("claude-haiku-5-5", "claude-4.7"),
        ("claude-mythos-preview", "claude-4.7"),
        ("anthropic/claude-latest", "claude-4.7"),
    ],
)
def test_claude_generations_are_told_apart(model: str, family: str) -> None:
    """The newer vocabulary counts a third more; names without a version count as the newest."""
    assert family_of(model).name == family


def test_kinds_of_characters_are_counted() -> None:
    """Each kind is seen once in a text that holds it once."""
    counts = dict(zip(KINDS, kind_counts("aB3,\n  é я 你 한 🙂"), strict=True))
    assert counts["upper"] == counts["digit"] == counts["mark"] == counts["newline"] == counts["camel"] == 1
    assert counts["latin"] == counts["cyrillic"] == counts["han"] == counts["hangul"] == counts["emoji"] == 1
    assert len(kind_counts("plain ascii")) < len(KINDS)


def test_a_request_with_a_tool_counts_as_the_vendor_documents() -> None:
    """Anthropic's own example of a question with one weather tool is 403 tokens."""
    schema = {
        "name": "get_weather",
        "description": "Get the current weather in a given location",
        "input_schema": {
            "type": "object",
            "properties": {
                "location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"},
            },
            "required": ["location"],
        },
    }
    question = {"role": "user", "content": "What's the weather like in San Francisco?"}
    assert TokenCounter.for_model("claude-sonnet-4-5").request([question], [schema]) == pytest.approx(403, rel=0.03)
