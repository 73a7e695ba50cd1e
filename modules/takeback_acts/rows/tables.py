"""Tables: what a database says of its own, as far as the journal has to know it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import eq, itemgetter
from typing import Literal, TypeAlias

from takeback.errors import NotFoundError, RefusedError

Value: TypeAlias = "int | float | str | bytes | None"
"""SQLite: the stored value with its storage class. PostgreSQL: None, or the type's exact text output."""

Image: TypeAlias = "tuple[Value, ...]"
"""A whole row, in the order of `Table.columns`."""

Key: TypeAlias = "tuple[Value, ...]"
"""What names a row, in the order of `Table.key`."""

Fold: TypeAlias = Callable[[Value], Value]
"""Brings values that the database takes for equal to one form."""

_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    `type` is the text the database declares it with. `generated`: computed by the database, so never written.
    `collation` names what a text compares by, "" for plain bytes. `fold` is set where two values that differ
    can be equal to the database, which matters in a key; see `nocase` and `rtrim` for SQLite's own.
    `default` is an expression of SQL, None where there is none.
    """

    name: str
    type: str
    nullable: bool
    generated: bool = False
    identity: Literal["", "default", "always"] = ""
    collation: str = ""
    fold: Fold | None = field(default=None, compare=False)
    default: str | None = None


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns that name a row of another table, or of the same. The actions are in capitals: "CASCADE"."""

    name: str
    columns: tuple[str, ...]
    to: str
    to_columns: tuple[str, ...]
    on_delete: str = "NO ACTION"
    on_update: str = "NO ACTION"
    deferrable: bool = False


@dataclass(frozen=True, slots=True)
class Unique:
    """Columns that no two rows share; none are named where it is an expression. The key is not among them.

    `partial`: among some of the rows only, and which these are depends on other columns too.
    """

    name: str
    columns: tuple[str, ...] = ()
    deferrable: bool = False
    partial: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Table:
    """One table: `name` is "skill", or "schema.skill" outside of the default schema.

    `triggers` are the person's own. `fingerprint` is 64 hex digits that change with names, types, generated
    and identity columns and the key. `loose`: values that are equal may be of different types. `checks`: the
    database may refuse values by more than is listed here.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()
    uniques: tuple[Unique, ...] = ()
    triggers: tuple[str, ...] = ()
    fingerprint: str = ""
    loose: bool = False
    checks: bool = True
    names: tuple[str, ...] = field(init=False, compare=False, repr=False)
    key_of: Callable[[Image], Key] = field(init=False, compare=False, repr=False)
    keys_of: Callable[[Iterable[Image]], Iterable[Key]] = field(init=False, compare=False, repr=False)
    writable: tuple[Column, ...] = field(init=False, compare=False, repr=False)
    equal: Callable[[Image, Image], bool] = field(init=False, compare=False, repr=False)
    places: tuple[int, ...] = field(init=False, compare=False, repr=False)
    key_places: frozenset[int] = field(init=False, compare=False, repr=False)
    _places: dict[str, int] = field(init=False, compare=False, repr=False)
    _folds: tuple[Fold | None, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        places = {column.name: place for place, column in enumerate(self.columns)}
        keys = [places[name] for name in self.key]
        folds = tuple(self.columns[place].fold for place in keys)
        made = {
            "names": tuple(places),
            "key_of": _picker(keys),
            "keys_of": _pickers(keys),
            "writable": tuple(column for column in self.columns if not column.generated),
            "fingerprint": self.fingerprint or _fingerprint(self.columns, self.key),
            "equal": identical if self.loose else eq,
            "places": tuple(places.values()),
            "key_places": frozenset(keys),
            "_places": places,
            "_folds": folds if any(folds) else (),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def index(self, column: str) -> int:
        """Where the column is in an image. NotFoundError("rows.column") when there is none of that name."""
        place = self._places.get(column)
        if place is None:
            raise NotFoundError("rows.column", f"{self.name} has no column {column}.")
        return place

    def differing(self, one: Image, other: Image) -> list[int]:
        """Where two images differ, by type or value."""
        if self.loose:
            return [place for place in self.places if not same(one[place], other[place])]
        return [place for place in self.places if one[place] != other[place]]

    def has(self, column: str) -> bool:
        """Whether there is a column of that name."""
        return column in self._places

    @property
    def folds(self) -> bool:
        """Whether keys that differ may name one row."""
        return bool(self._folds)

    def identify(self, key: Key) -> Key:
        """The key in the one form of all that the database takes for equal to it: what a row is known by."""
        if not self._folds:
            return key
        return tuple(fold(value) if fold else value for fold, value in zip(self._folds, key, strict=True))


@dataclass(frozen=True)
class Catalog:
    """The tables that can be journaled, and why the others can't be.

    `watched` are those of the refused that tell when a row of theirs changes.
    `stamp` tells two states of the schema apart, as far as the dialect can tell cheaply.
    """

    tables: Mapping[str, Table]
    refused: Mapping[str, str]
    stamp: str = ""
    watched: tuple[str, ...] = ()

    def table(self, name: str) -> Table:
        """The table. RefusedError("rows.unjournaled") with the reason, NotFoundError("rows.table")."""
        found = self.tables.get(name)
        if found is not None:
            return found
        if name in self.refused:
            raise RefusedError("rows.unjournaled", f"{name} can't be journaled: {self.refused[name]}.")
        raise NotFoundError("rows.table", f"There is no table {name}.")


def identical(one: Image, other: Image) -> bool:
    """Whether two images are the same by type and value: 1 is not 1.0, and -0.0 is not 0.0."""
    if one is other:
        return True
    return one == other and all(map(same, one, other))


def same(a: object, b: object) -> bool:
    """Whether two values are the same by type and value."""
    if a is b:
        return True
    return a == b and type(a) is type(b) and (bool(a) or type(a) is not float or repr(a) == repr(b))


def nocase(value: Value) -> Value:
    """SQLite's NOCASE: the letters of ASCII, large or small, are one."""
    return value.translate(_LOWER) if isinstance(value, str) else value


def rtrim(value: Value) -> Value:
    """SQLite's RTRIM: spaces at the end do not count."""
    return value.rstrip(" ") if isinstance(value, str) else value


def _picker(places: list[int]) -> Callable[[Image], Key]:
    if len(places) == 1:
        place = places[0]
        return lambda image: (image[place],)
    if not places:
        return lambda image: ()
    return itemgetter(*places)


def _pickers(places: list[int]) -> Callable[[Iterable[Image]], Iterable[Key]]:
    """The keys of many images, without a step in Python for each."""
    if len(places) == 1:
        one = itemgetter(places[0])
        return lambda images: zip(map(one, images))
    several = _picker(places)
    return lambda images: map(several, images)


def _fingerprint(columns: tuple[Column, ...], key: tuple[str, ...]) -> str:
    shape = [[[c.name, c.type, c.generated, c.identity] for c in columns], list(key)]
    text = json.dumps(shape, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
