"""A durable queue that all workers of one PostgreSQL database share, kept by `procrastinate`.

Its tables lie in a schema of their own, whose name tells which version of the tables it is: workers of two versions,
as during an upgrade, never meet in one table. Jobs of a worker that died are given to another one as soon as its
heartbeat has been missing for a few seconds. A database that goes away, or is not there yet, is waited for; one that is
silent keeps nobody from ending.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import TimeoutError as NotInTime
from contextlib import asynccontextmanager, suppress
from typing import Any

import procrastinate
import psycopg
from procrastinate import exceptions
from procrastinate.jobs import Status
from procrastinate.schema import SchemaManager
from psycopg import sql

from leporello.errors import LeporelloError
from leporello.gateway.background import Handler, QueuedJob
from leporello.store.postgres.database import BoundedAsyncConnection, BoundedConnection, network_options

CONCURRENCY = 2
BEAT_SECONDS = 3.0
DEAD_SECONDS = 10.0
POLL_SECONDS = 5.0
"""How often a worker looks for what it was not told of: jobs to be tried again, those of dead workers, and all of them
where a pooler stands between that passes no notifications on. Each look costs a millisecond of every worker."""
PAUSE_SECONDS = 1.0
SUBMIT_SECONDS = 5.0
CONNECT_SECONDS = 5
OPEN_SECONDS = 5.0
"""After so long without its database a worker serves what it can; jobs are taken in as soon as it is there."""
PREPARE_SECONDS = 30.0
"""Another worker that makes the tables may keep the server busy for so long."""
MOST_ATTEMPTS = 4
_LOCK = 0x4C455051
log = logging.getLogger("leporello.jobs")


class PostgresQueue:
    """A `JobQueue` that outlives the process."""

    def __init__(self, url: str, *, dead_seconds: float = DEAD_SECONDS) -> None:
        self._url = url
        self._dead_seconds = dead_seconds
        self.schema = (
            "leporello_jobs_" + hashlib.blake2b(SchemaManager.get_schema().encode(), digest_size=4).hexdigest()
        )
        self._app: procrastinate.App | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, job: QueuedJob) -> bool:
        app, loop = self._app, self._loop
        if app is None or loop is None:
            return False
        asked = asyncio.run_coroutine_threadsafe(_defer(app, job), loop)
        try:
            return asked.result(SUBMIT_SECONDS)
        except (exceptions.ConnectorException, psycopg.Error, NotInTime) as error:
            asked.cancel()
            log.warning('{"problem": "submit", "kind": "%s"}', type(error).__name__)
            return False

    @asynccontextmanager
    async def serving(self, handlers: Mapping[str, Handler]) -> AsyncIterator[None]:
        # Its own loggers print whole jobs and stack traces; what matters is said here.
        logging.getLogger("procrastinate").setLevel(logging.CRITICAL)
        logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
        opened = asyncio.Event()
        serving = asyncio.create_task(self._serve(handlers, opened))
        waiting = asyncio.create_task(opened.wait())
        await asyncio.wait((serving, waiting), timeout=OPEN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if serving.done():
            serving.result()
        try:
            yield
        finally:
            self._app = None
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    async def _serve(self, handlers: Mapping[str, Handler], opened: asyncio.Event) -> None:
        app = await self._opened(handlers)
        self._app, self._loop = app, asyncio.get_running_loop()
        opened.set()
        try:
            await asyncio.gather(self._work(app), self._rescue(app))
        finally:
            await app.close_async()

    async def _opened(self, handlers: Mapping[str, Handler]) -> procrastinate.App:
        """The queue, as soon as its database is there."""
        while True:
            try:
                await asyncio.to_thread(self._prepare)
                app = procrastinate.App(connector=self._connector())
                for kind, handler in handlers.items():
                    # Named by the kind of job, not by where the code stands: workers of another version know it, too.
                    app.task(name=kind, queue="leporello", retry=_RETRY)(_task(handler))
                await app.open_async()
            except (exceptions.ConnectorException, psycopg.OperationalError) as error:
                log.warning('{"problem": "queue", "kind": "%s"}', type(error).__name__)
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                return app

    def _connector(self) -> procrastinate.PsycopgConnector:
        known = psycopg.conninfo.conninfo_to_dict(self._url)
        given = known.get("options") or ""
        return procrastinate.PsycopgConnector(
            conninfo=self._url,
            connection_class=BoundedAsyncConnection,
            kwargs={
                "options": f"{given} -c search_path={self.schema},public",
                "connect_timeout": CONNECT_SECONDS,
                **network_options(known, BoundedAsyncConnection.answer_seconds),
            },
            min_size=1,
            max_size=3,
            timeout=SUBMIT_SECONDS,
        )

    def _prepare(self) -> None:
        """Make the tables where they are missing; several workers may come at the same time."""
        with BoundedConnection.connect(self._url, connect_timeout=CONNECT_SECONDS) as connection:
            connection.answer_seconds = PREPARE_SECONDS
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            there = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (self.schema,)).fetchone()
            if there is None:
                name = sql.Identifier(self.schema)
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))
                connection.execute(sql.SQL("SET LOCAL search_path TO {}, public").format(name))
                connection.execute(SchemaManager.get_schema().encode())

    async def _work(self, app: procrastinate.App) -> None:
        """Do jobs for as long as this process serves; a lost database ends the worker, and another one is begun."""
        # A worker that is told to end while the database is away says that it is away, not that it was told to end.
        while self._app is app:
            try:
                # The server tells of new jobs. A line to it that is lost, and can't be made again, ends the worker.
                await app.run_worker_async(
                    queues=["leporello"],
                    concurrency=CONCURRENCY,
                    install_signal_handlers=False,
                    listen_notify=True,
                    fetch_job_polling_interval=POLL_SECONDS,
                    abort_job_polling_interval=60.0,
                    update_heartbeat_interval=BEAT_SECONDS,
                    stalled_worker_timeout=self._dead_seconds,
                    delete_jobs="always",
                )
            except (exceptions.ProcrastinateException, psycopg.Error) as error:
                log.warning('{"problem": "queue", "kind": "%s"}', type(error).__name__)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _rescue(self, app: procrastinate.App) -> None:
        """Give jobs of dead workers to living ones."""
        while True:
            await asyncio.sleep(self._dead_seconds / 2)
            with suppress(exceptions.ProcrastinateException, psycopg.Error):
                for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=self._dead_seconds):
                    try:
                        await app.job_manager.retry_job(job)
                    except exceptions.AlreadyEnqueued:
                        # The same work waits already.
                        await app.job_manager.finish_job(job, Status.FAILED, delete_job=True)


_RETRY = procrastinate.RetryStrategy(max_attempts=MOST_ATTEMPTS, exponential_wait=2, retry_exceptions=[LeporelloError])


def _task(handler: Handler) -> Callable[..., None]:
    def task(**facts: Any) -> None:
        handler(facts)

    return task


async def _defer(app: procrastinate.App, job: QueuedJob) -> bool:
    with suppress(exceptions.AlreadyEnqueued):
        await app.configure_task(job.kind, queueing_lock=job.key).defer_async(**job.facts)
    return True
