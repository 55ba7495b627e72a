"""Counters for Prometheus, and one line of log for each request: figures and names of routes, never content."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from functools import partial

import orjson
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from leporello.usage import CanonicalUsage

log = logging.getLogger("leporello.gateway")
_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """All counters of one process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=self.registry), partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, buckets=_BUCKETS, registry=self.registry)
        by_request = ["route", "status", "done"]
        self.requests = counter("leporello_requests", "Requests by route, status and what was done.", by_request)
        self.seconds = histogram("leporello_request_seconds", "Time until a request's end.", ["route"])
        self.planning = histogram("leporello_plan_seconds", "Time from a body to the request that is sent.")
        self.active = gauge("leporello_active_requests", "Requests under way.")
        self.recalls = counter("leporello_recalls", "Calls of the model that followed a recall answered here.")
        self.tokens = counter("leporello_tokens", "Tokens as providers counted them.", ["kind"])

    def count_usage(self, usage: CanonicalUsage) -> None:
        """Add what one call used."""
        for kind in ("input", "output", "cache_read", "cache_write"):
            self.tokens.labels(kind).inc(getattr(usage, f"{kind}_tokens"))

    def text(self) -> bytes:
        """The page that Prometheus reads."""
        return generate_latest(self.registry)


@dataclass(slots=True)
class RequestLog:
    """One request's line of log, filled in while it is served."""

    route: str
    metrics: Metrics
    began: float = 0.0
    status: int = 0
    done: str = ""
    key: str = ""
    conversation: str = ""
    problem: str = ""

    def __enter__(self) -> RequestLog:
        self.began = time.perf_counter()
        self.metrics.active.inc()
        return self

    def __exit__(self, *_: object) -> None:
        seconds = time.perf_counter() - self.began
        self.metrics.active.dec()
        self.metrics.requests.labels(self.route, str(self.status), self.done).inc()
        self.metrics.seconds.labels(self.route).observe(seconds)
        if log.isEnabledFor(logging.INFO):
            about = {"route": self.route, "status": self.status, "ms": round(seconds * 1000, 1), "done": self.done}
            whose = {"key": self.key, "conversation": self.conversation, "problem": self.problem}
            line = {name: value for name, value in {**about, **whose}.items() if value != ""}
            log.info(orjson.dumps(line).decode())
