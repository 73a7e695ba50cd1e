"""Several nodes, cases 55 to 57, as far as there are any: several processes on one database.

takeback has no runs to claim and no leases. What keeps two processes apart are the locks of the database
itself; an owner that pauses too long is a transaction whose connection was ended, and what it wanted does not
come after. Clocks are written down and never order anything: numbers of the journal do. Nobody listens for
notifications; whoever looks sees what is committed.
"""

import os
import signal
import threading

import psycopg
import pytest

from takeback.errors import ConflictError, TakebackError
from takeback_acts.rows.entries import Entry
from tests.rows.cases.test_concurrent import opened

AT = "2026-11-30T09:00:00.000Z"


@pytest.fixture
def stock(engine):
    engine.schema(
        "CREATE TABLE stock (id INTEGER PRIMARY KEY, n INTEGER)", "INSERT INTO stock VALUES (1, 0), (2, 0)"
    )
    assert engine.ledger.catalog.tables
    return engine


def _undone(engine, act, name):
    """In a process of its own: an undo; 0 done, 3 somebody was quicker."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        link, dialect, ledger = opened(engine)
        dialect.begin(link)
        try:
            taken = ledger.take_back(link, ledger.entries(link, ids=[act]), id=name, at=AT)
            dialect.commit(link)
            code = 0 if taken.clean else 2
        except ConflictError as error:
            code = 3 if error.code == "rows.undone" else 4
    finally:
        os._exit(code)


def test_55_of_many_processes_that_undo_one_act_exactly_one_does(stock):
    act = stock.act("UPDATE stock SET n = n + 5")
    children = [_undone(stock, act, f"undo-{number}") for number in range(6)]
    codes = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
    assert codes == [0, 3, 3, 3, 3, 3]
    assert stock.stranger("SELECT n FROM stock") == [(0,), (0,)]


def test_55_who_is_killed_with_the_lock_lets_it_go_and_has_done_nothing(stock):
    act = stock.act("UPDATE stock SET n = n + 5")
    ready, stand = os.pipe()
    child = os.fork()
    if child == 0:
        link, dialect, ledger = opened(stock)
        dialect.begin(link)
        ledger.take_back(link, ledger.entries(link, ids=[act]), id="killed", at=AT)
        os.write(stand, b"x")
        signal.pause()
    os.read(ready, 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(ready)
    os.close(stand)
    assert stock.take_back(act).clean
    assert stock.entries("killed") == []
    assert stock.stranger("SELECT n FROM stock") == [(0,), (0,)]


def test_55_an_owner_that_paused_too_long_writes_nothing_afterwards(postgresql):
    """Its connection was ended meanwhile and another took the undo over."""
    postgresql.schema("CREATE TABLE stock (id int PRIMARY KEY, n int)", "INSERT INTO stock VALUES (1, 0)")
    act = postgresql.act("UPDATE stock SET n = 5")
    link, dialect, ledger = opened(postgresql)
    dialect.begin(link)
    assert ledger.take_back(link, ledger.entries(link, ids=[act]), id="paused", at=AT).clean
    with postgresql.server.connect() as admin:
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", (link.connection.info.backend_pid,))
    assert postgresql.take_back(act).clean
    with pytest.raises((psycopg.Error, TakebackError)):
        dialect.commit(link)
    link.close()
    assert postgresql.entries("paused") == []
    assert postgresql.entries(act)[0].undone_in == postgresql.undone[-1]
    assert postgresql.stranger("SELECT n FROM stock") == [(0,)]


def test_56_clocks_that_differ_order_nothing(stock):
    """The newer act was written by somebody whose clock is a year behind."""
    first = stock.act("UPDATE stock SET n = 1 WHERE id = 1")
    link, dialect, ledger = opened(stock)
    dialect.begin(link)
    ledger.write(
        link,
        Entry("behind", "2025-01-01T00:00:00.000Z", "juno"),
        lambda own: own.execute("UPDATE stock SET n = 2 WHERE id = 1"),
    )
    dialect.commit(link)
    link.close()
    assert [each.id for each in stock.entries(first, "behind")] == ["behind", first]
    assert stock.take_back(first, "behind").clean
    assert stock.stranger("SELECT n FROM stock WHERE id = 1") == [(0,)]


def test_56_behind_a_pooler_nothing_of_an_act_stays_with_its_session(postgresql):
    """Transaction by transaction a session is somebody else's: what was set is gone with its transaction."""
    postgresql.schema("CREATE TABLE stock (id int PRIMARY KEY, n int)", "INSERT INTO stock VALUES (1, 0)")
    left = (
        "SELECT nullif(current_setting('takeback.act', true), ''),"
        " nullif(current_setting('takeback.rows', true), ''),"
        " (SELECT count(*) FROM pg_class WHERE relpersistence = 't'), (SELECT count(*) FROM pg_locks"
        " WHERE locktype = 'advisory' AND pid = pg_backend_pid())"
    )
    act = postgresql.act("UPDATE stock SET n = 5")
    assert postgresql.link.execute(left) == [(None, None, 0, 0)]
    postgresql.link.execute("UPDATE stock SET n = 6")
    assert len(postgresql.entries(act)) == 1
    assert [each.column for each in postgresql.conflicts(postgresql.take_back(act))] == ["n"]
    assert postgresql.link.execute(left) == [(None, None, 0, 0)]
    postgresql.link.execute("UPDATE stock SET n = 5")
    assert postgresql.take_back(act).clean
    assert postgresql.link.execute(left) == [(None, None, 0, 0)]


def test_57_numbers_that_are_seen_out_of_order_are_caught_up_with(postgresql):
    """An act that got the lower number is committed after one that got the higher."""
    postgresql.schema(
        "CREATE TABLE stock (id int PRIMARY KEY, n int)", "INSERT INTO stock VALUES (1, 0), (2, 0)"
    )
    postgresql.act("UPDATE stock SET n = 1")
    link, dialect, ledger = opened(postgresql)
    dialect.begin(link)
    ledger.write(
        link, Entry("slow", AT, "juno"), lambda own: own.execute("UPDATE stock SET n = 2 WHERE id = 1")
    )
    link.execute("SELECT 1")
    quick = postgresql.act("UPDATE stock SET n = 2 WHERE id = 2")
    assert [each.id for each in postgresql.entries("slow", quick)] == [quick]
    dialect.commit(link)
    link.close()
    found = postgresql.entries("slow", quick)
    assert [each.id for each in found] == [quick, "slow"]
    assert postgresql.take_back(quick, "slow").clean
    assert postgresql.stranger("SELECT n FROM stock") == [(1,), (1,)]


def test_57_of_acts_on_one_row_the_numbers_are_in_the_order_of_their_writes(stock):
    """Who waits for a row gets its number after the other: newest first is the order of what happened."""
    link, dialect, ledger = opened(stock)
    dialect.begin(link)
    ledger.write(
        link, Entry("first", AT, "juno"), lambda own: own.execute("UPDATE stock SET n = n + 1 WHERE id = 1")
    )
    second = []
    other = threading.Thread(
        target=lambda: second.append(stock.act("UPDATE stock SET n = n * 10 WHERE id = 1"))
    )
    other.start()
    other.join(0.2)
    assert other.is_alive()
    dialect.commit(link)
    other.join(20)
    link.close()
    assert stock.stranger("SELECT n FROM stock WHERE id = 1") == [(10,)]
    assert [each.id for each in stock.entries("first", *second)] == [*second, "first"]
    assert stock.take_back("first", *second).clean
    assert stock.stranger("SELECT n FROM stock WHERE id = 1") == [(0,)]
