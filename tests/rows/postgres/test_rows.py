"""Reading and writing many rows at once, and what a constraint says of them."""

import threading
from typing import Any

import psycopg
import pytest

from takeback_acts.rows.changes import Event
from takeback_acts.rows.dialect import Violation
from takeback_acts.rows.postgres.order import ordered
from takeback_acts.rows.tables import Column, Table

T = {"t": Table("t", (Column("id", "integer", False), Column("v", "text", True)), ("id",))}


def _event(before, after):
    return Event("t", before, after)


def test_events_of_one_row_are_tied_by_how_it_looked():
    a, b, c, d = ("1", "a"), ("1", "b"), ("1", "c"), ("2", "c")
    cases: dict[Any, list[Any]] = {
        ((a, b), (b, c)): [(a, c)],
        ((b, c), (a, b)): [(a, c)],
        ((c, d), (b, c), (a, b)): [(a, d)],
        ((b, None), (None, b)): [],
        ((None, b), (b, None)): [],
        ((b, None), (a, b)): [(a, None)],
        ((b, c), (None, b)): [(None, c)],
        ((None, b), (a, None)): [(a, b)],
        ((a, b), (b, a), (a, c)): [(a, c)],
        ((a, b), (b, a)): [],
        ((a, None), (None, a), (a, c)): [(a, c)],
    }
    for events, come_to in cases.items():
        assert ordered([_event(*each) for each in events], T) == [_event(*each) for each in come_to], events


def test_rows_that_exchange_keys_are_followed():
    one, two = ("1", "a"), ("2", "b")
    events = [_event(one, ("2", "a")), _event(two, ("1", "b"))]
    assert ordered(events, T) == events


def test_rows_are_written_and_read_whatever_their_values(here):
    here.sql(
        "CREATE TABLE t (a text, b numeric, c text[], g int GENERATED ALWAYS AS (length(a)) STORED,"
        " i int GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (a, b))"
    )
    table = here.install().tables["t"]
    texts = ["", "NULL", "null", 'a"b', "a\\b", "{a,b}", "a,b", "\u00e9\U0001f600", " ", "\n\t", "%s"]
    images: list[Any] = [(text, "1.10", None, str(len(text)), str(n)) for n, text in enumerate(texts, 100)]
    images += [(text, "2", '{"x",NULL}', str(len(text)), "7") for text in texts[:2]]
    here.dialect.begin(here.link)
    here.dialect.insert(here.link, table, images)
    keys = [table.key_of(image) for image in images]
    read = here.dialect.read(here.link, table, keys, lock=True)
    assert sorted(image[:2] for image in read.values()) == sorted(image[:2] for image in images)
    assert read["NULL", "2"] == ("NULL", "2", "{x,NULL}", "4", "7")
    assert here.dialect.read(here.link, table, [("NULL", "2.000"), ("none", "1")]) == {
        ("NULL", "2.000"): read["NULL", "2"]
    }
    assert here.dialect.read(here.link, table, []) == {}
    here.dialect.update(
        here.link,
        table,
        [(("", "2"), {"a": "new", "c": None}), (("NULL", "2"), {"b": "3.30"}), (("", "1.1"), {"c": "{}"})],
    )
    here.dialect.update(here.link, table, [])
    assert here.dialect.read(here.link, table, [("new", "2"), ("NULL", "3.3"), ("", "1.1")]) == {
        ("new", "2"): ("new", "2", None, "3", "7"),
        ("NULL", "3.3"): ("NULL", "3.30", "{x,NULL}", "4", "7"),
        ("", "1.1"): ("", "1.10", "{}", "0", "100"),
    }
    here.dialect.delete(here.link, table, [("new", "2"), *keys])
    assert here.link.execute("SELECT a, b FROM t") == [("NULL", "3.30")]
    here.dialect.rollback(here.link)


def test_more_rows_than_go_into_one_statement(here):
    here.sql("CREATE TABLE t (id int PRIMARY KEY, v text)")
    table = here.install().tables["t"]
    images = [(str(n), None if n % 3 else f"v{n}") for n in range(25_000)]
    here.dialect.begin(here.link)
    here.dialect.insert(here.link, table, images)
    assert here.dialect.read(here.link, table, [image[:1] for image in images]) == {i[:1]: i for i in images}
    here.dialect.delete(here.link, table, [image[:1] for image in images])
    assert here.link.execute("SELECT count(*) FROM t") == [(0,)]
    here.dialect.rollback(here.link)


def test_what_columns_hold_when_nobody_names_them(here):
    here.sql("CREATE TABLE t (id int PRIMARY KEY, a char(3) DEFAULT 'x', n numeric DEFAULT 1.10, b text)")
    table = here.dialect.catalog(here.link).tables["t"]
    assert here.dialect.defaults(here.link, table, ["n", "a", "b"]) == ("1.10", "x  ", None)
    assert here.dialect.defaults(here.link, table, []) == ()


@pytest.mark.parametrize(
    ("sql", "violation"),
    [
        ("INSERT INTO a.t VALUES (1, 2, 3, 4, '[1,2)')", Violation("unique", "t_pkey", "a.t", ("id",))),
        ("INSERT INTO a.t VALUES (2, 1, 3, 4, '[1,2)')", Violation("unique", "one", "a.t", ("u",))),
        ("INSERT INTO a.t VALUES (2, 2, 3, 99, '[1,2)')", Violation("check", "small", "a.t", ())),
        (
            "INSERT INTO a.t VALUES (2, 2, NULL, 4, '[1,2)')",
            Violation("not_null", "", "a.t", ("n",)),
        ),
        ("INSERT INTO a.t VALUES (2, 2, 3, 4, '[15,16)')", Violation("exclusion", "apart", "a.t", ("r",))),
        ("INSERT INTO child VALUES (1, 9)", Violation("foreign_key", "up", "child", ("t",))),
        ("DELETE FROM a.t", Violation("foreign_key", "up", "child", ("t",))),
        ("DELETE FROM held", Violation("foreign_key", "strict", "holds", ("h",))),
        ("INSERT INTO part VALUES (1)", Violation("unique", "part_1_pkey", "part", ())),
        ("INSERT INTO d VALUES (1, -1)", Violation("check", "positive_check", "", ())),
    ],
)
def test_a_constraint_is_told_by_name_and_columns(here, sql, violation):
    here.sql(
        """
        CREATE SCHEMA a;
        CREATE TABLE a.t (id int PRIMARY KEY, u int CONSTRAINT one UNIQUE, n int NOT NULL,
            c int CONSTRAINT small CHECK (c < 10), r int4range,
            CONSTRAINT apart EXCLUDE USING gist (r WITH &&));
        INSERT INTO a.t VALUES (1, 1, 1, 1, '[10,20)');
        CREATE TABLE child (id int PRIMARY KEY, t int CONSTRAINT up REFERENCES a.t);
        INSERT INTO child VALUES (5, 1);
        CREATE TABLE held (id int PRIMARY KEY); INSERT INTO held VALUES (1);
        CREATE TABLE holds (id int PRIMARY KEY, h int CONSTRAINT strict REFERENCES held ON DELETE RESTRICT);
        INSERT INTO holds VALUES (1, 1);
        CREATE TABLE part (id int PRIMARY KEY) PARTITION BY RANGE (id);
        CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (9); INSERT INTO part VALUES (1);
        CREATE DOMAIN positive AS int CHECK (value > 0); CREATE TABLE d (id int PRIMARY KEY, p positive);
        """
    )
    here.install()
    here.dialect.begin(here.link)
    with pytest.raises(psycopg.IntegrityError) as broken:
        here.link.execute(sql)
    here.dialect.rollback(here.link)
    assert here.dialect.violation(broken.value) == violation
    assert here.dialect.violation(ValueError()) is None


def test_foreign_keys_wait_where_they_can_and_are_settled_before_commit(here):
    here.sql("CREATE TABLE t (id int PRIMARY KEY, up int CONSTRAINT up REFERENCES t DEFERRABLE)")
    catalog = here.install()
    table = catalog.tables["t"]
    here.dialect.begin(here.link)
    here.dialect.defer(here.link)
    here.dialect.insert(here.link, table, [("1", "2")])
    here.dialect.savepoint(here.link, "s")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        here.dialect.settle(here.link, catalog, [])
    here.dialect.rollback_to(here.link, "s")
    here.dialect.insert(here.link, table, [("2", "1")])
    assert here.dialect.settle(here.link, catalog, []) is None
    here.dialect.commit(here.link)


def test_a_value_to_be_there_for_a_moment_fits_its_column(here):
    here.sql("CREATE TABLE t (id int PRIMARY KEY, a int2, b int8, c text, d uuid, e varchar(3), f date)")
    table = here.install().tables["t"]
    spare = {name: here.dialect.spare(table, name, 3) for name in table.names}
    assert spare["e"] is None
    assert spare["f"] is None
    assert spare != {name: here.dialect.spare(table, name, 4) for name in table.names}
    here.dialect.begin(here.link)
    here.dialect.insert(here.link, table, [tuple(spare.values())])
    here.dialect.rollback(here.link)


def test_two_who_lock_the_same_rows_go_one_after_the_other(here):
    here.sql(
        "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT i, 0 FROM generate_series(1, 200) i"
    )
    table = here.install().tables["t"]
    keys = [(str(n),) for n in range(1, 201)]
    failed = []

    def add(order):
        from takeback_acts.rows.postgres.link import open_link

        link = open_link(here.url)
        try:
            for _ in range(20):
                here.dialect.begin(link)
                now = here.dialect.read(link, table, order, lock=True)
                sets = [(key, {"v": str(int(image[1]) + 1)}) for key, image in now.items()]
                here.dialect.update(link, table, sets)
                here.dialect.commit(link)
        except psycopg.Error as error:
            failed.append(error)
        finally:
            link.close()

    threads = [
        threading.Thread(target=add, args=(order,)) for order in (keys, keys[::-1], keys[100:] + keys[:100])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert here.link.execute("SELECT min(v), max(v) FROM t") == [(60, 60)]
