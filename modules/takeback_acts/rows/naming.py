"""Naming: files that a column names, kept when their row goes or comes to name another.

Whoever deletes such a file does it afterwards, and past the log more often than not. So its bytes are kept
before the row's change is committed, and an act beneath the row's own says that the file is gone from here
on: to take the row back is to take that back too. A file that is still there stays as it is.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import TimeoutError as OutOfTime
from dataclasses import dataclass

from takeback.context import Context, Scope
from takeback.errors import TakebackError
from takeback.module import Host
from takeback_acts.rows import told
from takeback_acts.rows.changes import Change
from takeback_acts.rows.settings import RowsSettings
from takeback_acts.rows.tables import Catalog, Image, Table

_BEGIN, _END = "files.begin_edit", "files.end_edit"
_PLACE = "{}"
# One call of files takes no more paths.
_MOST = 256


@dataclass(frozen=True, slots=True)
class Named:
    """A column that names a file: `before` and `after` are what its path has around the value."""

    table: str
    column: str
    before: str
    after: str

    @property
    def folder(self) -> str:
        """The folder that each of its files lies in."""
        return self.before.rpartition("/")[0] or "/"

    def path(self, value: object) -> str | None:
        """The file of a value; None for what is none, or would lie elsewhere."""
        if value is None or isinstance(value, bytes) or str(value) in ("", "."):
            return None
        text = str(value)
        if not self.after and text.startswith(self.before):
            text = text[len(self.before) :]
        path = f"{self.before}{text}{self.after}"
        inside = os.path.normpath(path) == path and path.startswith(self.folder.rstrip("/") + "/")
        return path if inside and "\0" not in path else None


def named(settings: RowsSettings, database: str) -> tuple[Named, ...]:
    """The columns of a database that name files, as the person declared them."""
    return tuple(_named(database, one) for one in settings.files if one.startswith(f"{database}."))


def _named(database: str, written: str) -> Named:
    column, _, where = written.partition("=")
    table, _, name = column.strip()[len(database) + 1 :].rpartition(".")
    before, place, after = where.strip().partition(_PLACE)
    if not place:
        before = before.rstrip("/") + "/"
    return Named(table, name, before, after)


def left(columns: Sequence[Named], changes: Sequence[Change], catalog: Catalog) -> dict[str, str]:
    """The files that rows named and name no more, each with its folder."""
    by_table: dict[str, list[Named]] = {}
    for one in columns:
        by_table.setdefault(one.table, []).append(one)
    found: dict[str, str] = {}
    kept: set[str] = set()
    for change in changes:
        table = catalog.tables[change.table]
        for one in by_table.get(change.table, ()):
            before, after = _path(one, table, change.before), _path(one, table, change.after)
            if before is not None:
                found[before] = one.folder
            if after is not None:
                kept.add(after)
    return {path: folder for path, folder in found.items() if path not in kept}


def _path(one: Named, table: Table, image: Image | None) -> str | None:
    if image is None or not table.has(one.column):
        return None
    return one.path(image[table.index(one.column)])


class Naming:
    """Knows which columns name files, and keeps those files for acts."""

    def __init__(self, host: Host, settings: RowsSettings) -> None:
        self._host = host
        self._settings = settings
        self._columns: dict[str, tuple[Named, ...]] = {}

    def of(self, ctx: Context, database: str, tool: str, act: str) -> Leaving:
        """What one act on a database leaves of files."""
        if database not in self._columns:
            self._columns[database] = named(self._settings, database)
        columns = self._columns[database]
        if columns and self._host.tools.get(_BEGIN) is None:
            self._host.log.warning("Files that %s names are not kept: the files module is off", database)
            columns = ()
        return Leaving(self._host, ctx, columns, database, tool, act)


class Leaving:
    """The files that one act leaves without a row that names them."""

    def __init__(
        self, host: Host, ctx: Context, columns: Sequence[Named], database: str, tool: str, act: str
    ) -> None:
        self._log = host.log
        self._ctx = ctx
        self._columns = columns
        self._database = database
        self._tool = tool
        self._act = act
        self._loop = asyncio.get_running_loop()
        self._kept: list[tuple[str, list[str]]] = []
        self._folders: set[str] = set()

    def keep(self, changes: Sequence[Change], catalog: Catalog, seconds: float) -> None:
        """On the worker's thread: their bytes are durable when it returns. Raises what keeping raises."""
        if not self._columns:
            return
        found = left(self._columns, changes, catalog)
        if not found:
            return
        kept = asyncio.run_coroutine_threadsafe(self._begin(found), self._loop)
        try:
            kept.result(seconds)
        except OutOfTime:
            kept.cancel()
            raise told.ended(self._database) from None

    async def end(self, *, gone: bool) -> None:
        """The rows name them no more, or, when the act did not come true, still do."""
        for edit, paths in self._kept:
            images = [{"path": path} for path in paths] if gone else None
            try:
                await self._scoped().call(_END, {"id": edit, "images": images})
            except TakebackError as error:
                self._log.warning("Files that a row named are kept and not in the log: %s", error.code)

    async def _begin(self, found: Mapping[str, str]) -> None:
        self._folders = set(found.values())
        for number, paths in enumerate(_parts(list(found))):
            edit = f"rows-{self._act}-{number}"
            self._kept.append((edit, paths))
            begun = await self._scoped().call(_BEGIN, {"id": edit, "paths": paths, "tool": self._tool})
            for note in begun.notes:
                self._log.warning("A file that a row named is %s", note)

    def _scoped(self) -> Context:
        """The person declared where these files are; who may write the rows need not be granted the files."""
        return self._ctx._replace(scope=Scope(roots=tuple(sorted(self._folders))))


def _parts(paths: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(paths), _MOST):
        yield paths[start : start + _MOST]
