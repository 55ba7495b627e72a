"""Commands run where they can write only in their folder and find no secrets, or say that they are not confined."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leporello.tools.confine import Confinement, find_confinement
from leporello.tools.terminal import terminal_tool

PLACES = """.ssh/id_ed25519 .aws/credentials .netrc .config/gh/hosts.yml .leporello/keys.yaml .docker/config.json
    .kube/config .npmrc .pypirc .config/sops/age/keys.txt .config/containers/auth.json .config/hcloud/cli.toml
    .fly/config.yml .oci/config .kaggle/kaggle.json .local/share/com.vercel.cli/auth.json .config/netlify/config.json
    .pulumi/credentials.json .config/stripe/config.toml .cloudflared/cert.pem .config/.wrangler/config/default.toml
    .subversion/auth/x .vnc/passwd .ollama/id_ed25519 .config/microsoft-edge/Default/Cookies .config/vivaldi/x
    snap/firefox/common/.mozilla/x .var/app/org.mozilla.firefox/x .local/share/atuin/history.db .sqlite_history
    .rediscli_history .irb_history .wgetrc .curlrc .config/Signal/config.json .config/Slack/Cookies .bitcoin/wallet.dat
    .electrum/wallets/default_wallet .env .config/openai/key .cursor/x .config/Bitwarden/data.json .config/keepassxc/x
    .databricks.cfg .snowflake/config .dbt/profiles.yml .config/Code/User/globalStorage/state.vscdb .rclone.conf
    .config/nix/nix.conf .config/atlassian/x .influxdbv2/configs .config/pgcli/history .config/fish/fish_variables
    .nuget/NuGet/NuGet.Config .cache/huggingface/stored_tokens .local/share/gh/x .sbt/1.0/credentials
    .ivy2/.credentials .config/ngrok/ngrok.yml .heroku/x .local/share/TelegramDesktop/tdata/x .duplicity/x
    .config/borg/keys/x .consolehistory .local/share/keyrings/k .some_new_tool_history .config/some-app/Cookies
    .config/some-app/history .claude/.credentials.json .codex/auth.json .local/share/opencode/auth.json
    .config/github-copilot/apps.json .m2/settings.xml .gradle/gradle.properties .terraform.d/credentials.tfrc.json
    .pgpass .my.cnf .boto .azure/msal_token_cache.json .config/gcloud/credentials.db .gnupg/private-keys-v1.d/k
    .password-store/a.gpg .mozilla/firefox/x/logins.json .thunderbird/x .cargo/credentials.toml .gem/credentials
    .colima/default/docker.sock .local/share/jupyter/runtime/jpserver-1.json .config/code-server/config.yaml
    .erlang.cookie .git-credentials .zsh_history .bash_history .python_history .viminfo""".split()


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder with secrets in it, outside the folder for temporary files, which the sandbox replaces."""
    made = tempfile.TemporaryDirectory(dir="/var/tmp")
    folder = Path(made.name)
    for name in PLACES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("canary-secret")
    (folder / "notes.txt").write_text("fine to read")
    for name in ("elsewhere", "elsewhere-2", "xdg/glab-cli/config.yml", "typed"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("canary-secret")
    monkeypatch.setenv("HOME", str(folder))
    with made:
        yield folder


@pytest.fixture
def confined(workshop: Any, home: Path) -> Any:
    named = {"KUBECONFIG": f"{home}/elsewhere:{home}/elsewhere-2", "HISTFILE": f"{home}/typed"}
    env = {**os.environ, **named, "XDG_CONFIG_HOME": str(home / "xdg")}
    readable = [workshop.context.outputs]
    found = find_confinement(workshop.workdir, [], readable, home / ".leporello", env, network=True)
    if found.why_not:
        pytest.skip(found.why_not)
    return workshop.with_context(confinement=found)


def test_only_the_working_directory_can_be_written(confined: Any, home: Path) -> None:
    assert confined.text("terminal", command="echo x > made && cat made") == "x\n"
    for target in (home / "made", home / ".bashrc", Path("/var/tmp/made"), Path("/etc/made"), Path("/usr/made")):
        shown = confined.run("terminal", command=f"echo x > {target}")
        assert shown.details["exit_code"] != 0
        assert "confined" in shown.status
        assert not target.exists()
    # A temporary folder of its own: nothing of the user's is there, and nothing stays.
    assert confined.text("terminal", command="touch /tmp/made-inside && ls /tmp/made-inside") == "/tmp/made-inside\n"
    assert not Path("/tmp/made-inside").exists()


def test_values_of_the_kernel_can_not_be_set(confined: Any) -> None:
    """Also by root: the file is only opened, nothing is written."""
    shown = confined.run("terminal", command=": <> /proc/sys/kernel/core_pattern")
    assert shown.details["exit_code"] != 0


def test_home_can_be_read_without_its_secrets(confined: Any, home: Path) -> None:
    assert confined.text("terminal", command="cat ~/notes.txt") == "fine to read"
    told = confined.run(
        "terminal", command="cat ~/.ssh/* ~/.aws/* ~/.netrc ~/.config/gh/* ~/.leporello/* ~/elsewhere; ls -A ~/.ssh"
    )
    assert "canary" not in told.text
    # A hidden file is an empty one: programs that have settings there still run.
    assert confined.text("terminal", command="cat ~/.npmrc") == "(no output)"
    assert "root" not in confined.run("terminal", command="cat /etc/shadow").text
    looked = confined.run(
        "terminal", command=f"grep -rs canary-secret {home} /proc/*/root{home} /proc/*/environ /proc/*/cwd | head"
    )
    assert "canary" not in looked.text.replace("grep", "")


def test_files_of_programs_that_nobody_listed_are_known_by_their_names(workshop: Any, home: Path) -> None:
    secret = (
        *(".newtool/credentials.json", ".config/newcloud/prod/auth.toml", ".newsh_history", ".newtool/id/service.key"),
        *(".local/share/newapp/state/tokens.db", ".config/new/refresh_token", ".other/api-key.txt", ".vault-pass"),
    )
    plain = (".config/editor/theme.toml", ".pyenv/versions/token.py", ".newtool/authors.txt", ".cargo/keywords.json")
    for name in (*secret, *plain):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("canary-secret" if name in secret else "plain")
    found = find_confinement(workshop.workdir, [], [], home / ".leporello", os.environ, network=True)
    if found.why_not:
        pytest.skip(found.why_not)
    shop = workshop.with_context(confinement=found)
    assert "canary" not in shop.run("terminal", command="cd && cat " + " ".join(secret)).text
    assert shop.text("terminal", command="cd && cat " + " ".join(plain)) == "plain" * len(plain)


def test_saved_outputs_can_be_read_though_they_lie_in_the_programs_folder(confined: Any, home: Path) -> None:
    outputs = home / ".leporello" / "outputs" / "c1"
    outputs.mkdir(parents=True)
    (outputs / "saved.txt").write_text("whole output")
    kept = replace(confined.context.confinement, readable=(outputs.resolve(),))
    shop = confined.with_context(confinement=kept)
    assert shop.text("terminal", command=f"cat {outputs}/saved.txt") == "whole output"
    assert shop.run("terminal", command=f"echo x > {outputs}/saved.txt").details["exit_code"] != 0


def test_a_commit_works_and_a_hook_can_not_be_planted(confined: Any, home: Path) -> None:
    """Git's folder may be written but for the files that name programs the user's own git would run."""
    for args in (["init", "-q"], ["config", "user.email", "a@b"], ["config", "user.name", "n"]):
        subprocess.run(["git", "-C", str(confined.workdir), *args], check=True)
    found = find_confinement(confined.workdir, [], [], home / ".leporello", {}, network=True)
    shop = confined.with_context(confinement=found)
    shop.write("a.txt", "x")
    made = shop.run("terminal", command="git add a.txt && git commit -qm one && git log --oneline")
    assert made.details["exit_code"] == 0, made.text
    for line in (
        "echo id > .git/hooks/pre-commit",
        "git config core.fsmonitor id",
        "rm -rf .git/hooks",
        "mv .git/config x",
    ):
        assert shop.run("terminal", command=line).details["exit_code"] != 0


def make_repository(folder: Path, *settings: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for args in (["init", "-q", "--template="], ["config", "user.email", "a@b"], ["config", "user.name", "n"]):
        subprocess.run(["git", "-C", str(folder), *args], check=True)
    for setting in settings:
        subprocess.run(["git", "-C", str(folder), "config", *setting.split("=")], check=True)


def test_what_the_users_own_programs_obey_stays_as_it_is(confined: Any, home: Path) -> None:
    """In the repository and in others below it: settings and hooks, also those that are not there yet."""
    work = confined.workdir
    make_repository(work, "core.hooksPath=.husky")
    make_repository(work / "vendor" / "lib")
    for name in (".envrc", "pkg/.vscode/tasks.json", "pkg/.mcp.json"):
        confined.write(name, "as it was")
    found = find_confinement(work, [], [], home / ".leporello", {}, network=True)
    shop = confined.with_context(confinement=found)
    lines = (
        "mkdir -p .husky && echo id > .husky/pre-commit",
        "mkdir -p .git/hooks && echo id > .git/hooks/pre-commit",
        "mkdir -p vendor/lib/.git/hooks && echo id > vendor/lib/.git/hooks/pre-commit",
        "git -C vendor/lib config core.fsmonitor id",
        "mv vendor/lib/.git x",
        "mv vendor/lib x",
        "mv vendor x",
        "rm -rf vendor/lib/.git/config",
        "echo x > .envrc",
        "mv .envrc x",
        "echo x > pkg/.vscode/tasks.json",
        "echo x > pkg/.mcp.json",
    )
    tried = shop.text("terminal", command=" ; ".join(f"({line}) 2>&1 && echo 'DONE {line}'" for line in lines))
    assert "DONE" not in tried
    shop.run("terminal", command="mkdir evil; cp -r .git/. evil; echo ../evil > .git/commondir")
    assert not (work / ".git" / "commondir").exists()
    made = shop.run("terminal", command="cd vendor/lib && touch a && git add a && git commit -qm one && git log")
    assert made.details["exit_code"] == 0, made.text


@pytest.mark.parametrize(
    "name", [".mcp.json", ".husky/pre-commit", ".idea/workspace.xml", ".vscode/tasks.json", ".envrc"]
)
def test_what_programs_would_obey_is_set_aside_when_a_command_makes_it(confined: Any, home: Path, name: str) -> None:
    found = find_confinement(confined.workdir, [], [], home / ".leporello", {}, network=True)
    shop = confined.with_context(confinement=found)
    made = shop.run("terminal", command=f"mkdir -p $(dirname {name}) && echo id > {name} && echo made")
    top = name.partition("/")[0]
    assert not (confined.workdir / top).exists()
    assert f"{top}.set-aside-" in made.status
    kept = next(confined.workdir.glob(f"{top}.set-aside-*"))
    assert (kept if kept.is_file() else next(kept.iterdir())).read_text() == "id\n"


def test_a_link_that_programs_would_obey_is_set_aside_too(confined: Any, home: Path) -> None:
    found = find_confinement(confined.workdir, [], [], home / ".leporello", {}, network=True)
    shop = confined.with_context(confinement=found)
    shop.run("terminal", command="mkdir evil && ln -s evil .vscode")
    assert not (confined.workdir / ".vscode").is_symlink()
    assert (confined.workdir / "evil").is_dir()


def test_settings_of_another_work_tree_stay_as_they_are(confined: Any, home: Path) -> None:
    main = confined.workdir.parent / "main"
    make_repository(main)
    subprocess.run(["git", "-C", str(main), "commit", "-qm", "one", "--allow-empty"], check=True)
    tree = confined.workdir / "tree"
    subprocess.run(["git", "-C", str(main), "worktree", "add", "-q", str(tree)], check=True)
    found = find_confinement(tree, [], [], home / ".leporello", {}, network=True)
    shop = confined.with_context(confinement=found, workdir=tree)
    lines = (
        "echo gitdir: evil > .git",
        "mv .git x",
        f"echo evil > {main}/.git/worktrees/tree/commondir",
        f"echo x > {main}/.git/config",
    )
    tried = shop.text("terminal", command=" ; ".join(f"({line}) 2>&1 && echo 'DONE {line}'" for line in lines))
    assert "DONE" not in tried
    made = shop.run("terminal", command="touch a && git add a && git commit -qm two")
    assert made.details["exit_code"] == 0, made.text


def test_a_home_that_is_worked_in_still_hides_its_secrets(workshop: Any, home: Path) -> None:
    found = find_confinement(home, [], [], home / ".leporello", {}, network=True)
    if found.why_not:
        pytest.skip(found.why_not)
    shop = workshop.with_context(confinement=found, workdir=home)
    assert "canary" not in shop.run("terminal", command="cat .ssh/* .claude/.credentials.json .netrc .cursor/x").text
    assert shop.text("terminal", command="echo x > made; cat made") == "x\n"


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_sockets_of_other_programs_are_not_there(confined: Any, home: Path) -> None:
    """Whoever reaches the socket of a container daemon, an editor or a terminal can do what that program can."""
    outside, own = home / "d.sock", confined.workdir / "own.sock"
    ask = "python3 -c 'import socket,sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' {} && echo reached"
    with closing(socket.socket(socket.AF_UNIX)) as one, closing(socket.socket(socket.AF_UNIX)) as other:
        for listener, path in ((one, outside), (other, own)):
            listener.bind(str(path))
            listener.listen()
        found = find_confinement(confined.workdir, [], [], home / ".leporello", {}, network=True)
        shop = confined.with_context(confinement=found)
        assert "reached" not in shop.run("terminal", command=ask.format(outside)).text
        assert "reached" in shop.run("terminal", command=ask.format(own)).text


def test_the_network_is_a_setting(confined: Any, listener: int) -> None:
    line = f"exec 3<>/dev/tcp/127.0.0.1/{listener} && echo reached"
    assert "reached" in confined.text("terminal", command=line)
    alone = confined.with_context(confinement=replace(confined.context.confinement, network=False))
    assert "reached" not in alone.run("terminal", command=line).text


def test_other_processes_are_neither_seen_nor_stopped(confined: Any) -> None:
    mine = str(os.getpid())
    assert mine not in confined.text("terminal", command="ls /proc | grep -E '^[0-9]+$' | tr '\\n' ' '").split()
    assert confined.run("terminal", command=f"kill -0 {mine}").details["exit_code"] != 0


def test_what_is_not_confined_says_so(workshop: Any) -> None:
    shop = workshop.with_context(confinement=Confinement((workshop.workdir,), why_not="bwrap is not installed"))
    tool = terminal_tool(shop.jobs)
    assert tool.ask is not None
    asked = tool.ask(shop.context, tool.check({"command": "ls"}))
    assert asked is not None
    assert asked.title == "run (not confined): ls"
    assert shop.text("terminal", command="echo works") == "works\n"


def test_a_refusing_system_is_named(workshop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where namespaces are refused, commands run as before and the reason is given."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    found = find_confinement(workshop.workdir, [], [], tmp_path / "home", {}, network=True)
    assert "not installed" in found.why_not
    (programs / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    (programs / "bwrap").chmod(0o755)
    found = find_confinement(workshop.workdir, [], [], tmp_path / "home", {}, network=True)
    assert "No permissions to create new namespace" in found.why_not
    assert found.wrap(["ls"], workshop.workdir) == ["ls"]


def test_the_rules_for_macos_name_every_place() -> None:
    """Not run here: only that the profile allows, hides and protects what it is told to, in that order."""
    wanted = Confinement(
        (Path("/w"),), (Path("/w/.git/hooks"),), (Path('/h/a "b"'),), network=False, program="/usr/bin/sandbox-exec"
    )
    program, flag, profile, *command = wanted.wrap(["ls"], Path("/w"))
    assert (program, flag, command) == ("/usr/bin/sandbox-exec", "-p", ["ls"])
    rules = profile.splitlines()
    assert (
        rules.index('(deny file-read* file-write* (subpath "/h/a \\"b\\""))')
        < rules.index('(allow file-read* file-write* (subpath "/w"))')
        < rules.index('(deny file-write* (subpath "/w/.git/hooks"))')
    )
    assert rules[-1] == "(deny network*)"
