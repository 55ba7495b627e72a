"""`leporello config` and `leporello explain`: every number with where it comes from, and never a key."""

from __future__ import annotations

import json
import time

import pytest

from leporello.config import SETTINGS, Home, save_key
from leporello.models import LearnedLimits
from tests.conftest import RunCli

KEY = "Zq7Lm" + "2Xw9Rt4" + "Vb6Nc8Ky3Hd5"
PASSWORD = "kestrel" + "42"


def test_config_lists_every_setting_with_its_source(run_cli: RunCli) -> None:
    """In text and in JSON, all of them, sorted as documented."""
    text = run_cli("--set", "compression.threshold=0.6", "config")
    document = json.loads(run_cli("--set", "compression.threshold=0.6", "config", "--json").out)
    for setting in SETTINGS:
        if not setting.is_pattern:
            assert f"\n{setting.name} " in f"\n{text.out}"
            assert setting.name in document["settings"]
    assert document["settings"]["compression.threshold"] == {"value": 0.6, "source": {"origin": "flag", "where": ""}}
    assert document["settings"]["compression.enabled"]["source"]["origin"] == "default"


def test_config_of_named_keys(run_cli: RunCli) -> None:
    """Only what was asked for; a key that does not exist is an error with the right one."""
    assert list(json.loads(run_cli("config", "--json", "store.url").out)["settings"]) == ["store.url"]
    ran = run_cli("config", "compression.treshold")
    assert ran.code == 2
    assert "compression.threshold" in ran.err


def test_config_sets_one_setting_and_leaves_the_rest_of_the_file(run_cli: RunCli) -> None:
    home = Home.from_environment()
    home.path.mkdir(parents=True)
    home.config_file.write_text("# my own words\ncontext:\n  engine: lcm  # for a week\n")
    ran = run_cli("config", "set", "compression.threshold", "0.6")
    assert (ran.code, "0.6" in ran.out, str(home.config_file) in ran.err) == (0, True, True)
    text = home.config_file.read_text()
    assert text.startswith("# my own words\n")
    assert "\ncontext:\n  engine: lcm  # for a week\n" in text
    assert json.loads(run_cli("config", "--json", "compression.threshold").out)["settings"].popitem()[1]["value"] == 0.6


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("compression.threshold", "7"), "from 0 to 1"),
        (("compresion.threshold", "0.6"), "Did you mean `compression.threshold`"),
        (("providers.openai.api_key", "sk-" + "1234"), "no setting"),
        (("model.default",), "needs a KEY and one VALUE"),
        (("model.default", "a", "b"), "needs a KEY and one VALUE"),
        ((), "needs a KEY and one VALUE"),
    ],
)
def test_config_sets_nothing_that_can_not_be(run_cli: RunCli, words: tuple[str, ...], told: str) -> None:
    ran = run_cli("config", "set", *words)
    assert ran.code == 2
    assert told in ran.err
    assert not Home.from_environment().config_file.exists()


@pytest.mark.parametrize("section", ["compression", "auxiliary", "auxiliary.compression", "providers.openai", "model"])
def test_config_of_a_section(run_cli: RunCli, section: str) -> None:
    """Everything below it and nothing else: `model` is not `models`."""
    every = json.loads(run_cli("config", "--json").out)["settings"]
    below = {name: value for name, value in every.items() if name.startswith(f"{section}.")}
    assert below
    assert json.loads(run_cli("config", section, "--json").out) == {"settings": below}
    text = run_cli("config", section)
    assert text.code == 0
    assert [line.split()[0] for line in text.out.splitlines()] == list(below)


def test_config_of_a_plugins_section(run_cli: RunCli) -> None:
    """What was written there, keys masked; a section nobody wrote is an error."""
    home = Home.from_environment()
    home.path.mkdir(parents=True, exist_ok=True)
    home.config_file.write_text(f"plugins: {{enabled: [], notes: {{api_key: '{KEY}', size: 3}}}}\n")
    document = json.loads(run_cli("config", "plugins.notes", "--json").out)
    assert document["settings"] == {}
    assert document["sections"]["plugins.notes"]["size"] == 3
    whole = run_cli("config", "plugins")
    assert "plugins.enabled" in whole.out
    assert "plugins.notes" in whole.out
    assert KEY not in whole.out
    assert run_cli("config", "plugins.other").code == 2


def test_config_never_shows_a_key(run_cli: RunCli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not from keys.yaml, not from a variable, not from an address, not from a plugin's section."""
    home = Home.from_environment()
    save_key(home, "openai", KEY)
    home.config_file.write_text(
        f"store: {{url: 'postgresql://ada:{PASSWORD}@db/x'}}\n"
        f"plugins: {{notes: {{api_key: '{KEY}', deep: [{{password: '{PASSWORD}'}}]}}}}\n"
        f"providers: {{shop: {{base_url: 'https://ada:{PASSWORD}@host/v1'}}}}\n"
    )
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    for arguments in (["config"], ["config", "--json"], ["config", "store.url"]):
        ran = run_cli(*arguments)
        assert ran.code == 0
        assert KEY not in ran.out + ran.err
        assert PASSWORD not in ran.out + ran.err
    document = json.loads(run_cli("config", "--json").out)
    assert document["keys"]["openai"] == {"origin": "file", "where": str(home.keys_file)}
    assert document["keys"]["anthropic"] == {"origin": "environment", "where": "ANTHROPIC_API_KEY"}
    assert document["keys"]["openrouter"] is None
    assert document["settings"]["store.url"]["value"] == "postgresql://ada:[REDACTED]@db/x"


def test_explain_gives_the_specified_numbers(run_cli: RunCli) -> None:
    """A window of 200,000 at defaults: threshold 100,000, tail 20,000, largest summary 10,000."""
    ran = run_cli("--set", "model.default=mystery", "--set", "model.context_length=200000", "explain", "--json")
    limits = json.loads(ran.out)["limits"]
    assert limits["window"]["value"] == 200_000
    assert limits["threshold_tokens"]["value"] == 100_000
    assert limits["tail_tokens"]["value"] == 20_000
    assert limits["summary_ceiling"]["value"] == 10_000
    assert all(limit["source"] for limit in limits.values())


def test_explain_follows_the_settings(run_cli: RunCli) -> None:
    """Threshold, ratio and overrides of the file count, and their places are named."""
    home = Home.from_environment()
    home.path.mkdir(parents=True)
    home.config_file.write_text("compression: {threshold: 0.8}\nmodels: {mine: {window: 50000}}\n")
    document = json.loads(run_cli("explain", "--model", "mine", "--json").out)
    assert document["limits"]["window"]["value"] == 50_000
    assert document["limits"]["threshold_tokens"]["value"] == 40_000
    assert document["settings"]["compression.threshold"]["source"].endswith("config.yaml, line 1")


def test_explain_knows_what_was_learned(run_cli: RunCli) -> None:
    """A window that a provider stated in an error counts."""
    home = Home.from_environment()
    book = LearnedLimits()
    book.learn(40_000, "mine", now=time.time())
    book.save(home.limits_file)
    window = json.loads(run_cli("explain", "--model", "mine", "--json").out)["limits"]["window"]
    assert window["value"] == 40_000
    assert "learned" in window["source"]


def test_configured_window_is_not_for_other_models(run_cli: RunCli) -> None:
    """`model.context_length` speaks of `model.default`; another model has its own window."""
    flags = ["--set", "model.default=mine", "--set", "model.context_length=9000"]
    own = json.loads(run_cli(*flags, "explain", "--json").out)
    other = json.loads(run_cli(*flags, "explain", "--model", "claude-sonnet-4-5", "--json").out)
    assert own["limits"]["window"]["value"] == 9_000
    assert other["limits"]["window"]["value"] == 200_000


def test_explain_in_words(run_cli: RunCli) -> None:
    """A person reads model, numbers and reasons; a switched-off compression is said."""
    ran = run_cli("--set", "compression.enabled=false", "explain", "--model", "claude-sonnet-4-5")
    assert ran.code == 0
    assert "model: claude-sonnet-4-5" in ran.out
    assert "200,000" in ran.out
    assert "compression.enabled" in ran.err
