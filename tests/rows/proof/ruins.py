"""What a kill left, told so that two ruins of the same content are told the same."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.rows.proof.persons import Person

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}")
_ROWS = (
    "SELECT id, role, session, parent, subject, tool, input, summary, inverse_tool, inverse_input, state,"
    " reason, error, tries, undone_in, redone_in, lease_owner IS NULL FROM undo_acted ORDER BY seq"
)
_TOUCHED = (
    "SELECT a.id, t.resource, t.before, t.after FROM undo_touched t JOIN undo_acted a ON a.seq = t.act"
    " ORDER BY a.seq, t.resource"
)
_JOURNAL = ("id", "kind", "changes", "undoes", "undone_in")


def content(place: Path, persons: Iterable[Person]) -> str:
    """All that decides what becomes of a ruin, with its ids replaced by their order.

    Files are read in a copy, since who opens them repairs them.
    """
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(shutil.copytree(place / "home", Path(folder) / "home"))
        for path in place.glob("*.db*"):
            shutil.copy(path, folder)
        told = [_log(copied), *(_person(one, folder) for one in persons), _files(place / "files")]
    text = json.dumps(told, default=str)
    for index, id in enumerate(dict.fromkeys(_ID.findall(text))):
        text = text.replace(id, f"#{index}")
    return text


def _log(home: Path) -> list[Any]:
    [database] = home.rglob("takeback.db")
    with closing(sqlite3.connect(database)) as db:
        return [db.execute(_ROWS).fetchall(), db.execute(_TOUCHED).fetchall()]


def _person(person: Person, folder: str) -> list[Any]:
    here = replace(person, place=folder) if person.engine == "sqlite" else person
    return [here.dump(), [[entry[name] for name in _JOURNAL] for entry in here.journal()]]


def _files(folder: Path) -> list[tuple[str, str]]:
    return [(path.name, path.read_text()) for path in sorted(folder.rglob("*")) if path.is_file()]
