"""Lanes: places where a scenario is told again and again from the same beginning, each with its process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.rows.proof import shelves
from tests.rows.proof.persons import Person
from tests.rows.proof.points import Point
from tests.rows.server import Server

_ROOT = Path(__file__).parents[3]
_PARTS = ("home", "files")


class Lane:
    """One place with a home, a folder and two databases, which can be put back to a mark."""

    def __init__(self, folder: Path, name: str, server: Server | None) -> None:
        self.folder = folder / name
        self.folder.mkdir()
        self.server = server
        engine, place = ("sqlite", str(self.folder)) if server is None else ("postgresql", str(server.socket))
        self.persons = {one: Person(engine, place, f"{name}_{one}") for one in ("main", "side")}
        self._kept: dict[tuple[str, str], shelves.Shelf] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.rows.proof.nursery"],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
        )

    def create(self) -> None:
        """Makes the databases."""
        for person in self.persons.values():
            if self.server is not None:
                with self.server.connect() as db:
                    db.execute(f"CREATE DATABASE {person.database} TEMPLATE template0 OWNER app".encode())
            person.create()

    def mark(self, name: str) -> None:
        """Keeps everything as it is under a name."""
        self._copy(self.folder, self.folder / name)
        for person in self.persons.values():
            if self.server is not None:
                self._kept[name, person.database] = shelves.kept(self.server, person.database)

    def restore(self, name: str) -> None:
        """Puts everything back to how it was when it was kept; whoever is connected is thrown out."""
        for part in _PARTS:
            shutil.rmtree(self.folder / part, ignore_errors=True)
        for path in self.folder.glob("*.db*"):
            path.unlink()
        self._copy(self.folder / name, self.folder)
        for person in self.persons.values():
            if self.server is not None:
                shelves.put_back(self.server, person.database, self._kept[name, person.database])

    def do(self, job: str, scenario: str, kill: Point | None = None) -> tuple[bool, list[dict[str, Any]]]:
        """Have a job done, and hear whether it was killed and what it told.

        With `kill` it dies there if it passes there.
        """
        told = self.folder / "told"
        told.unlink(missing_ok=True)
        told.touch()
        persons = {name: asdict(person) for name, person in self.persons.items()}
        request = {"job": job, "scenario": scenario, "place": str(self.folder), "told": str(told)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({**request, "persons": persons, "kill": kill}) + "\n")
        self._process.stdin.flush()
        end = int(self._process.stdout.readline())
        lines = [json.loads(line) for line in told.read_text().splitlines()]
        assert end == 0 or (kill and end == -signal.SIGKILL), (job, scenario, kill, end, *lines[-1:])
        return end != 0, lines

    def close(self) -> None:
        """Ends the process, and takes the databases away."""
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
        if self.server is not None:
            for person in self.persons.values():
                self.server.drop(person.database)

    def _copy(self, source: Path, to: Path) -> None:
        to.mkdir(exist_ok=True)
        for part in _PARTS:
            if (source / part).exists():
                shutil.copytree(source / part, to / part)
        for path in source.glob("*.db*"):
            shutil.copy(path, to / path.name)
