"""The key that folds in plain message lists are signed with: made when it is first needed, for its owner only."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

from leporello.config.home import Home
from leporello.config.keys import is_private
from leporello.errors import ConfigError

KEY_BYTES = 32


def fold_key(home: Home) -> bytes | None:
    """The key of this home; None where there is none and none can be kept, because the folder can't be written."""
    path = home.fold_key_file
    if not is_private(path) and not _make(home):
        return None
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except OSError as error:
        raise ConfigError(f"{path}: the file can't be read: {error.strerror}.") from None
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise ConfigError(f"{path}: this is not a key. Delete the file: a new one is made when it is needed.")
    return key


def _make(home: Home) -> bool:
    """Write a new key, whole or not at all, with mode 0600 from the first byte; of two at a time the first stays."""
    try:
        home.path.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=home.path, prefix=".fold-")
    except OSError:
        return False
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(KEY_BYTES) + "\n")
        os.link(name, home.fold_key_file)
    except FileExistsError:
        return True
    except OSError:
        return False
    finally:
        Path(name).unlink(missing_ok=True)
    return True
