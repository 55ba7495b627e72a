"""Plugins: other people's engines, tools, commands, hooks and summarisers.

    manifest   what a plugin says of itself (plugin.yaml)
    discovery  which plugins are there: folders and installed distributions
    trust      which folders code may be loaded from
    loading    a folder as a package of its own
    shim       the modules that plugins written for Hermes import
    context    what `register(ctx)` is given
    host       which plugins are active, and a new engine for each conversation

Nothing here is active unless the settings name it.
"""
