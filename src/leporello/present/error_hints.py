"""What to do about an error of a model's provider, in a sentence."""

from __future__ import annotations

from leporello.errors import LeporelloError
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import CallFailed

KEPT = "Your message is kept: write `go on` to send it again."
_UNKNOWN_MODEL = ("model_not_found", "not_found_error", "model_not_supported", "invalid_model")


def error_hint(error: LeporelloError, model: str, provider: str, address: str = "", *, in_chat: bool = True) -> str:
    """The sentence and the remedy; other errors speak for themselves. Outside a chat there is no message to keep."""
    if not isinstance(error, CallFailed):
        return str(error)
    verdict = error.verdict
    said = f" It said: {verdict.message}" if verdict.message else ""
    where = f"{provider} at {address}" if address else provider
    again = KEPT if in_chat else "Nothing was saved: try again."
    setting = " (model.base_url)" if in_chat else ""
    how = ": /model NAME" if in_chat else ""
    another = "Use another one: /model NAME." if in_chat else "Use another one: --model NAME."
    if verdict.kind is ErrorKind.AUTH:
        return f"{where} refused the key. Enter another one with: leporello setup.{said}"
    if verdict.cause == "connection":
        return f"There is no connection to {where}. Check the network and the address{setting}. {again}"
    if verdict.cause == "timeout":
        return f"{where} did not answer in time. {again}"
    if verdict.kind is ErrorKind.QUOTA:
        return f"The account at {where} has no credit left. Add credit, or use another model{how}.{said}"
    if verdict.kind is ErrorKind.RATE_LIMIT:
        return f"Requests to {where} come too often. Wait a little. {again}"
    if verdict.status == 404 or verdict.code in _UNKNOWN_MODEL:
        return f"{where} does not know the model {model}. {another}{said}"
    if verdict.kind is ErrorKind.TRANSIENT:
        return f"{where} is temporarily failing. {again}{said}"
    return str(error)
