"""Serves headroom's compression to a replay, without a network. Executed by that package's own interpreter.

Argument: window. Reads one JSON object per line, `{"new": [...]}`: the messages since the last one, as a client's next
request would bring them. Answers with what the compression makes of the whole list, as the library does it for each
request by its defaults.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import Any


def main(window: str) -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    logging.disable(logging.CRITICAL)
    from headroom import compress

    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the package prints is no answer
    messages: list[Any] = []
    for line in sys.stdin:
        messages += json.loads(line)["new"]
        done = compress(messages, model="claude-sonnet-4-5", model_limit=int(window))
        answers.write(json.dumps({"messages": done.messages}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
