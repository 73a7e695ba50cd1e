"""A notebook in a folder: each note a file, each change durable and whole whatever kills the process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from takeback import faults
from tests.undo.notebook import Notebook


@dataclass
class Cabinet(Notebook):
    """Writes down what it will change, changes it file by file, and finishes that when opened again."""

    folder: Path = Path()

    def __post_init__(self) -> None:
        (self.folder / "notes").mkdir(parents=True, exist_ok=True)
        self._decided = self.folder / "decided"
        if self._decided.exists():
            self._carry_out(json.loads(self._decided.read_text()))
        self.values = self.read()

    def read(self) -> dict[str, str]:
        """The notes that are in the files."""
        return {unquote(path.name): path.read_text() for path in sorted((self.folder / "notes").iterdir())}

    def apply(self, changes: Mapping[str, str | None]) -> None:
        faults.point("cabinet.deciding")
        _write(self._decided, json.dumps(dict(changes)))
        faults.point("cabinet.decided")
        self._carry_out(changes)
        super().apply(changes)

    def _carry_out(self, changes: Mapping[str, str | None]) -> None:
        for key, value in changes.items():
            path = self.folder / "notes" / quote(key, safe="")
            if value is None:
                path.unlink(missing_ok=True)
            else:
                _write(path, value)
            faults.point("cabinet.replaced")
        _sync(self.folder / "notes")
        self._decided.unlink()
        _sync(self.folder)
        faults.point("cabinet.cleared")


def _write(path: Path, text: str) -> None:
    part = path.parent.parent / "part" if path.parent.name == "notes" else path.with_name("part")
    with part.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
