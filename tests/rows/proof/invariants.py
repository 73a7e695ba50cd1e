"""What must be true of a log, a journal and tables, whatever happened to the processes that wrote them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from takeback import Kernel
from tests.rows.proof.persons import Rows, written

LOG = "SELECT * FROM undo_acted ORDER BY seq"
OPEN = ("pending", "undoing", "unknown")
Row = dict[str, Any]


async def log(kernel: Kernel, sql: str = LOG) -> list[Row]:
    """Rows straight from the kernel's database."""
    return await kernel.store.read(lambda db: [dict(row) for row in db.execute(sql)])


def require_settled(rows: Sequence[Row]) -> None:
    """No row is left open or unsure, or held by anybody."""
    assert [row for row in rows if row["state"] in OPEN or row["lease_owner"] is not None] == []


def require_agreement(
    rows: Sequence[Row], journals: Mapping[str, Sequence[Row]], *, parts: bool = False
) -> None:
    """The log and the journals say the same: nothing is lost, nothing is there twice, and no row lies.

    Of what was taken back in `parts`, or by somebody's hand before that, the journal does not know
    that it is taken back, or that it is done again.
    """
    named: Counter[tuple[str, str]] = Counter()
    entries = {
        (name, each["id"]): each
        for name, journal in journals.items()
        for each in journal
        if each["kind"] in ("act", "undo")  # another bars an entry from ever coming
    }
    ours = [row for row in rows if row["tool"].startswith("rows.")]
    for row in ours:
        inverse = json.loads(row["inverse_input"])
        place = (inverse["database"], inverse["entry"])
        if row["state"] == "abandoned":
            assert place not in entries, ("abandoned, and yet it happened", row)
            continue
        assert place in entries, ("it is said to have happened", row)
        named[place] += 1
        if row["role"] == "act":
            undone = entries[place]["undone_in"] is not None
            assert parts or undone == (row["state"] == "undone"), (row, entries[place])
    assert set(named) == set(entries), ("entries that no row tells of", set(entries) - set(named))
    assert set(named.values()) <= {1}


def require_whole(
    journal: Sequence[Row],
    first: Rows,
    now: Rows,
    *,
    deltas: Mapping[str, Sequence[str]] | None = None,
    live: bool = True,
    strange: Collection[Any] = (),
) -> None:
    """The journal's entries, one after the other, lead from the first rows to those of now.

    Each finds the rows as the one before left them, so none has overwritten what it did not know. So do the
    acts alone that stand (`live`), column by column, of `deltas` what they added. `strange` are (table, key)
    that others have written to.
    """
    full = {table: dict(rows) for table, rows in first.items()}
    standing = {table: dict(rows) for table, rows in first.items()}
    for entry in journal:
        shapes = json.loads(entry["shapes"])
        for table, before, after in _changes(entry):
            keys = [shapes[table]["c"].index(name) for name in shapes[table]["k"]]
            _apply(full[table], keys, before, after, table, entry["id"], strange)
            if entry["kind"] == "act" and entry["undone_in"] is None:
                columns = shapes[table]["c"]
                added = {columns.index(name) for name in (deltas or {}).get(table, ())}
                _set(standing[table], keys, before, after, added)
    for which in (full, standing) if live else (full,):
        _require_same(which, now, strange)


def _apply(
    rows: dict[Any, Any], keys: list[int], before: Any, after: Any, table: str, id: str, strange: Any
) -> None:
    if before is not None:
        key = tuple(before[at] for at in keys)
        found = rows.pop(key, None)
        assert found == before or (table, key) in strange, ("lost update", id, table, before, found)
    if after is not None:
        key = tuple(after[at] for at in keys)
        assert key not in rows or (table, key) in strange, ("overwritten", id, table, after, rows[key])
        rows[key] = after


def _set(rows: dict[Any, Any], keys: list[int], before: Any, after: Any, added: set[int]) -> None:
    """Of an update only what it set; the rest is whatever others made of it."""
    if before is None or after is None:
        image = before if after is None else after
        key = tuple(image[at] for at in keys)
        if after is None:
            rows.pop(key, None)
        else:
            rows[key] = after
        return
    key = tuple(before[at] for at in keys)
    now = rows.pop(key, before)
    made = tuple(
        _moved(a, b, c) if at in added else c if b != c else a
        for at, (a, b, c) in enumerate(zip(now, before, after, strict=True))
    )
    rows[tuple(made[at] for at in keys)] = made


def _moved(now: str, before: str, after: str) -> str:
    """A number as an act moves it on, in the way it is written."""
    numbers = [int(json.loads(each)) for each in (now, before, after)]
    made = numbers[0] + numbers[2] - numbers[1]
    return json.dumps(str(made) if now.startswith('"') else made)


def _require_same(found: Rows, now: Rows, strange: Collection[Any]) -> None:
    for table in now:
        for key in {*found.get(table, {}), *now[table]}:
            if (table, key) not in strange:
                assert found[table].get(key) == now[table].get(key), (table, key)


def _changes(entry: Row) -> list[tuple[str, Any, Any]]:
    made = []
    for line in json.loads(entry["changes"]):
        if len(line) == 3:
            table, before, after = line
        else:
            table, before, places, values = line
            after = list(before)
            for place, value in zip(places, values, strict=True):
                after[place] = value
        made.append((table, _image(before), _image(after)))
    return made


def _image(values: Any) -> Any:
    """A row as `Person.rows` tells it; tagged values are JSON objects in both."""
    return None if values is None else tuple(map(_written, values))


def _written(value: Any) -> str:
    return (
        written(bytes.fromhex(value["x"])) if isinstance(value, dict) and "x" in value else json.dumps(value)
    )
