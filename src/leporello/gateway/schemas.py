"""What clients of the session API send; the OpenAPI document is made from the same definitions."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Name = Annotated[str, Meta(max_length=200)]
Text = Annotated[str, Meta(min_length=1, max_length=1_000_000)]


class NewConversation(msgspec.Struct, forbid_unknown_fields=True):
    """A conversation to begin."""

    model: Name = ""
    """Empty takes the configured one."""
    title: Name = ""


class Renamed(msgspec.Struct, forbid_unknown_fields=True):
    """A conversation's new title."""

    title: Name


class NewMessage(msgspec.Struct, forbid_unknown_fields=True):
    """A message to the agent, or a command such as `/compress topic`."""

    text: Text
    id: Annotated[str, Meta(max_length=100)] = ""
    """Of the client's choosing: sent again, it is answered with the same outcome and not handled twice."""
    wait: bool = True
    """False is answered at once, as soon as the message is stored; send it again with the same id for its outcome."""


class Compress(msgspec.Struct, forbid_unknown_fields=True):
    """A folding by hand."""

    focus: Annotated[str, Meta(max_length=1_000)] = ""
