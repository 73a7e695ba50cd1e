"""Random tables: keys of all kinds, references, unique columns, and triggers that write down."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

_TYPES = {
    "integer": {"sqlite": "INTEGER", "postgresql": "bigint"},
    "text": {"sqlite": "TEXT", "postgresql": "text"},
    "uuid": {"sqlite": "TEXT", "postgresql": "uuid"},
}
_POOL: dict[str, list[Any]] = {
    "integer": [1, 2, 3, 4],
    "text": ["a", "B", "b c", ""],
    "uuid": [f"0000000{n}-0000-4000-8000-00000000000{n}" for n in (1, 2, 3)],
}
_ACTIONS = ("CASCADE", "SET NULL", "NO ACTION")
LOG = {
    "sqlite": "CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT)",
    "postgresql": "CREATE TABLE log (id bigserial PRIMARY KEY, what text)",
}
_TRIGGER = {
    "sqlite": "CREATE TRIGGER log_{0} AFTER UPDATE OF v ON {0}"
    " BEGIN INSERT INTO log (what) VALUES ('{0} ' || coalesce(OLD.v, 0)); END",
    "postgresql": "CREATE FUNCTION log_{0}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " INSERT INTO log (what) VALUES ('{0} ' || coalesce(OLD.v, 0)); RETURN NULL; END $$;"
    " CREATE TRIGGER log_{0} AFTER UPDATE OF v ON {0} FOR EACH ROW EXECUTE FUNCTION log_{0}()",
}


@dataclass(frozen=True)
class Sketch:
    """One table: the kinds of its key's columns, what it refers to and how, and what else is special of it.

    Each has a number `v` and a text `w` as well, and `up` where it refers to a table.
    """

    name: str
    key: tuple[str, ...]
    up: str | None
    up_kind: str
    action: str
    unique: bool
    logged: bool

    @property
    def keys(self) -> list[str]:
        """The names of the key's columns."""
        return [f"k{number}" for number in range(len(self.key))]

    def some_key(self, chance: Random) -> dict[str, Any]:
        """A key that a row may have."""
        return {name: chance.choice(_POOL[kind]) for name, kind in zip(self.keys, self.key, strict=True)}

    def some_up(self, chance: Random) -> Any:
        """What a row may refer to."""
        return chance.choice([None, *_POOL[self.up_kind]])

    def statements(self, engine: str) -> list[str]:
        """The SQL that makes it."""
        columns = [f"{n} {_TYPES[k][engine]} NOT NULL" for n, k in zip(self.keys, self.key, strict=True)]
        columns += [f"v {_TYPES['integer'][engine]}", "w TEXT UNIQUE" if self.unique else "w TEXT"]
        if self.up is not None:
            columns.append(f"up {_TYPES[self.up_kind][engine]} REFERENCES {self.up} ON DELETE {self.action}")
        columns.append(f"PRIMARY KEY ({', '.join(self.keys)})")
        made = [f"CREATE TABLE {self.name} ({', '.join(columns)})"]
        return made + ([_TRIGGER[engine].format(self.name)] if self.logged else [])


def drawn(chance: Random) -> list[Sketch]:
    """Some tables, each of which may refer to itself or to one before it."""
    made: list[Sketch] = []
    for number in range(chance.randint(2, 4)):
        name = f"t{number}"
        key = chance.choice((("integer",), ("text",), ("uuid",), ("integer", "text")))
        kinds = {one.name: one.key[0] for one in made if len(one.key) == 1}
        if len(key) == 1:
            kinds[name] = key[0]
        up = chance.choice([None, *kinds])
        action, unique, logged = chance.choice(_ACTIONS), chance.random() < 0.4, chance.random() < 0.3
        made.append(Sketch(name, key, up, kinds.get(up or "", "integer"), action, unique, logged))
    return made
