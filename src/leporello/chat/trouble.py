"""What went wrong in a turn, in one sentence, and what to do about it."""

from __future__ import annotations

from leporello.errors import LeporelloError
from leporello.providers.errors import CallFailed, ErrorKind

KEPT = "Your message is kept: say `go on` to send it again."
_UNKNOWN_MODEL = ("model_not_found", "not_found_error", "model_not_supported", "invalid_model")


def advice(error: LeporelloError, model: str, provider: str, address: str = "") -> str:
    """The sentence and the remedy; other errors speak for themselves."""
    if not isinstance(error, CallFailed):
        return str(error)
    verdict = error.verdict
    said = f" It said: {verdict.message}" if verdict.message else ""
    where = f"{provider} at {address}" if address else provider
    if verdict.kind is ErrorKind.AUTH:
        return f"{where} refused the key. Enter another one with: leporello setup.{said}"
    if verdict.cause == "connection":
        return f"There is no connection to {where}. Check the network and the address (model.base_url). {KEPT}"
    if verdict.cause == "timeout":
        return f"{where} did not answer in time. {KEPT}"
    if verdict.kind is ErrorKind.QUOTA:
        return f"The account at {where} has no credit left. Top it up, or take another model: /model NAME.{said}"
    if verdict.kind is ErrorKind.RATE_LIMIT:
        return f"{where} is being asked too often. Wait a little. {KEPT}"
    if verdict.status == 404 or verdict.code in _UNKNOWN_MODEL:
        return f"{where} does not know the model {model}. Take another one: /model NAME.{said}"
    if verdict.kind is ErrorKind.TRANSIENT:
        return f"{where} failed for the moment. {KEPT}{said}"
    return str(error)
