"""Where secrets lie on a disk: keys, passwords, cookies, what was typed. Commands in the sandbox do not see them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from leporello.lazy_regex import lazy_regex

HOME: dict[str, str] = {
    "keys and certificates": """
        .ssh .gnupg .pki .putty .config/sops .config/age .age .step .minisign .vnc .config/tigervnc .duplicity
        .duplicacy .config/kopia .config/restic .tarsnaprc .config/onedrive .config/Nextcloud .dropbox .megaCmd
        .config/maestral .config/borg .krb5 .Xauthority .ICEauthority .config/Yubico .google_authenticator
        .ollama/id_ed25519""",
    "clouds and services": """
        .aws .azure .kube .config/gcloud .oci .bluemix .aliyun .tccli .config/hcloud .config/doctl
        .config/linode-cli .config/scw .config/exoscale .ovh.conf .vultr-cli.yaml .fly .boto .s3cfg .mc
        .config/rclone .rclone.conf .terraform.d .terraformrc .pulumi .vault-token .vault_pass .ngrok2 .config/ngrok
        .config/cloudflared .config/fly .config/supabase .config/turso .turso .config/neonctl .config/planetscale
        .planetscale .config/render .render .config/hcp .config/teleport .config/okta .config/granted
        .config/infisical .config/akeyless .akeyless .edgerc .argocd .consul .config/step .runpod .modal.toml
        .vast_api_key .config/vastai .lambda_cloud .together .config/replicate .config/upstash .upstash.json
        .aws-vault .awsvault .config/spacelift .config/atuin .cloudflared .config/.wrangler .wrangler
        .config/netlify .netlify .local/share/com.vercel.cli .config/vercel .vercel .heroku .config/heroku .railway
        .config/stripe .config/configstore .config/firebase .supabase .config/atlassian .config/.jira
        .config/doppler .doppler .infisical .config/confluent .confluent .config/tailscale .config/argocd
        .ansible/galaxy_token .chef .travis .circleci .docker .config/containers .config/helm .minikube .vagrant.d
        .local/share/containers .tsh .saml2aws .aws-sso .granted .sentryclirc .config/sentry .config/twilio-cli
        .twilio-cli .config/auth0 .okta .cf .civo.json""",
    "ways into programs that run": """
        .colima .lima .orbstack/run .rd/docker.sock .screen .erlang.cookie .jupyter .local/share/jupyter/runtime
        .config/code-server .config/syncthing .local/state/syncthing .emacs.d/server .config/emacs/server""",
    "hosts of code and mail": """
        .config/gh .local/share/gh .config/hub .config/glab-cli .config/github-copilot .git-credentials .gitcookies
        .config/git/credentials .cache/git .subversion/auth .netrc .authinfo .authinfo.gpg .curlrc .wgetrc
        .fetchmailrc .msmtprc .config/msmtp .mutt .config/mutt .offlineimaprc .mbsyncrc .thunderbird
        .local/share/evolution .config/evolution .local/share/geary .config/aerc .cvspass .jira.d
        .microsoft/usersecrets .config/filezilla .filezilla .config/remmina .local/share/remmina .config/rustdesk
        .weechat .envrc""",
    "packages": """
        .npmrc .yarnrc.yml .yarnrc .bunfig.toml .pypirc .config/pip .pip .config/pypoetry/auth.toml
        .local/share/uv/credentials .condarc .gem/credentials .bundle/config .cargo/credentials
        .cargo/credentials.toml .m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties
        .sbt/credentials .sbt/1.0/credentials .ivy2/.credentials .composer/auth.json .config/composer/auth.json
        .nuget/NuGet/NuGet.Config .config/NuGet .config/nix/nix.conf .hex/hex.config .pub-cache/credentials.json
        .config/dart/pub-credentials.json .jfrog""",
    "databases and data": """
        .pgpass .my.cnf .mylogin.cnf .dbshell .config/pgcli .config/mycli .config/litecli .influxdbv2
        .databricks.cfg .databrickscfg .snowflake .config/snowflake .snowsql .mongosh .config/dbeaver
        .local/share/DBeaverData .config/Insomnia .config/Postman .wandb .config/dvc .cdsapirc .clearml.conf
        .comet.config .mlflow .config/earthengine .dbt .bigqueryrc .kaggle .config/kaggle .huggingface
        .cache/huggingface/token .cache/huggingface/stored_tokens .config/wandb""",
    "agents and editors": """
        .config/openai .openai .config/anthropic .claude .claude.json .codex .gemini .qwen .kimi .grok .cursor
        .config/Cursor .copilot .continue .aider* .config/opencode .local/share/opencode .config/goose
        .local/share/goose .config/crush .local/share/crush .config/amp .local/share/amp .factory .openclaw .hermes
        .config/io.datasette.llm .config/shell_gpt .config/litellm .cline .roo .windsurf .codeium
        .config/Code/User/globalStorage .vscode-server/data/User/globalStorage .config/JetBrains .config/zed""",
    "password stores": """
        .password-store .local/share/keyrings .local/share/kwalletd .config/op .config/Bitwarden* .config/keepassxc
        .config/KeePass .config/1Password .lastpass .config/rbw .local/share/rbw .config/gopass .local/share/gopass
        .keychain .config/Authy .env .secrets .config/fish/fish_variables""",
    "browsers": """
        .mozilla .config/google-chrome* .config/chromium .config/BraveSoftware .config/microsoft-edge*
        .config/vivaldi* .config/opera* .librewolf .waterfox .zen .local/share/qutebrowser .local/share/epiphany
        .var/app snap .config/*/Cookies .config/*/Network .config/*/Login?Data""",
    "messages": """
        .config/Signal .config/Slack .config/discord .config/Element .config/teams .config/zoom .purple
        .config/weechat .irssi .local/share/TelegramDesktop .config/WhatsApp""",
    "wallets": """
        .electrum .bitcoin .litecoin .ethereum .monero .config/Exodus .config/solana .config/Ledger?Live
        .near-credentials""",
    "what was typed": """
        .*history .*hist .histfile .zsh_sessions .bash_sessions .local/share/atuin .local/share/fish/fish_history*
        .local/share/mcfly .local/share/*/history* .local/state/*history .local/state/*/history .config/*/history*
        .lesshst .viminfo .local/state/nvim""",
    "macOS": """
        Library/Keychains Library/Cookies Library/Messages Library/Mail Library/Accounts Library/Containers
        Library/Group?Containers Library/Safari Library/Application?Support/Google/Chrome
        Library/Application?Support/Firefox Library/Application?Support/BraveSoftware
        Library/Application?Support/Microsoft?Edge Library/Application?Support/Vivaldi
        Library/Application?Support/Arc Library/Application?Support/Slack Library/Application?Support/Signal
        Library/Application?Support/discord Library/Application?Support/Telegram?Desktop
        Library/Application?Support/Bitwarden Library/Application?Support/1Password
        Library/Application?Support/KeePassXC Library/Application?Support/Code/User/globalStorage
        Library/Application?Support/Cursor Library/Application?Support/Claude Library/Application?Support/gcloud""",
}
"""Places below the home folder, by kind. A blank in a name is written as `?`."""
SYSTEM = tuple(
    map(
        Path,
        """/etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d /etc/ssl/private
        /etc/krb5.keytab /etc/NetworkManager/system-connections /etc/wireguard /etc/openvpn /etc/kubernetes
        /etc/rancher /etc/docker /etc/ppp /etc/ipsec.secrets /var/lib/kubelet /var/lib/docker
        /etc/pki/tls/private /etc/letsencrypt
        /etc/ssh/ssh_host_rsa_key /etc/ssh/ssh_host_ecdsa_key /etc/ssh/ssh_host_ed25519_key""".split(),
    )
)
"""For those who work as root; nobody else can read them anyway."""
_VARIABLE = lazy_regex(
    r"(?:AWS_(?:SHARED_CREDENTIALS|CONFIG|WEB_IDENTITY_TOKEN)_FILE|AZURE_(?:CONFIG_DIR|FEDERATED_TOKEN_FILE)|KUBECONFIG"
    r"|GOOGLE_APPLICATION_CREDENTIALS|GOOGLE_GHA_CREDS_PATH|CLOUDSDK_CONFIG|OCI_CLI_CONFIG_FILE|BOTO_CONFIG"
    r"|RCLONE_CONFIG|TF_CLI_CONFIG_FILE|DOCKER_CONFIG|REGISTRY_AUTH_FILE|GNUPGHOME|PASSWORD_STORE_DIR|NETRC|WGETRC"
    r"|PGPASSFILE|MYSQL_TEST_LOGIN_FILE|NPM_CONFIG_USERCONFIG|PIP_CONFIG_FILE|GH_CONFIG_DIR|GLAB_CONFIG_DIR"
    r"|SOPS_AGE_KEY_FILE|ANSIBLE_VAULT_PASSWORD_FILE|HF_TOKEN_PATH|DATABRICKS_CONFIG_FILE|SNOWFLAKE_HOME"
    r"|CLAUDE_CONFIG_DIR|CODEX_HOME|SSH_AUTH_SOCK|XAUTHORITY|KRB5_KTNAME|KRB5CCNAME|\w{0,40}HISTFILE|\w{1,40}_HISTORY)",
    re.IGNORECASE,
)
"""Variables that name such a place, or several."""
_BASES = (
    (".config/", "XDG_CONFIG_HOME"),
    (".local/share/", "XDG_DATA_HOME"),
    (".local/state/", "XDG_STATE_HOME"),
    (".cache/", "XDG_CACHE_HOME"),
)


def secret_places(homes: set[Path], env: Mapping[str, str]) -> Iterator[Path]:
    """Every place that holds keys, passwords, cookies or what was typed."""
    names = " ".join(HOME.values()).split()
    for home in homes:
        for name in names:
            yield from home.glob(name) if set("*?") & set(name) else (home / name,)
        yield from _named_like_secrets(home)
    for start, variable in _BASES:
        if base := env.get(variable):
            for name in names:
                if name.startswith(start):
                    yield from Path(base).glob(name.removeprefix(start))
    for variable, value in env.items():
        if _VARIABLE.fullmatch(variable):
            yield from (Path(path) for path in value.split(os.pathsep) if path)
    yield from SYSTEM


_SECRET_NAME = lazy_regex(
    r"""(?:.*[._-])?(?:credentials?|creds|secrets?|(?:access|refresh|auth|api|vault|id)?[._-]?tokens?|passw(?:or)?ds?|passwd
      |(?:vault|api|access|private|service[._-]account)[._-]?(?:pass|keys?)|auth|oauth2?|keys|cookies|env|sitemanager)
      (?:\.(?:jsonc?|toml|ya?ml|ini|conf|cfg|txt|xml|db|sqlite3?|properties|plist|old|bak|prod|dev|local))?
    | .+\.(?:pem|key|p12|pfx|kdbx?|jks|keystore|ppk|gpg|ovpn|tfstate|remmina|rdp)
    | .*history(?:[._-]\w{1,8})?""",
    re.IGNORECASE | re.VERBOSE,
)
"""How files are called that hold a secret, whatever program they are of."""
_PASSED_OVER = frozenset(
    (
        ".cache .npm .nvm .pyenv .rbenv .rustup .sdkman .asdf .bun .deno .gradle .m2 .ivy2 .conda .vscode-server .git"
    ).split()
)
"""What installers fill: code, in which such names mean nothing."""
_DEPTH, _DEPTH_OF = 2, {".config": 3, ".local": 4}
_MOST_ENTRIES = 20_000


def _named_like_secrets(home: Path) -> Iterator[Path]:
    """Files in hidden folders of a home whose names say what they hold; the nearest folders are read first."""
    level, left = [(home, 0, _DEPTH)], _MOST_ENTRIES
    while level:
        below: list[tuple[Path, int, int]] = []
        for folder, depth, deepest in level:
            entries: list[os.DirEntry[str]] = []
            with suppress(OSError), os.scandir(folder) as found:
                entries = [entry for entry in islice(found, left) if depth or entry.name.startswith(".")]
            left -= len(entries)
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    if _SECRET_NAME.fullmatch(entry.name):
                        yield Path(entry.path)
                elif depth < deepest and entry.name not in _PASSED_OVER:
                    below.append((Path(entry.path), depth + 1, deepest if depth else _DEPTH_OF.get(entry.name, _DEPTH)))
        level = below
