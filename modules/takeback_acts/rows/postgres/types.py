"""Types: which of PostgreSQL's have a text that says all of a value, and how SQL turns one into the other.

The text is that of the type's output function, read back by its input function, under the settings of `PINS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from takeback_acts.rows.dialect import Link
from takeback_acts.rows.tables import Fold, Value

PINS: Mapping[str, str] = {
    "TimeZone": "UTC",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "lc_monetary": "C",
}
"""The settings that the texts of values depend on."""

READING: Mapping[str, str] = {"array_nulls": "on", "xmloption": "content"}
"""Those that the way back depends on as well."""

SETTINGS: Mapping[str, str] = {**PINS, **READING}

# Types whose output is theirs alone: no names of other things, nothing left out.
_PLAIN = (
    "bool int2 int4 int8 money text varchar name char bytea bit varbit date time timetz timestamp timestamptz"
    " uuid inet cidr macaddr macaddr8 oid xid8 tid pg_lsn"
)
_OTHERS = (
    "numeric float4 float8 bpchar interval json jsonb jsonpath xml point line lseg box path polygon circle"
    " xid cid pg_snapshot txid_snapshot tsvector tsquery int2vector oidvector refcursor"
)
_EXTENSIONS = "citext hstore ltree lquery ltxtquery cube geometry geography vector halfvec sparsevec"

_EXACT = frozenset(f"{_PLAIN} {_OTHERS}".split())
_EXACT_OF_EXTENSIONS = frozenset(_EXTENSIONS.split())
# Of these no two texts are equal to the database, which a key needs to be told.
_PLAIN_KEYS = frozenset(f"{_PLAIN} ltree".split())


@dataclass(frozen=True, slots=True)
class Type:
    """One type: `kind` is b(ase), c(omposite), d(omain), e(num), r(ange), m(ultirange) or p(seudo).

    `parts` are the types that it is made of. `output` is its output function as SQL.
    """

    oid: int
    schema: str
    name: str
    kind: str
    array: bool
    extension: str
    output: str
    parts: tuple[int, ...]

    @property
    def sql(self) -> str:
        """The type as SQL, whatever the search path."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"


_TYPES = """
SELECT t.oid::int8, n.nspname::text, t.typname::text, t.typtype::text,
    t.typelem <> 0 AND t.typlen = -1 AND t.typoutput = 'pg_catalog.array_out'::regproc,
    coalesce((SELECT x.extname::text FROM pg_catalog.pg_depend d
        JOIN pg_catalog.pg_extension x ON x.oid = d.refobjid
        WHERE d.classid = 'pg_catalog.pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e'
            AND d.refclassid = 'pg_catalog.pg_extension'::regclass LIMIT 1), ''),
    pn.nspname::text, p.proname::text,
    CASE
        WHEN t.typtype = 'd' THEN ARRAY[t.typbasetype]::int8[]
        WHEN t.typtype = 'c' THEN ARRAY(SELECT a.atttypid::int8 FROM pg_catalog.pg_attribute a
            WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum)
        WHEN t.typtype IN ('r', 'm') THEN ARRAY(SELECT r.rngsubtype::int8 FROM pg_catalog.pg_range r
            WHERE t.oid IN (r.rngtypid, r.rngmultitypid))
        WHEN t.typelem <> 0 AND t.typlen = -1 THEN ARRAY[t.typelem]::int8[]
        ELSE '{}'::int8[]
    END::text
FROM pg_catalog.pg_type t
JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
JOIN pg_catalog.pg_proc p ON p.oid = t.typoutput
JOIN pg_catalog.pg_namespace pn ON pn.oid = p.pronamespace
WHERE t.oid = ANY(%s::pg_catalog.oid[])
"""


class Types:
    """The types that columns have, and those that they are made of."""

    def __init__(self, link: Link, oids: Iterable[int]) -> None:
        self._known: dict[int, Type] = {}
        missing = set(oids)
        while missing:
            for row in link.execute(_TYPES, ("{" + ",".join(map(str, sorted(missing))) + "}",)):
                self._known[row[0]] = _type(row)
            wanted = {part for known in self._known.values() for part in known.parts}
            missing = wanted - self._known.keys()

    def __getitem__(self, oid: int) -> Type:
        return self._known[oid]

    def inexact(self, oid: int) -> str:
        """Why the text of a value of the type would not say all of it; "" when it does."""
        known = self._known.get(oid)
        if known is None:
            return "of a type that is not there any more"
        if known.kind == "b" and not known.array:
            exact = _EXACT_OF_EXTENSIONS if known.extension else _EXACT
            if known.name in exact and (known.extension or known.schema == "pg_catalog"):
                return ""
            return f"of type {known.name}, whose text may not be all of a value"
        if known.kind == "p":
            return f"of type {known.name}"
        return next((why for part in known.parts if (why := self.inexact(part))), "")

    def base(self, oid: int) -> Type:
        """The type beneath domains."""
        known = self._known[oid]
        return self.base(known.parts[0]) if known.kind == "d" else known

    def text(self, oid: int, value: str) -> str:
        """SQL that is the text of `value`, which is SQL of that type."""
        base = self.base(oid)
        given = value if base.oid == oid else f"({value})::{base.sql}"
        if base.schema == "pg_catalog" and base.name in ("text", "varchar", "xml", "refcursor"):
            # The cast of xml gives all of the document, where its output function leaves out the encoding.
            return f"({value})::pg_catalog.text"
        return f"pg_catalog.textin({base.output}({given}))"

    def value(self, oid: int, text: str) -> str:
        """SQL that is the value of a text."""
        return f"({text})::{self._known[oid].sql}"

    def fold(self, oid: int) -> Fold | None:
        """How equal values of a key come to one text; LookupError when that is not known of the type."""
        base = self.base(oid)
        if self._plain(base):
            return None
        if base.schema != "pg_catalog" and not base.extension:
            raise LookupError(base.name)
        return _FOLDS[base.name]

    def _plain(self, base: Type) -> bool:
        """Whether different texts are always different values."""
        if base.array or base.kind in ("r", "m"):
            return all(self._plain(self.base(part)) for part in base.parts)
        ours = base.schema == "pg_catalog" or bool(base.extension)
        return base.kind == "e" or (ours and base.name in _PLAIN_KEYS)


def quoted(name: str) -> str:
    """A name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def _type(row: tuple[object, ...]) -> Type:
    oid, schema, name, kind, array, extension, output_schema, output, parts = row
    listed = str(parts).strip("{}")
    return Type(
        oid=int(str(oid)),
        schema=str(schema),
        name=str(name),
        kind=str(kind),
        array=bool(array),
        extension=str(extension),
        output=f"{quoted(str(output_schema))}.{quoted(str(output))}",
        parts=tuple(int(part) for part in listed.split(",")) if listed else (),
    )


def _numeric(value: Value) -> Value:
    """1.10 and 1.1 are one number."""
    text = str(value)
    if "." not in text:
        return text
    return text.rstrip("0").rstrip(".")


def _float(value: Value) -> Value:
    """Zero has two signs, and they are equal."""
    return "0" if value == "-0" else value


def _padded(value: Value) -> Value:
    """Spaces at the end don't count."""
    return str(value).rstrip(" ")


def _lower(value: Value) -> Value:
    """Letters, large or small, are one."""
    return str(value).lower()


_FOLDS: Mapping[str, Fold] = {
    "numeric": _numeric,
    "float4": _float,
    "float8": _float,
    "bpchar": _padded,
    "citext": _lower,
}
