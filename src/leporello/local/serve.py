"""The server process: `python -m leporello.local.serve`, started by `LocalServer` and by nobody else.

It reads one JSON line (what to serve), prints one JSON line (where it listens), and ends when its input does: that is
when the program that started it closes the pipe or is gone, killed included. Everything else it says goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import Any


def main() -> None:
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever the library prints must not look like our answer
    job = json.loads(sys.stdin.readline())
    if job["runtime"]:
        sys.path.insert(0, job["runtime"])
    server = _start(job)
    os.write(answers, (json.dumps({"url": server.listening_address}) + "\n").encode())
    sys.stdin.read()
    # Orderly destruction would wait for an answer that nobody reads any more.
    os._exit(0)


def _start(job: dict[str, Any]) -> Any:
    library = import_module("xllamacpp")
    params = library.CommonParams()
    params.model.path = job["model"]
    params.model_alias = {job["alias"]}
    params.n_ctx = job["window"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [job["key"]]
    params.endpoint_slots = False  # it would show the conversation
    params.ui = False
    params.n_parallel = 1
    # Two threads wait for each other at every step: beside any busy program one alone is several times faster.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.cache_ram_mib = 256
    params.sampling.temp = 0.2
    params.sampling.top_p = 0.9
    # Without these a model of this size repeats itself until the window is full.
    params.sampling.penalty_repeat = 1.1
    params.sampling.penalty_last_n = 256
    params.sampling.dry_multiplier = 0.8
    params.verbosity = 2
    return library.Server(params)


if __name__ == "__main__":
    main()
