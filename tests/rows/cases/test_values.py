"""Values, cases 34 to 42: they come back by type and to the bit, and are told apart by it.

Every type of PostgreSQL's is in `tests/rows/postgres/test_values.py`; here values go through acts and undos.
Case 41: values are kept whole in the journal, beside the rows in their own database, and not by reference;
what does not fit there is refused when it is written.
"""

import sqlite3
from typing import Any

import pytest

from takeback.errors import RefusedError, TakebackError

VALUES: dict[str, dict[str, tuple[str, list[Any]]]] = {
    "sqlite": {
        "34_numbers": (
            "",
            [2**53 + 1, 2**63 - 1, -(2**63), 5e-324, 1e308, -0.0, float("inf"), float("-inf"), 0.1 + 0.2],
        ),
        "35_nothing": ("", [None, "", b"", 0, "null", "NULL"]),
        "36_json": ("", ['{"b":1,"a":2,"b":3}', '{ "a" :  1.10 }', "null", '"\\u0000"', "1.10"]),
        "37_bytes_and_text": (
            "",
            [b"", b"\x00", b"\x00\xff'\"", "a\x00b", "e\u0301", "\u00e9", "\U0001f600\u200d", "%s ?", "\r\n"],
        ),
        "38_times": (" TEXT", ["2026-10-25T00:30:00+02:00", "2026-10-25 00:30:00.000001", "-0044-03-15"]),
        "40_any": ("", [1, "1", 1.0, b"1", True, "1.0"]),
        "40_text": (" TEXT", ["1", "1.0", b"1"]),
        "40_numeric": (" NUMERIC", [1, "x", 1.5, b"1", "0x10", "1e400"]),
        "40_decimal_as_text": (" TEXT", ["1.10", "1.1", "0.30"]),
    },
    "postgresql": {
        "34_numbers": (" numeric", ["1.10", "1.1", "NaN", "Infinity", "1e-300", "12345678901234567890.50"]),
        "34_bigints": (" int8", ["9007199254740993", "9223372036854775807", "-9223372036854775808"]),
        "34_doubles": (" float8", ["5e-324", "-0", "NaN", "-Infinity", "0.30000000000000004", "1e308"]),
        "34_singles": (" float4", ["0.1", "-0", "1.4e-45", "16777217", "NaN"]),
        "35_nothing": (" text", [None, "", "null", "NULL"]),
        "35_json_null": (" jsonb", [None, "null", '""', '"null"']),
        "36_json": (" json", ['{"b":1,"a":2,"b":3}', '{ "a" :  1.10 }', "null", '"\\u0000"']),
        "36_jsonb": (" jsonb", ['{"a": 1.10}', "12345678901234567890.10", '"\\u00e9"']),
        "37_bytes": (" bytea", ["", "\\x00", "\\x00ff2722"]),
        "37_text": (" text", ["e\u0301", "\u00e9", "\U0001f600\u200d", "a\tb\nc\\d\"e'f", "%s %%", "\r\n"]),
        "38_instants": (
            " timestamptz",
            ["2026-10-25 00:30:00.000001+00", "infinity", "-infinity", "0044-03-15 BC"],
        ),
        "38_naive": (" timestamp", ["2026-03-29 02:30:00.123456", "infinity", "4713-01-01 BC"]),
        "39_arrays": (" int4[]", ["{}", "{NULL,1}", "[2:4]={1,NULL,3}", "{{1,2},{3,4}}", None]),
        "39_ranges": (" numrange", ["empty", "[1.10,2.00)", "(,5)", "(,)"]),
        "39_enums": (" mood", ["sad", "it's"]),
        "39_domains": (" positive", ["1.10", "5"]),
        "39_composites": (" pair", ["(,)", '(,"")', '(1,"a ""b"", (c)")']),
        "39_bits": (" bit varying", ["", "10110"]),
        "39_padded": (" char(5)", ["ab", "ab  c", ""]),
        "39_intervals": (" interval", ["1 mon -2 days +03:04:05.000006", "30 days", "720:00:00"]),
        "39_xids": (" xid8", ["18446744073709551615"]),
        "39_money": (" money", ["12.34", "-92233720368547758.08"]),
    },
}
CASES = [(engine, kind) for engine, kinds in VALUES.items() for kind in kinds]
MADE = """
CREATE TYPE mood AS ENUM ('sad', 'it''s');
CREATE DOMAIN positive AS numeric CHECK (value > 0);
CREATE TYPE pair AS (a int, b text);
"""


@pytest.mark.parametrize(("name", "kind"), CASES, ids=[f"{kind}-{name}" for name, kind in CASES])
def test_34_to_40_values_come_back_to_the_bit(request, name, kind):
    engine = request.getfixturevalue(name)
    declared, values = VALUES[name][kind]
    if name == "postgresql":
        engine.schema(MADE)
    engine.schema(f"CREATE TABLE held (id INTEGER PRIMARY KEY, v{declared}, w{declared})")
    cast = f"?::{declared}" if name == "postgresql" else "?"
    for number, value in enumerate(values):
        engine.stranger(f"INSERT INTO held VALUES (?, {cast}, NULL)", (number, value))
    before = engine.dump()
    acts = [
        *(
            engine.act((f"UPDATE held SET v = {cast}, w = {cast} WHERE id = ?", (value, value, number)))
            for number, value in enumerate(values[1:] + values[:1])
        ),
        engine.act("UPDATE held SET w = v"),
        engine.act("DELETE FROM held"),
        engine.act((f"INSERT INTO held VALUES (0, {cast}, NULL)", (values[-1],))),
    ]
    after = engine.dump()
    acts = [act for act in acts if engine.entries(act)]
    assert engine.take_back(*acts).clean
    assert engine.dump() == before
    assert engine.take_back(engine.undone[-1]).clean
    assert engine.dump() == after


DIFFER = [
    ("sqlite", "", 1, 1.0),
    ("sqlite", "", 1, "1"),
    ("sqlite", "", "a", b"a"),
    ("sqlite", "", "", None),
    ("sqlite", "", '{"a":1}', '{"a": 1}'),
    ("postgresql", " numeric", "1.1", "1.10"),
    ("postgresql", " float8", "0", "-0"),
    ("postgresql", " text", "", None),
    ("postgresql", " jsonb", "null", None),
    ("postgresql", " json", '{"a":1,"b":2}', '{"b":2,"a":1}'),
    ("postgresql", " int4[]", "{1}", "[0:0]={1}"),
    ("postgresql", " interval", "30 days", "1 mon"),
]


@pytest.mark.parametrize(("name", "declared", "ours", "theirs"), DIFFER)
def test_35_values_that_are_nearly_the_same_are_told_apart(request, name, declared, ours, theirs):
    """Also those that the database takes for equal: what somebody set by hand is theirs."""
    engine = request.getfixturevalue(name)
    engine.schema(
        f"CREATE TABLE held (id INTEGER PRIMARY KEY, v{declared})", "INSERT INTO held VALUES (1, NULL)"
    )
    if theirs is None:
        engine.schema(
            "UPDATE held SET v = '7'" if "json" in declared or not declared else "UPDATE held SET v = 'x'"
        )
    cast = f"?::{declared}" if name == "postgresql" else "?"
    acts = [
        engine.act((f"UPDATE held SET v = {cast}", (ours,))),
        engine.act((f"INSERT INTO held VALUES (2, {cast})", (ours,))),
    ]
    engine.stranger(f"UPDATE held SET v = {cast}", (theirs,))
    before = engine.dump()
    for act in acts:
        assert len(engine.conflicts(engine.take_back(act))) == 1
    assert engine.dump() == before


def test_37_text_that_is_no_text_is_refused_by_name(sqlite):
    sqlite.schema("CREATE TABLE held (id INTEGER PRIMARY KEY, v TEXT)", "INSERT INTO held VALUES (1, 'fine')")
    for lone in ("eda080", "ff", "73ff41"):
        with pytest.raises(RefusedError, match=r"held\.v") as caught:
            sqlite.act(f"UPDATE held SET v = CAST(x'{lone}' AS TEXT)")
        assert caught.value.code == "rows.value"
    assert sqlite.stranger("SELECT v FROM held") == [("fine",)]


@pytest.mark.anyio
@pytest.mark.parametrize("text", ["\ud800", "a\udfff"])
async def test_37_a_lone_surrogate_is_refused_and_nothing_is_done(bench, text):
    before = bench.dump()
    with pytest.raises(TakebackError) as caught:
        await bench.agent().rows.update(table="skill", key=1, set={"title": text})
    assert text not in str(caught.value)
    assert bench.dump() == before
    assert bench.journal() == []


@pytest.mark.anyio
async def test_37_a_nul_in_a_text_is_kept_or_refused(bench):
    before = bench.dump()
    if bench.database.name == "sqlite":
        done = await bench.agent().rows.update(table="skill", key=1, set={"title": "a\x00b"})
        assert bench.sql("SELECT length(CAST(title AS BLOB)) FROM skill WHERE id = 1") == [(3,)]
        await bench.undo(done.act)
    else:
        with pytest.raises(TakebackError):
            await bench.agent().rows.update(table="skill", key=1, set={"title": "a\x00b"})
    assert bench.dump() == before


def test_38_instants_do_not_depend_on_anybodys_time_zone(postgresql):
    with postgresql.server.connect() as admin:
        admin.execute(f"ALTER DATABASE {postgresql.database} SET timezone = 'America/Sao_Paulo'")
        admin.execute(f"ALTER DATABASE {postgresql.database} SET datestyle = 'SQL, DMY'")
    postgresql.link.reconnect()
    postgresql.stranger("SET timezone = 'Asia/Kathmandu'")
    postgresql.schema("CREATE TABLE held (id int PRIMARY KEY, at timestamptz, naive timestamp, day date)")
    postgresql.schema(
        "INSERT INTO held VALUES (1, '2026-10-25 00:59:59.999999+00', '2026-10-25 02:30', '2026-05-04')",
        "INSERT INTO held VALUES (2, '2026-10-25 01:59:59.999999+00', '2026-10-25 02:30', '2026-05-04')",
    )
    exact = "SELECT id, extract(epoch FROM at), naive::text, day - '2000-01-01'::date FROM held ORDER BY id"
    before = postgresql.stranger(exact)
    acts = [
        postgresql.act("UPDATE held SET at = at + interval '1 day', naive = at, day = day + 1"),
        postgresql.act("DELETE FROM held"),
    ]
    assert postgresql.take_back(*acts).clean
    assert postgresql.stranger(exact) == before


def test_40_tables_that_are_strict(sqlite):
    sqlite.schema("CREATE TABLE held (id INTEGER PRIMARY KEY, n INT, r REAL, t TEXT, b BLOB, a ANY) STRICT")
    sqlite.schema("INSERT INTO held VALUES (1, 1, 1, '1', x'31', '1'), (2, NULL, 0.5, '', x'', 1)")
    before = sqlite.dump()
    acts = [
        sqlite.act("UPDATE held SET a = 1, r = 2, n = 3"),
        sqlite.act("DELETE FROM held"),
    ]
    assert sqlite.take_back(*acts).clean
    assert sqlite.dump() == before


@pytest.mark.parametrize("size", [3_000_000])
def test_41_large_values_come_back(engine, size):
    engine.schema("CREATE TABLE held (id INTEGER PRIMARY KEY, v BLOB, t TEXT)")
    blob = bytes(number * 7919 % 251 for number in range(1000)) * (size // 1000)
    engine.stranger("INSERT INTO held VALUES (1, ?, ?)", (blob, "x" * size))
    before = engine.dump()
    acts = [
        engine.act(("UPDATE held SET v = ?, t = t || 'y'", (blob[::-1] * 2,))),
        engine.act("DELETE FROM held"),
    ]
    assert engine.take_back(*acts).clean
    assert engine.dump() == before


def test_41_a_value_that_the_journal_can_not_hold_is_not_written(sqlite):
    sqlite.schema("CREATE TABLE held (id INTEGER PRIMARY KEY, v BLOB)", "INSERT INTO held VALUES (1, x'00')")
    sqlite.link.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100_000)
    sqlite.act("UPDATE held SET v = zeroblob(20000)")
    before = sqlite.dump()
    with pytest.raises((sqlite3.DataError, TakebackError)):
        sqlite.act("UPDATE held SET v = zeroblob(90000)")
    assert sqlite.dump() == before
    assert sqlite.stranger("SELECT count(*) FROM takeback_journal") == [(1,)]


@pytest.mark.anyio
class TestSecrets:
    @pytest.fixture
    def settings(self):
        return {"rows": {"hidden": ["main.skill.secret"]}}

    async def test_42_values_are_nowhere_but_in_their_own_database(self, bench, tmp_path):
        """What is hidden is neither seen nor set by agents, and yet comes back with its row."""
        bench.sql("UPDATE skill SET title = 'pre-image', secret = 'hunter2' WHERE id = 1")
        before = bench.dump()
        rows = await bench.agent().rows.query(table="skill", where={"id": 1})
        assert "secret" not in rows.rows[0]
        done = await bench.agent().rows.update(table="skill", key=1, set={"title": "post-image"})
        gone = await bench.agent().rows.delete(table="skill", key=1)
        await bench.undo(gone.act)
        bench.sql("UPDATE skill SET title = 'their-own' WHERE id = 1")
        assert (await bench.preview(done.act)).conflicts
        for value in ("hunter2", "pre-image", "post-image", "their-own"):
            for path in (tmp_path / "home").rglob("*"):
                assert not path.is_file() or value.encode() not in path.read_bytes(), (path, value)
        bench.sql("UPDATE skill SET title = 'post-image' WHERE id = 1")
        await bench.undo(done.act)
        assert bench.dump() == before

    async def test_42_a_plan_shows_no_agent_what_is_hidden(self, bench):
        bench.sql("UPDATE skill SET secret = 'hunter2' WHERE id = 1")
        gone = await bench.agent().rows.delete(table="skill", key=1)
        bench.sql("INSERT INTO skill (id, title, secret) VALUES (1, 'again', 'swordfish')")
        plan = (await bench.agent().call("undo.preview", id=gone.act)).plan
        assert plan.conflicts
        for value in ("hunter2", "swordfish"):
            assert value not in plan.model_dump_json()
        with pytest.raises(TakebackError) as caught:
            await bench.agent().call("undo.run", id=gone.act)
        told = f"{caught.value} {caught.value.data}"
        assert "hunter2" not in told
        assert "swordfish" not in told

    async def test_42_erasing_is_honoured_by_letting_the_database_go(self, bench):
        bench.sql("UPDATE skill SET secret = 'hunter2' WHERE id = 1")
        await bench.agent().rows.delete(table="skill", key=1)
        assert bench.sql("SELECT count(*) FROM takeback_journal WHERE changes LIKE '%hunter2%'") == [(1,)]
        await bench.person().call("rows.disconnect", name="main", force=True)
        assert not any("takeback_journal" in str(line) for line in _names(bench))


def _names(bench):
    if bench.database.name == "sqlite":
        return bench.sql("SELECT name FROM sqlite_schema")
    return bench.sql("SELECT relname FROM pg_class")
