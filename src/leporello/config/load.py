"""`load_settings`: flag > environment > file > default, each value checked once; keys of providers and of folds."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import yaml

from leporello.config.catalogue import (
    AUTO,
    BUILT_IN_ENGINES,
    BUILT_IN_PROVIDERS,
    PROVIDER_FIELDS,
    SETTINGS,
    Setting,
    find_setting,
    is_section,
)
from leporello.config.environment import read_environment
from leporello.config.home import Home
from leporello.config.settings import ProviderSettings, Resolved, Settings
from leporello.config.sources import (
    DEFAULT,
    FLAG,
    RawValue,
    SettingSource,
    SourceKind,
    in_environment,
    in_file,
    nearest_key,
)
from leporello.errors import ConfigError

ENGINE_ENTRY_POINTS = "leporello.context_engines"


def is_engine_section(name: str, home: Home) -> bool:
    """Whether a name is that of a built-in engine, of one in the plugin folder, or of an installed distribution."""
    if name in BUILT_IN_ENGINES:
        return name != "compressor"  # the built-in compressor's own section is `compression`, and is checked
    if not name.isidentifier() and not name.replace("-", "_").isidentifier():
        return False
    if (home.plugins_dir / "context_engine" / name).is_dir():
        return True
    return any(point.name == name for point in entry_points(group=ENGINE_ENTRY_POINTS))


IsFree = Callable[[str], bool]
"""Tells whether a section belongs to an engine or plugin and is passed through unchecked."""


def read_file(path: Path, is_free: IsFree) -> Iterator[RawValue]:
    """Every value of the file; nothing when there is no file. Keys that nobody knows are passed on as they are."""
    text = read_text(path)
    if text is None:
        return
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        if root is None or (isinstance(root, yaml.ScalarNode) and loader.construct_object(root) is None):
            return
        if not isinstance(root, yaml.MappingNode):
            raise ConfigError(
                f"{path}: the file must hold settings by name, such as `compression:` with lines below it."
            )
        yield from _walk(loader, root, "", path, is_free)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}{_position(error)}: this is not valid YAML: {_problem(error)}.") from None
    finally:
        loader.dispose()


def read_text(path: Path) -> str | None:
    """The text of a file in the home folder, or None when it is not there."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: the file is not UTF-8 text.") from None
    except OSError as error:
        raise ConfigError(f"{path}: the file can't be read: {error.strerror}.") from None


def _walk(loader: Any, node: yaml.MappingNode, prefix: str, path: Path, is_free: IsFree) -> Iterator[RawValue]:
    loader.flatten_mapping(node)
    seen: dict[str, int] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = prefix + str(loader.construct_object(key_node, deep=True))
        if key in seen:
            raise ConfigError(f"{path}, line {line}: `{key}` was already set on line {seen[key]}; keep one of them.")
        seen[key] = line
        if find_setting(key) is None and is_section(key) and not is_free(key):
            if isinstance(value_node, yaml.MappingNode):
                yield from _walk(loader, value_node, key + ".", path, is_free)
                continue
            if loader.construct_object(value_node, deep=True) is not None:
                raise ConfigError(f"{path}, line {line}: `{key}` is a section; put its settings on lines below it.")
            continue
        yield RawValue(key, loader.construct_object(value_node, deep=True), in_file(path, line))


def _position(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""


def _problem(error: yaml.YAMLError) -> str:
    return str(getattr(error, "problem", None) or "it can't be parsed").rstrip(".")


def load_keys(home: Home) -> dict[str, str]:
    """Keys by provider name; empty when there is no file. A file that others can read is refused."""
    path = home.keys_file
    text = read_text(path) if is_private(path) else None
    if text is None:
        return {}
    try:
        keys = yaml.safe_load(text)
    except yaml.YAMLError as error:
        # The parser's own text quotes the file, and the file holds keys.
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise ConfigError(f"{path}{where}: this is not valid YAML. Write one line `provider: key` for each.") from None
    if keys is None:
        return {}
    if not isinstance(keys, dict) or not all(isinstance(value, str) for value in keys.values()):
        raise ConfigError(f"{path}: write one line `provider: key` for each provider, and nothing else.")
    return {str(name): value.strip() for name, value in keys.items() if value.strip()}


def save_key(home: Home, provider: str, key: str) -> None:
    """Add or replace one key; the file is written whole or not at all, with mode 0600 from the first byte."""
    keys = {**load_keys(home), provider: key}
    name = ""
    try:
        home.path.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=home.path, prefix=".keys-")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yaml.safe_dump(keys, file, allow_unicode=True, sort_keys=True)
        os.replace(name, home.keys_file)
    except OSError as error:
        if name:
            Path(name).unlink(missing_ok=True)
        raise ConfigError(f"{home.keys_file}: the key can't be saved: {error.strerror}.") from None


def is_private(path: Path) -> bool:
    """Whether there is such a file; one that others can read is refused."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ConfigError(f"{path}: the file can't be read: {error.strerror}.") from None
    # Windows has no group and others to protect from.
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(f"{path}: others can read this file, and it holds keys. Run: chmod 600 {path}")
    return True


def load_settings(
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    home: Home | None = None,
) -> Settings:
    """Everything that holds for this run. `flags` are dotted keys; those that are None were not given."""
    variables = os.environ if environ is None else environ
    place = home or Home.from_environment(variables)
    given = [
        *read_file(place.config_file, lambda key: _is_free(key, place)),
        *read_environment(variables),
        *(
            RawValue(key, value, FLAG, isinstance(value, str))
            for key, value in (flags or {}).items()
            if value is not None
        ),
    ]
    values = _defaults()
    free: dict[str, dict[str, Any]] = {}
    for item in given:  # the weakest first, so that a stronger one replaces it
        setting = find_setting(item.key)
        if setting is not None:
            values[item.key] = Resolved(_checked(setting, item), item.source)
        elif _is_free(item.key, place):
            _put_free(free, item)
        else:
            raise _unknown(item)
    _complete_providers(values)
    _check_provider_names(values)
    return Settings(place, values, free, _key_lookup(place, variables))


def _defaults() -> dict[str, Resolved]:
    values = {setting.name: Resolved(setting.default, DEFAULT) for setting in SETTINGS if not setting.is_pattern}
    for name, fields in BUILT_IN_PROVIDERS.items():
        values.update({f"providers.{name}.{key}": Resolved(value, DEFAULT) for key, value in fields.items()})
    return values


def _checked(setting: Setting, item: RawValue) -> Any:
    raw = setting.kind.from_text(item.value) if item.is_text else item.value
    try:
        return setting.kind.check(raw)
    except ValueError as error:
        detail = f" ({error})" if str(error) else ""
        raise ConfigError(
            f"`{item.key}` can't be {item.value!r} ({item.source}): it must be {setting.kind.allowed}{detail}."
        ) from None


def _unknown(item: RawValue) -> ConfigError:
    hint = nearest_key(item.key)
    advice = f" Did you mean `{hint}`?" if hint else " `leporello config` lists all of them."
    return ConfigError(f"There is no setting `{item.key}` ({item.source}).{advice}")


def _is_free(key: str, home: Home) -> bool:
    """Whether a key lies in a section that belongs to an engine or a plugin."""
    first, *rest = key.split(".")
    if first == "plugins":
        return bool(rest) and find_setting(key) is None
    return not is_section(first) and is_engine_section(first, home)


def _put_free(free: dict[str, dict[str, Any]], item: RawValue) -> None:
    parts = item.key.split(".")
    depth = 2 if parts[0] == "plugins" else 1
    name, path = ".".join(parts[:depth]), parts[depth:]
    value = _free_value(item)
    if not path:
        if value is not None and not isinstance(value, dict):
            raise ConfigError(f"`{item.key}` is a section ({item.source}); put its settings on lines below it.")
        free.setdefault(name, {}).update(value or {})
        return
    place = free.setdefault(name, {})
    for part in path[:-1]:
        inner = place.get(part)
        place[part] = dict(inner) if isinstance(inner, dict) else {}
        place = place[part]
    place[path[-1]] = value


def _free_value(item: RawValue) -> Any:
    if not item.is_text:
        return item.value
    try:
        return yaml.safe_load(item.value)
    except yaml.YAMLError:
        return item.value


def _complete_providers(values: dict[str, Resolved]) -> None:
    names = dict.fromkeys(key.split(".")[1] for key in values if key.startswith("providers."))
    for name in names:
        for field in PROVIDER_FIELDS:
            pattern = find_setting(f"providers.{name}.{field}")
            if pattern is not None:
                values.setdefault(f"providers.{name}.{field}", Resolved(pattern.default, DEFAULT))


def _check_provider_names(values: Mapping[str, Resolved]) -> None:
    known = list(dict.fromkeys(key.split(".")[1] for key in values if key.startswith("providers.")))
    for key, extra in (("model.provider", []), ("auxiliary.compression.provider", ["main"])):
        value, source = values[key].value, values[key].source
        allowed = [AUTO, *extra, *known]
        if value not in allowed:
            raise ConfigError(
                f"`{key}` can't be {value!r} ({source}): it must be one of {', '.join(allowed)}, "
                "or a name added under `providers`."
            )


def _key_lookup(
    home: Home, environ: Mapping[str, str]
) -> Callable[[ProviderSettings], tuple[str, SettingSource] | None]:
    def lookup(provider: ProviderSettings) -> tuple[str, SettingSource] | None:
        key = environ.get(provider.key_env, "").strip() if provider.key_env else ""
        if key and provider.key_env:
            return key, in_environment(provider.key_env)
        saved = load_keys(home).get(provider.name)
        return (saved, SettingSource(SourceKind.FILE, str(home.keys_file))) if saved else None

    return lookup


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
