"""The command line's frame: help, lazy commands, errors as one line, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

import leporello.cli
from leporello.cli import COMMANDS, GROUPS, NEIGHBOURS, ExitCode, exit_code_for, main, program
from leporello.errors import (
    ConfigError,
    EngineError,
    FixedPartTooLarge,
    InputError,
    LeporelloError,
    NotFound,
    ProviderError,
    StoreBusy,
    SummaryError,
)
from tests.conftest import RunCli

HEAVY = {
    "aiohttp", "anthropic", "asyncio", "email", "httpx", "httpx2", "mcp", "msgspec", "numpy", "openai", "orjson",
    "prompt_toolkit", "psycopg", "pydantic", "re2", "rich", "socket", "splintr", "sqlite3", "ssl",
    "starlette", "tokenizers", "uvicorn", "yaml", "zstandard",
}  # fmt: skip


def test_every_command_file_is_in_the_table() -> None:
    """A command that is not listed can't be run; one that is listed must be there."""
    folder = Path(leporello.cli.__file__).parent
    files = {path.name.removesuffix("_command.py").replace("_", "-") for path in folder.glob("*_command.py")}
    assert files == set(COMMANDS) - set(NEIGHBOURS)
    assert set(NEIGHBOURS) <= set(COMMANDS)
    assert {group for group, _ in COMMANDS.values()} <= set(GROUPS)


@pytest.mark.parametrize("name", COMMANDS)
def test_command_explains_itself(name: str, run_cli: RunCli) -> None:
    """`--help` works for each, names it, and ends with code 0."""
    ran = run_cli(name, "--help")
    assert ran.code == 0
    assert ran.out.startswith(f"Usage: leporello {name}")
    assert ran.err == ""


def test_help_lists_all_commands_in_groups(run_cli: RunCli) -> None:
    """The first page shows what there is, with examples."""
    ran = run_cli("--help")
    assert ran.code == 0
    assert "Examples:" in ran.out
    assert all(f"\n  {name} " in ran.out and line[:40] in ran.out for name, (_, line) in COMMANDS.items())


def test_examples_of_the_help_page_parse() -> None:
    """An example that the program itself would refuse is worse than none."""
    for line in leporello.cli.EXAMPLES.splitlines():
        if line.startswith("  leporello "):
            arguments = line.split()[1:]
            context = program.make_context("leporello", arguments, resilient_parsing=True)
            name, *_ = [word for word in arguments if word in COMMANDS]
            assert program.get_command(context, name) is not None


def test_help_loads_no_heavy_module() -> None:
    """The first page appears at once because nothing heavy is imported for it."""
    code = "import sys; from leporello.cli import main; main(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.strip("'\"[]\n ").split(".")[0] for name in done.stderr.split(",")}
    assert "click" in loaded
    assert loaded & HEAVY == set()
    ours = {name.strip("'\"[]\n ") for name in done.stderr.split(",") if "leporello" in name}
    assert ours == {"leporello", "leporello.cli", "leporello.deprecation", "leporello.errors"}


def test_chat_loads_nothing_heavy_before_its_prompt() -> None:
    """The prompt stands at once: agent, store and the terminal's libraries are loaded while the user types."""
    code = "import sys, leporello.cli.chat_command; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {".".join(name.split(".")[:2]) for name in done.stdout.split()}
    assert "leporello.chat" in loaded
    heavy = {
        "leporello.agent",
        "leporello.store",
        "leporello.conversation",
        "leporello.tokens",
        "rich",
        "prompt_toolkit",
    }
    assert loaded & heavy == set()


def test_import_of_the_package_loads_no_heavy_module() -> None:
    """A host that imports the library pays only for what it uses."""
    code = "import sys, leporello; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.strip("'\"[]\n ").split(".")[0] for name in done.stdout.split(",")}
    assert "leporello" in loaded
    assert loaded & (HEAVY | {"click"}) == set()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 2),
        (InputError("x"), 2),
        (NotFound("x"), 2),
        (FixedPartTooLarge(10, {"system": 20}), 4),
        (EngineError("x"), 4),
        (SummaryError("x"), 4),
        (ProviderError("x"), 1),
        (StoreBusy("x"), 1),
        (LeporelloError("x"), 1),
    ],
)
def test_exit_codes_of_errors(error: LeporelloError, code: int) -> None:
    """Scripts tell bad input (2) from blocked (4) from everything else (1)."""
    assert exit_code_for(error) == code


def test_an_error_is_one_line_without_secrets(run_cli: RunCli) -> None:
    """What happened, on stderr, without a traceback, and without a key that stands in the wrong place."""
    key = "sk-" + "proj-" + "Ab1" * 16
    ran = run_cli("--set", f"model.provider={key}", "config")
    assert ran.code == ExitCode.BAD_INPUT
    assert ran.out == ""
    assert ran.err.startswith("leporello: `model.provider` can't be ")
    assert ran.err.count("\n") == 1
    assert key not in ran.err


@pytest.mark.parametrize("arguments", [["nonsense"], ["config", "--nonsense"], ["--set", "novalue", "config"]])
def test_bad_usage_ends_with_two(arguments: list[str], run_cli: RunCli) -> None:
    """Wrong commands, options and assignments are bad input."""
    ran = run_cli(*arguments)
    assert ran.code == ExitCode.BAD_INPUT
    assert ran.out == ""
    assert "Traceback" not in ran.err


def test_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C is no error of the program."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(click.Group, "invoke", interrupted)
    assert main(["config"]) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err.strip() == "Interrupted."


def test_reader_that_has_seen_enough() -> None:
    """`leporello config | head -1` ends quietly."""
    command = f"{sys.executable} -c 'import sys; from leporello.cli import main; sys.exit(main())' config | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.startswith("context.engine")


def test_version(run_cli: RunCli) -> None:
    """The version of the installed package."""
    assert run_cli("--version").out.startswith("leporello 0.")


def test_no_colours_off_a_terminal(run_cli: RunCli) -> None:
    """Piped output is plain text."""
    ran = run_cli("config")
    assert "\x1b" not in ran.out + ran.err


def test_home_option(tmp_path: Path, run_cli: RunCli) -> None:
    """`--home` names the folder for this run."""
    (tmp_path / "config.yaml").write_text("compression: {threshold: 0.3}\n")
    ran = run_cli("--home", tmp_path, "config", "--json")
    document = json.loads(ran.out)
    assert document["home"] == str(tmp_path)
    assert document["settings"]["compression.threshold"]["value"] == 0.3


@pytest.mark.parametrize("arguments", [[], ["sessions"], ["store"]])
def test_without_a_command_the_help_is_the_answer(arguments: list[str], run_cli: RunCli) -> None:
    """Whoever types only the name wants to know what there is: on stdout, and that is no mistake."""
    ran = run_cli(*arguments)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == run_cli(*arguments, "--help").out


@pytest.mark.parametrize(("typed", "meant"), [("sesions", "sessions"), ("compres", "compress"), ("qqq", "--help")])
def test_an_unknown_command_is_answered_with_the_nearest(typed: str, meant: str, run_cli: RunCli) -> None:
    """Or with where to look."""
    ran = run_cli(typed)
    assert ran.code == ExitCode.BAD_INPUT
    assert f"leporello {meant}" in ran.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["plugins", "doctor", "foo"], ["'foo'", "compressor", "lcm"]),
        (["plugins", "use", "foo"], ["'foo'", "compressor", "lcm"]),
        (["config", "foo"], ["`foo`", "`leporello config`"]),
        (["config", "threshold"], ["compression.threshold"]),
        (["config", "compresion.treshold"], ["compression.threshold"]),
    ],
)
def test_an_unknown_name_is_answered_with_what_there_is(
    arguments: list[str], named: list[str], run_cli: RunCli
) -> None:
    """The message is about what was typed, in one line."""
    ran = run_cli(*arguments)
    assert (ran.code, ran.err.count("\n")) == (ExitCode.BAD_INPUT, 1)
    assert all(word in ran.err for word in named)
    assert "context.engine" not in ran.err
    assert "PluginError" not in ran.err
