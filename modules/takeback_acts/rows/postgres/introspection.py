"""Introspection: what a PostgreSQL database says of its tables."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from takeback_acts.rows.dialect import Link
from takeback_acts.rows.postgres.checked import CHECKED
from takeback_acts.rows.postgres.stamps import shape, stamp_sql
from takeback_acts.rows.postgres.tables import DEFAULT_SCHEMA, Guarded, PostgresCatalog, PostgresTable
from takeback_acts.rows.postgres.types import Types, quoted
from takeback_acts.rows.tables import Column, Fold, ForeignKey, Table, Unique

_ACTIONS = {"a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}
_IDENTITIES: Mapping[str, Literal["", "default", "always"]] = {"": "", "d": "default", "a": "always"}

_RELATIONS = f"""
SELECT c.oid::int8, n.nspname::text, c.relname::text, c.relkind::text, c.relnatts::int4,
    pg_catalog.pg_has_role(c.relowner, 'USAGE'), c.relhasrules, c.relforcerowsecurity, c.relispartition,
    pg_catalog.has_schema_privilege(n.oid, 'USAGE'),
    pg_catalog.has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE'),
    EXISTS (SELECT FROM pg_catalog.pg_partitioned_table p WHERE p.partrelid = c.oid), {CHECKED}
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'f') AND c.relpersistence <> 't'
    AND n.nspname <> 'information_schema' AND NOT pg_catalog.starts_with(n.nspname::text, 'pg_')
    AND NOT pg_catalog.starts_with(c.relname::text, 'takeback_')
ORDER BY 2, 3
"""
_COLUMNS = """
SELECT a.attrelid::int8, a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod), a.atttypid::int8,
    NOT a.attnotnull, a.attgenerated::text, a.attidentity::text, coalesce(l.collname::text, ''),
    coalesce(l.collisdeterministic, true), pg_catalog.pg_get_expr(d.adbin, d.adrelid), a.attnum::int4
FROM pg_catalog.pg_attribute a
LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation AND l.collname <> 'default'
LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = ANY(%s::pg_catalog.oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""
_INDEXES = """
SELECT i.indrelid::int8, x.relname::text, i.indisprimary, coalesce(k.condeferrable, false),
    ARRAY(SELECT i.indkey[n] FROM pg_catalog.generate_series(0, i.indnkeyatts - 1) n)::text,
    CASE WHEN i.indisprimary THEN ARRAY(
        SELECT pg_catalog.quote_ident(s.nspname) || '.' || o.oprname
        FROM pg_catalog.generate_series(0, i.indnkeyatts - 1) n
        JOIN pg_catalog.pg_opclass c ON c.oid = i.indclass[n]
        JOIN pg_catalog.pg_amop m ON m.amopfamily = c.opcfamily AND m.amopstrategy = 3
            AND m.amoplefttype = c.opcintype AND m.amoprighttype = c.opcintype
        JOIN pg_catalog.pg_operator o ON o.oid = m.amopopr
        JOIN pg_catalog.pg_namespace s ON s.oid = o.oprnamespace
        ORDER BY n) ELSE '{}' END::text,
    i.indpred IS NOT NULL
FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid
LEFT JOIN pg_catalog.pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x')
WHERE i.indrelid = ANY(%s::pg_catalog.oid[]) AND (i.indisunique OR i.indisexclusion) AND i.indislive
ORDER BY 1, 2
"""
_REFERENCES = """
SELECT k.conrelid::int8, k.conname::text, k.conkey::text, k.confrelid::int8, k.confkey::text,
    k.confdeltype::text, k.confupdtype::text, k.condeferrable
FROM pg_catalog.pg_constraint k
WHERE k.contype = 'f' AND k.conparentid = 0 AND k.conrelid = ANY(%s::pg_catalog.oid[])
ORDER BY 1, 2
"""
_TRIGGERS = """
SELECT t.tgrelid::int8, t.tgname::text, t.tgconstraint <> 0 AND t.tgdeferrable AND t.tginitdeferred,
    n.nspname::text
FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE NOT t.tgisinternal AND t.tgparentid = 0 AND t.tgrelid = ANY(%s::pg_catalog.oid[])
    AND NOT pg_catalog.starts_with(t.tgname::text, 'takeback_')
ORDER BY 1, 2
"""
_ROOTS = (
    "SELECT o, pg_catalog.pg_partition_root(o::pg_catalog.oid)::int8 FROM pg_catalog.unnest(%s::int8[]) o"
)


@dataclass(frozen=True)
class _Relation:
    oid: int
    schema: str
    relation: str
    kind: str
    width: int
    owned: bool
    rules: bool
    forced: bool
    partition: bool
    usable: bool
    writable: bool
    partitioned: bool
    checked: bool

    @property
    def name(self) -> str:
        return self.relation if self.schema == DEFAULT_SCHEMA else f"{self.schema}.{self.relation}"

    @property
    def full(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.relation)}"


class Reader:
    """Reads everything once. Tables that are `outside` are not guarded where they can't be journaled."""

    def __init__(self, link: Link, outside: Container[str] = ()) -> None:
        self._outside = outside
        self._link = link
        self._shape = shape(link)
        found = [_Relation(*row) for row in link.execute(_RELATIONS)]
        self._all = {relation.oid: relation for relation in found}
        self._relations = [relation for relation in found if not relation.partition]
        self._parts = self._read_parts()
        self._oids = _array(relation.oid for relation in self._relations)
        self._columns = self._by_table(_COLUMNS)
        self._indexes = self._by_table(_INDEXES)
        self._references = self._by_table(_REFERENCES)
        self._triggers = self._by_table(_TRIGGERS)
        self._types = Types(link, {row[3] for rows in self._columns.values() for row in rows})

    def catalog(self) -> PostgresCatalog:
        """The catalog as it is now."""
        tables: dict[str, Table] = {}
        refused: dict[str, str] = {}
        guarded = []
        for relation in self._relations:
            reason = self._unfit(relation) or self._unkeyed(relation)
            if not reason:
                tables[relation.name] = self._table(relation)
                continue
            refused[relation.name] = reason
            if relation.writable and relation.name not in self._outside:
                ours = relation.owned and relation.kind != "f"
                guarded.append(Guarded(relation.oid, relation.name, relation.full, ours))
        return PostgresCatalog(
            tables=tables,
            refused=refused,
            stamp=str(self._link.execute(stamp_sql(()))[0][0]),
            guarded=tuple(guarded),
            late=tuple(
                f"{quoted(row[3])}.{quoted(row[1])}"
                for rows in self._triggers.values()
                for row in rows
                if row[2]
            ),
            partitions=tuple(
                Guarded(part.oid, name, part.full, ours=part.owned)
                for part, name in self._parts.items()
                if name in tables and part.kind != "f"
            ),
            relations=self._names(),
            shape=self._shape,
        )

    def _by_table(self, sql: str) -> dict[int, list[tuple[Any, ...]]]:
        found: dict[int, list[tuple[Any, ...]]] = {}
        for row in self._link.execute(sql, (self._oids,)):
            found.setdefault(row[0], []).append(row)
        return found

    def _names(self) -> dict[tuple[str, str], str]:
        """The names of tables; what a partition is a part of goes by the name of the whole."""
        names = {(relation.schema, relation.relation): relation.name for relation in self._relations}
        return names | {(part.schema, part.relation): name for part, name in self._parts.items()}

    def _read_parts(self) -> dict[_Relation, str]:
        partitions = [relation for relation in self._all.values() if relation.partition]
        if not partitions:
            return {}
        found = self._link.execute(_ROOTS, (_array(part.oid for part in partitions),))
        return {self._all[oid]: self._all[root].name for oid, root in found if root in self._all}

    def _unfit(self, relation: _Relation) -> str:
        columns = [row[1] for row in self._columns.get(relation.oid, ())]
        odd = next(
            (name for name in (relation.schema, relation.relation, *columns) if set(name) & set(".%")), ""
        )
        reasons = {
            "it is a foreign table": relation.kind == "f",
            "its schema may not be used": not relation.usable,
            "it belongs to another role": not relation.owned,
            "it has rewrite rules": relation.rules,
            "row security is forced on its owner": relation.forced,
            f"the name {odd} has a dot or a percent sign in it": bool(odd),
        }
        return next((reason for reason, holds in reasons.items() if holds), "")

    def _unkeyed(self, relation: _Relation) -> str:
        key = self._key(relation)
        if not key:
            return "it has no primary key"
        for row in self._columns.get(relation.oid, ()):
            _, name, _, oid, _, _, _, collation, deterministic, _, _ = row
            if why := self._types.inexact(oid):
                return f"its column {name} is {why}"
            if name not in key:
                continue
            try:
                self._types.fold(oid)
            except LookupError:
                return f"its key has {name}, of a type that compares by more than its text"
            if not deterministic:
                return f"its key has {name}, which compares by the collation {collation}"
        return ""

    def _key(self, relation: _Relation) -> tuple[str, ...]:
        names = self._numbers(relation.oid)
        for row in self._indexes.get(relation.oid, ()):
            if row[2]:
                return tuple(names[number] for number in _numbers(row[4]))
        return ()

    def _numbers(self, oid: int) -> dict[int, str]:
        return {row[10]: row[1] for row in self._columns.get(oid, ())}

    def _table(self, relation: _Relation) -> PostgresTable:
        rows = self._columns[relation.oid]
        key = self._key(relation)
        key_name, equals = next((row[1], row[5]) for row in self._indexes[relation.oid] if row[2])
        return PostgresTable(
            name=relation.name,
            columns=tuple(self._column(row, row[1] in key) for row in rows),
            key=key,
            foreign_keys=tuple(self._foreign_keys(relation)),
            uniques=tuple(self._uniques(relation)),
            triggers=tuple(row[1] for row in self._triggers.get(relation.oid, ())),
            checks=relation.checked,
            oid=relation.oid,
            width=relation.width,
            schema=relation.schema,
            relation=relation.relation,
            whole=relation.partitioned,
            texts=tuple(self._text(row) for row in rows),
            casts=tuple(self._types[row[3]].sql for row in rows),
            types=tuple(row[3] for row in rows),
            equals=tuple(f"OPERATOR({each})" for each in _texts(equals)),
            key_name=key_name,
        )

    def _text(self, row: Sequence[Any]) -> str:
        """A virtual column is nowhere: triggers don't see it, so nobody does."""
        if row[5] == "v":
            return "NULL::pg_catalog.text"
        sql = self._types.text(row[3], "\0." + quoted(row[1]))
        return sql.replace("{", "{{").replace("}", "}}").replace("\0", "{}")

    def _column(self, row: Sequence[Any], of_key: bool) -> Column:
        _, name, declared, oid, nullable, generated, identity, collation, _, default, _ = row
        fold: Fold | None = self._types.fold(oid) if of_key else None
        return Column(
            name=name,
            type=declared,
            nullable=nullable,
            generated=bool(generated),
            identity=_IDENTITIES[identity],
            collation="" if collation in ("C", "POSIX") else collation,
            fold=fold,
            default=None if generated else default,
        )

    def _foreign_keys(self, relation: _Relation) -> list[ForeignKey]:
        names = self._numbers(relation.oid)
        made = []
        for _, name, key, to, to_key, on_delete, on_update, deferrable in self._references.get(
            relation.oid, ()
        ):
            other = self._all.get(to)
            there = self._numbers(to)
            made.append(
                ForeignKey(
                    name=name,
                    columns=tuple(names[number] for number in _numbers(key)),
                    to=other.name if other else "",
                    to_columns=tuple(there.get(number, "") for number in _numbers(to_key)),
                    on_delete=_ACTIONS[on_delete],
                    on_update=_ACTIONS[on_update],
                    deferrable=deferrable,
                )
            )
        return made

    def _uniques(self, relation: _Relation) -> list[Unique]:
        names = self._numbers(relation.oid)
        made = []
        for _, name, primary, deferrable, key, _, partial in self._indexes.get(relation.oid, ()):
            numbers = _numbers(key)
            if not primary:
                columns = () if 0 in numbers else tuple(names[number] for number in numbers)
                made.append(Unique(name, columns, deferrable, partial))
        return made


def _array(numbers: Any) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


def _numbers(text: str) -> tuple[int, ...]:
    """An array of numbers as PostgreSQL writes it; int2vector's has bounds before it."""
    listed = text.rpartition("=")[2].strip("{}")
    return tuple(int(part) for part in listed.split(",")) if listed else ()


def _texts(text: str) -> tuple[str, ...]:
    listed = text.strip("{}")
    return tuple(part.strip('"').replace('\\"', '"') for part in listed.split(",")) if listed else ()
