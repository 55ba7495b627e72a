"""Plugins: other people's engines, tools, commands, hooks and summarisers.

    loading    which plugins are there (folders and installed distributions), and their code
    hermes     the modules that plugins written for Hermes import, and our engines as a plugin for Hermes
    context    what `register(ctx)` is given
    isolation  an engine in a process of its own
    host       which plugins are active, and the engine of each conversation

Nothing here is active unless the settings name it.
"""
