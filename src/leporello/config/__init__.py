"""Settings and the home folder: the only place that reads the environment, config.yaml and keys.yaml."""

from __future__ import annotations

from leporello.config.catalogue import SETTINGS, Setting
from leporello.config.home import Home, fold_key, load_keys, save_key
from leporello.config.settings import Settings, load_settings
from leporello.config.sources import SettingSource, can_redraw, colours_wanted

__all__ = [
    "SETTINGS",
    "Home",
    "Setting",
    "SettingSource",
    "Settings",
    "can_redraw",
    "colours_wanted",
    "fold_key",
    "load_keys",
    "load_settings",
    "save_key",
]
