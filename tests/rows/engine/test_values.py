"""Values and keys of SQLite: of every storage class, and keys that it takes for equal though they differ."""

import pytest

from takeback.errors import RefusedError

VALUES = [
    None,
    "",
    "1",
    1,
    1.0,
    -0.0,
    0.0,
    2**63 - 1,
    -(2**63),
    2**53 + 1,
    5e-324,
    1e308,
    float("inf"),
    float("-inf"),
    b"",
    b"\x00\xff",
    "a\x00b",
    "e\u0301 \U0001f600 \ufeff\u2028",
    '{"b": 1, "a": null}',
    "1.10",
]


def test_values_of_every_kind_come_back_as_they_were(sqlite):
    sqlite.schema("CREATE TABLE any_t (id INTEGER PRIMARY KEY, v)")
    for number, value in enumerate(VALUES):
        sqlite.stranger("INSERT INTO any_t VALUES (?, ?)", (number, value))
    before = sqlite.dump()
    gone = sqlite.act("DELETE FROM any_t")
    assert sqlite.take_back(gone).clean
    assert sqlite.dump() == before
    changed = sqlite.act(
        *(("UPDATE any_t SET v = ? WHERE id = ?", (v, n)) for n, v in enumerate(VALUES[::-1]))
    )
    assert sqlite.take_back(changed).clean
    assert sqlite.dump() == before


@pytest.mark.parametrize(
    ("ours", "theirs"), [(1, 1.0), (1.0, 1), ("1", 1), (0.0, -0.0), ("a", b"a"), ("", None)]
)
def test_a_value_of_another_type_is_another_value(sqlite, ours, theirs):
    sqlite.schema("CREATE TABLE any_t (id INTEGER PRIMARY KEY, v)", "INSERT INTO any_t VALUES (1, 'old')")
    act = sqlite.act(("UPDATE any_t SET v = ?", (ours,)))
    sqlite.stranger("UPDATE any_t SET v = ?", (theirs,))
    assert not sqlite.take_back(act).clean
    inserted = sqlite.act(("INSERT INTO any_t VALUES (2, ?)", (ours,)))
    sqlite.stranger("UPDATE any_t SET v = ? WHERE id = 2", (theirs,))
    assert not sqlite.take_back(inserted).clean


def test_a_change_of_type_alone_is_a_change(sqlite):
    sqlite.schema("CREATE TABLE any_t (id INTEGER PRIMARY KEY, v)", "INSERT INTO any_t VALUES (1, 1)")
    before = sqlite.dump()
    act = sqlite.act("UPDATE any_t SET v = 1.0")
    assert len(sqlite.written.changes) == 1
    assert sqlite.take_back(act).clean
    assert sqlite.dump() == before


@pytest.mark.parametrize(
    "key",
    ["TEXT COLLATE NOCASE PRIMARY KEY", "TEXT COLLATE RTRIM PRIMARY KEY", "PRIMARY KEY", "BLOB PRIMARY KEY"],
)
@pytest.mark.parametrize("rest", ["", "WITHOUT ROWID"])
def test_keys_that_are_equal_and_yet_differ_name_one_row(sqlite, key, rest):
    sqlite.schema(f"CREATE TABLE k (k {key}, v) {rest}")
    forms = {"NOCASE": ("abc", "ABC"), "RTRIM": ("abc", "abc  ")}.get(
        key.split()[2] if "COLLATE" in key else "", (1, 1.0)
    )
    sqlite.stranger("INSERT INTO k VALUES (?, 'x')", (forms[0],))
    before = sqlite.dump()
    acts = [
        sqlite.act(("UPDATE k SET k = ?, v = 'y'", (forms[1],))),
        sqlite.act("DELETE FROM k"),
        sqlite.act(("INSERT INTO k VALUES (?, 'z')", (forms[0],))),
    ]
    assert sqlite.take_back(*acts).clean
    assert sqlite.dump() == before
    act = sqlite.act("DELETE FROM k")
    sqlite.stranger("INSERT INTO k VALUES (?, 'theirs')", (forms[1],))
    assert not sqlite.take_back(act).clean


def test_keys_of_several_columns_and_of_several_types(sqlite):
    sqlite.schema("CREATE TABLE k (a, b TEXT COLLATE NOCASE, v, PRIMARY KEY (b, a)) WITHOUT ROWID")
    for key in [(1, "x"), ("1", "x"), (b"1", "x"), (1.5, "X y"), (1, "z")]:
        sqlite.stranger("INSERT INTO k VALUES (?, ?, 'v')", key)
    before = sqlite.dump()
    acts = [sqlite.act("UPDATE k SET v = 'w', b = upper(b)"), sqlite.act("DELETE FROM k WHERE a = 1")]
    assert sqlite.take_back(*acts).clean
    assert sqlite.dump() == before


def test_strict_tables_and_generated_columns(sqlite):
    sqlite.schema(
        "CREATE TABLE s (id INTEGER PRIMARY KEY, n INT, x ANY, twice INT AS (n * 2) VIRTUAL,"
        " more INT AS (n + 1) STORED) STRICT",
        "INSERT INTO s (id, n, x) VALUES (1, 1, '5'), (2, 2, 5)",
    )
    before = sqlite.dump()
    acts = [
        sqlite.act("UPDATE s SET n = n + 10, x = 5"),
        sqlite.act("DELETE FROM s WHERE id = 1"),
        sqlite.act("INSERT INTO s (id, n, x) VALUES (3, 3, x'00')"),
    ]
    taken = sqlite.take_back(*acts)
    assert taken.clean
    assert {e.column for e in taken.effects} == {"", "n", "x"}
    assert sqlite.dump() == before


def test_an_id_that_is_used_again_is_a_conflict_and_with_autoincrement_it_is_not(sqlite):
    sqlite.schema(
        "CREATE TABLE plain (id INTEGER PRIMARY KEY, v)",
        "CREATE TABLE auto (id INTEGER PRIMARY KEY AUTOINCREMENT, v)",
        "INSERT INTO plain VALUES (1, 'a')",
        "INSERT INTO auto VALUES (1, 'a')",
    )
    acts = [sqlite.act(f"DELETE FROM {name}") for name in ("plain", "auto")]
    for name in ("plain", "auto"):
        sqlite.stranger(f"INSERT INTO {name} (v) VALUES ('b')")
    assert not sqlite.take_back(acts[0]).clean
    assert sqlite.take_back(acts[1]).clean
    assert sqlite.stranger("SELECT * FROM auto ORDER BY id") == [(1, "a"), (2, "b")]


def test_names_that_need_quotes(sqlite):
    sqlite.schema('CREATE TABLE "a ""b"" c" ("select" INTEGER PRIMARY KEY, "x y" TEXT, "NEW" TEXT)')
    act = sqlite.act("""INSERT INTO "a ""b"" c" VALUES (1, 'v', 'w')""")
    assert sqlite.take_back(act).clean
    assert sqlite.stranger('SELECT * FROM "a ""b"" c"') == []


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("CREATE TABLE t (a, b)", "no primary key"),
        ("CREATE VIEW t AS SELECT 1 AS a", "view"),
        ("CREATE VIRTUAL TABLE t USING fts5(a)", "virtual table"),
    ],
)
def test_what_can_not_be_journaled_is_refused_by_name(sqlite, table, why):
    sqlite.schema(table)
    assert why in sqlite.ledger.catalog.refused["t"]


def test_a_write_to_a_table_without_a_key_is_refused_and_not_done(sqlite):
    sqlite.schema("CREATE TABLE t (a)")
    with pytest.raises(RefusedError) as caught:
        sqlite.act("INSERT INTO t VALUES (1)")
    assert (caught.value.code, "t can't be journaled" in caught.value.message) == ("rows.unjournaled", True)
    assert sqlite.stranger("SELECT * FROM t") == []


def test_null_in_a_key_is_refused_by_name(sqlite):
    sqlite.schema("CREATE TABLE t (k TEXT PRIMARY KEY, v)")
    with pytest.raises(RefusedError) as caught:
        sqlite.act("INSERT INTO t (v) VALUES (1)")
    assert caught.value.code == "rows.key"


def test_text_that_is_not_utf8_is_refused_by_name_and_not_quoted(sqlite):
    sqlite.schema("CREATE TABLE t (k INTEGER PRIMARY KEY, b BLOB, word TEXT)")
    with pytest.raises(RefusedError) as caught:
        sqlite.act(
            "INSERT INTO t VALUES (1, x'ff', 'fine')",
            "INSERT INTO t VALUES (2, x'ff', CAST(x'73ff41' AS TEXT))",
        )
    assert caught.value.code == "rows.value"
    assert "t.word" in caught.value.message
    assert "A" not in caught.value.message.replace("There", "")
    assert sqlite.stranger("SELECT * FROM t") == []


def test_a_table_that_looks_like_the_journal_is_not_there(sqlite):
    sqlite.schema("CREATE TABLE t (k INTEGER PRIMARY KEY)")
    catalog = sqlite.ledger.refresh(sqlite.link)
    assert set(catalog.tables) == {"t"}
    assert not catalog.refused


def test_nothing_of_ours_is_left_when_the_journal_is_removed(sqlite):
    sqlite.schema("CREATE TABLE t (k INTEGER PRIMARY KEY)")
    before = sqlite.stranger("SELECT * FROM sqlite_schema")
    sqlite.act("INSERT INTO t VALUES (1)")
    sqlite.dialect.begin(sqlite.link)
    sqlite.dialect.remove(sqlite.link)
    sqlite.dialect.commit(sqlite.link)
    assert [
        row[:3] for row in sqlite.stranger("SELECT * FROM sqlite_schema WHERE name <> 'sqlite_sequence'")
    ] == [row[:3] for row in before]


def test_what_is_rolled_back_is_not_captured_by_the_next_act(sqlite):
    sqlite.schema("CREATE TABLE t (k INTEGER PRIMARY KEY, v)", "INSERT INTO t VALUES (1, 1)")
    with pytest.raises(RefusedError):
        sqlite.act("UPDATE t SET v = 2", "INSERT INTO t VALUES (2, CAST(x'ff' AS TEXT))")
    sqlite.act("UPDATE t SET v = 3")
    assert [(c.before, c.after) for c in sqlite.written.changes] == [((1, 1), (1, 3))]


def test_a_statement_that_failed_within_an_act_is_not_journaled(sqlite):
    sqlite.schema("CREATE TABLE t (k INTEGER PRIMARY KEY, v UNIQUE)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    ledger = sqlite.ledger
    sqlite.dialect.begin(sqlite.link)

    def body(link):
        with pytest.raises(Exception, match="UNIQUE"):
            link.execute("UPDATE t SET v = 7")
        link.execute("DELETE FROM t WHERE k = 2")

    from takeback_acts.rows.entries import Entry

    written = ledger.write(sqlite.link, Entry("x", "2026"), body)
    sqlite.dialect.rollback(sqlite.link)
    assert [(c.before, c.after) for c in written.changes] == [((2, 2), None)]


def test_a_key_of_another_type_finds_the_row_that_the_database_finds(sqlite):
    sqlite.schema("CREATE TABLE t (k INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (7), (8)")
    table = sqlite.ledger.catalog.tables["t"]
    assert sqlite.dialect.read(sqlite.link, table, [("7",), (8,), (9,)]) == {("7",): (7,), (8,): (8,)}
