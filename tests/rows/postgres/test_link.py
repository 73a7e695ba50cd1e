"""Connecting, being let go of, and what is told of it."""

import threading

import psycopg
import pytest

from takeback.errors import RefusedError, TakebackError, UsageError
from takeback_acts.rows.postgres.dialect import PostgresDialect
from takeback_acts.rows.postgres.link import open_link, refusals

SECRET = "hunter-twenty-two"
KILL = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE application_name = 'takeback' AND datname = current_database()
"""


def _told(error):
    return f"{error!r} {error} {error.as_dict()} {error.__cause__} {error.__suppress_context__}"


def test_a_wrong_password_is_told_without_it(here):
    with pytest.raises(RefusedError) as refused:
        open_link(here.server.url(here.name, role="locked", password=SECRET))
    assert refused.value.code == "rows.password"
    assert SECRET not in _told(refused.value)
    open_link(here.server.url(here.name, role="locked", password="right")).close()


def test_a_user_that_is_not_there_is_told(here):
    with pytest.raises(RefusedError) as refused:
        open_link(here.server.url(here.name, role="nobody_at_all", password=SECRET))
    assert refused.value.code == "rows.password"


@pytest.mark.parametrize("place", ["server", "database"])
def test_a_server_or_database_that_is_not_there_is_told_without_the_password(here, place):
    url = here.server.url("no_such_database", password=SECRET)
    if place == "server":
        url = f"postgresql://app:{SECRET}@/x?host=/nowhere"
    with pytest.raises(TakebackError) as unreachable:
        open_link(url)
    assert unreachable.value.code == "rows.unreachable"
    assert unreachable.value.retryable
    assert SECRET not in _told(unreachable.value)


@pytest.mark.parametrize(
    "url", ["postgresql://app:{}@h:port/x", "postgresql://app:{}@h/x?nonsense=1", "password={} x"]
)
def test_what_is_no_url_is_told_without_it(url):
    with pytest.raises(UsageError) as wrong:
        open_link(url.format(SECRET))
    assert wrong.value.code == "rows.url"
    assert SECRET not in _told(wrong.value)


def test_a_superuser_is_refused(here):
    link = open_link(here.server.url(here.name, role="postgres"))
    assert [refusal.code for refusal in refusals(link)] == ["rows.superuser"]
    link.execute("SET ROLE app")
    assert [refusal.code for refusal in refusals(link)] == ["rows.superuser"]
    link.close()
    assert refusals(here.link) == []


def test_a_user_that_may_read_the_servers_files_is_refused(here):
    with here.server.connect() as admin:
        admin.execute("CREATE ROLE reader LOGIN; GRANT pg_read_server_files TO reader")
    link = open_link(here.server.url(here.name, role="reader"))
    assert [refusal.code for refusal in refusals(link)] == ["rows.superuser"]
    link.close()
    with here.server.connect() as admin:
        admin.execute("DROP ROLE reader")


def test_a_database_of_no_certain_encoding_is_refused(here):
    with here.server.connect() as admin:
        admin.execute(
            "CREATE DATABASE ascii TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'"
            " LOCALE_PROVIDER libc OWNER app"
        )
    link = open_link(here.server.url("ascii"))
    assert [refusal.code for refusal in refusals(link)] == ["rows.encoding"]
    link.close()
    here.server.drop("ascii")


def test_values_come_as_what_python_has_the_same_of_or_as_their_text(here):
    row = here.link.execute(
        "SELECT 1::int2, 2::int8, 1.5::float8, true, '\\x00ff'::bytea, 1.10::numeric, '2026-11-30'::date,"
        " '{\"a\":1}'::json, '{1,2}'::int[], NULL, 'infinity'::timestamptz, 'x'::name, '{a}'::text[]"
    )
    assert row == [
        (1, 2, 1.5, True, b"\x00\xff", "1.10", "2026-11-30", '{"a":1}', "{1,2}", None, "infinity", "x", ["a"])
    ]


def test_parameters_are_texts_that_the_statement_gives_a_type(here):
    here.sql("CREATE TABLE t (a int, b bool, c float8, d bytea, e text)")
    sql = "INSERT INTO t VALUES (%s, %s, %s, %s, %s || '%%s %%')"
    for _ in range(4):
        here.link.execute(sql, (7, True, 0.1, b"\0\xff", "%s"))
        assert here.link.rowcount == 1
    assert here.link.execute("SELECT * FROM t WHERE e LIKE '%'") == [(7, True, 0.1, b"\0\xff", "%s%s %")] * 4
    for wrong in ((1,), (1, 2, 3, 4, 5, 6)):
        with pytest.raises(psycopg.ProgrammingError):
            here.link.execute(sql, wrong)
    with pytest.raises(psycopg.DataError):
        here.link.execute(sql, (1, True, 1.0, b"", "a\0b"))


def test_a_statement_that_was_prepared_survives_its_table_changing(here):
    here.sql("CREATE TABLE t (a int)")
    for _ in range(3):
        assert here.link.execute("SELECT * FROM t WHERE a = %s", (1,)) == []
    here.sql("ALTER TABLE t ADD COLUMN b int")
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        here.link.execute("SELECT * FROM t WHERE a = %s", (1,))
    here.sql("INSERT INTO t VALUES (1, 2)")
    assert here.link.execute("SELECT * FROM t WHERE a = %s", (1,)) == [(1, 2)]


def test_more_statements_than_are_kept_prepared(here):
    for number in range(600):
        assert here.link.execute(f"SELECT {number} + %s::int", (1,)) == [(number + 1,)]
        assert here.link.execute(f"SELECT {number} + %s::int", (2,)) == [(number + 2,)]
    (count,) = here.link.execute("SELECT count(*) FROM pg_prepared_statements")[0]
    assert count <= 257


def test_copy_is_no_statement(here):
    with pytest.raises(psycopg.ProgrammingError):
        here.link.execute("COPY (SELECT 1) TO STDOUT")
    assert not here.link.usable


def test_a_connection_that_was_lost_meanwhile_is_made_anew_at_the_next_beginning(here):
    here.sql("CREATE TABLE t (id int PRIMARY KEY)")
    catalog = here.install()
    for _ in range(2):
        here.stranger.execute(KILL)
        here.dialect.begin(here.link)
        here.dialect.arm(here.link, catalog, "act")
        here.link.execute("INSERT INTO t SELECT count(*) FROM t")
        assert len(here.dialect.collect(here.link, catalog)) == 1
        here.dialect.commit(here.link)


def test_a_connection_that_is_lost_within_a_transaction_is_told(here):
    here.sql("CREATE TABLE t (id int PRIMARY KEY)")
    here.install()
    here.dialect.begin(here.link)
    here.link.execute("INSERT INTO t VALUES (1)")
    here.stranger.execute(KILL)
    with pytest.raises(psycopg.OperationalError):
        here.link.execute("SELECT 1")
    assert not here.link.usable
    here.dialect.rollback(here.link)
    here.dialect.begin(here.link)
    assert here.link.execute("SELECT * FROM t") == []
    here.stranger.execute(KILL)
    with pytest.raises(TakebackError) as unsure:
        here.dialect.commit(here.link)
    assert unsure.value.code == "rows.unsure"


def test_a_statement_is_ended_from_another_thread(here):
    started = threading.Event()

    def end():
        started.wait()
        while "pg_sleep" not in str(
            here.stranger.execute("SELECT query FROM pg_stat_activity WHERE state = 'active'").fetchall()
        ):
            pass
        here.link.interrupt()

    thread = threading.Thread(target=end)
    thread.start()
    started.set()
    with pytest.raises(psycopg.errors.QueryCanceled):
        here.link.execute("SELECT pg_sleep(60) /* pg_sleep */")
    thread.join()
    assert here.link.execute("SELECT 1") == [(1,)]


def test_no_statement_runs_for_ever_and_none_waits_for_ever(here):
    here.sql("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    here.install()
    here.dialect.begin(here.link, limits={"statement": 0.05, "lock": 5})
    with pytest.raises(psycopg.errors.QueryCanceled):
        here.link.execute("SELECT pg_sleep(60)")
    here.dialect.rollback(here.link)
    with here.stranger.transaction():
        here.sql("DELETE FROM t")
        here.dialect.begin(here.link, limits={"statement": 60, "lock": 0.05})
        with pytest.raises(psycopg.errors.LockNotAvailable):
            here.link.execute("DELETE FROM t")
        here.dialect.rollback(here.link)
    assert here.link.execute("SHOW statement_timeout") == [("0",)]


def test_a_transaction_that_only_reads_cannot_write(here):
    here.sql("CREATE TABLE t (id int PRIMARY KEY)")
    here.dialect.begin(here.link, read_only=True)
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        here.link.execute("INSERT INTO t VALUES (1)")
    here.dialect.rollback(here.link)


def test_settings_that_a_function_left_behind_hold_no_longer_than_its_transaction(here):
    here.sql(
        "CREATE TABLE t (id int PRIMARY KEY, at timestamptz); INSERT INTO t VALUES (1, '2026-01-01 00:00+00')"
    )
    table = here.install().tables["t"]
    here.link.execute(
        "SELECT set_config('TimeZone', 'Asia/Tokyo', false), set_config('DateStyle', 'German', false)"
    )
    here.dialect.begin(here.link)
    assert here.dialect.read(here.link, table, [("1",)]) == {("1",): ("1", "2026-01-01 00:00:00+00")}
    here.dialect.rollback(here.link)


def test_unqualified_names_are_those_of_the_schema_public(here):
    here.sql(
        "CREATE SCHEMA app; CREATE TABLE app.t (id int PRIMARY KEY);"
        "CREATE TABLE public.t (id int PRIMARY KEY)"
    )
    catalog = here.install()
    assert sorted(catalog.tables) == ["app.t", "t"]
    assert here.capture("INSERT INTO t VALUES (1)", catalog=catalog) == [("t", None, ("1",))]


def test_the_journal_goes_where_the_user_may_make_it(here):
    with here.server.connect(here.name) as admin:
        admin.execute("CREATE SCHEMA AUTHORIZATION other")
    with here.server.connect(here.name, role="other") as theirs:
        theirs.execute("CREATE TABLE other.t (id int PRIMARY KEY)")
    link, dialect = open_link(here.server.url(here.name, role="other")), PostgresDialect()
    catalog = dialect.catalog(link)
    dialect.begin(link)
    dialect.install(link, catalog)
    dialect.arm(link, catalog, "act")
    link.execute("INSERT INTO other.t VALUES (1)")
    assert dialect.collect(link, catalog) == [("other.t", None, ("1",))]
    dialect.commit(link)
    assert link.execute("SELECT to_regclass('takeback_journal')::text") == [("takeback_journal",)]
    link.close()


def test_a_user_that_may_make_nothing_anywhere_is_told(here):
    link, dialect = open_link(here.server.url(here.name, role="other")), PostgresDialect()
    with pytest.raises(RefusedError) as refused:
        dialect.install(link, dialect.catalog(link))
    assert refused.value.code == "rows.privilege"
    link.close()


def test_what_is_posted_goes_with_the_commit_or_before_the_next_statement(here):
    here.sql("CREATE TABLE t (id int PRIMARY KEY)")
    here.install()
    for number in (1, 2, 3):
        here.dialect.begin(here.link)
        here.link.post("INSERT INTO t VALUES (%s)", (number,))
        here.dialect.commit(here.link)
    here.dialect.begin(here.link)
    here.link.post("INSERT INTO t VALUES (%s)", (4,))
    assert here.link.execute("SELECT count(*) FROM t") == [(4,)]
    here.link.post("INSERT INTO t VALUES (%s)", (5,))
    here.dialect.rollback(here.link)
    assert here.link.execute("SELECT count(*) FROM t") == [(3,)]


@pytest.mark.parametrize("number", [1, 7])
def test_a_commit_that_posted_what_fails_commits_nothing(here, number):
    here.sql("CREATE TABLE t (id int PRIMARY KEY, v int REFERENCES t DEFERRABLE INITIALLY DEFERRED)")
    here.sql("INSERT INTO t VALUES (1)")
    here.install()
    for _ in range(3):
        here.dialect.begin(here.link)
        here.link.execute("INSERT INTO t VALUES (2)")
        here.link.post("INSERT INTO t VALUES (%s, %s)", (number, 99))
        with pytest.raises(psycopg.IntegrityError):
            here.dialect.commit(here.link)
        here.dialect.rollback(here.link)
        assert here.link.execute("SELECT count(*) FROM t") == [(1,)]


def test_a_transaction_that_failed_is_not_taken_for_committed(here):
    here.sql("CREATE TABLE t (id int PRIMARY KEY)")
    here.install()
    here.dialect.begin(here.link)
    with pytest.raises(psycopg.errors.DivisionByZero):
        here.link.execute("SELECT 1 / 0")
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        here.dialect.commit(here.link)


def test_a_connection_that_is_lost_while_what_was_posted_is_committed_leaves_it_unsure(here):
    here.sql("CREATE TABLE t (id int PRIMARY KEY)")
    here.install()
    here.dialect.begin(here.link)
    here.link.post("INSERT INTO t VALUES (%s)", (1,))
    here.stranger.execute(KILL)
    with pytest.raises(TakebackError) as unsure:
        here.dialect.commit(here.link)
    assert unsure.value.code == "rows.unsure"
    here.dialect.rollback(here.link)
    here.dialect.begin(here.link)
    assert here.link.execute("SELECT * FROM t") == []
    here.dialect.rollback(here.link)


def test_a_server_that_was_killed_and_started_again_has_what_was_committed(here):
    here.sql("CREATE TABLE t (id int PRIMARY KEY)")
    catalog = here.install()
    here.dialect.begin(here.link)
    here.link.execute("INSERT INTO t VALUES (1)")
    here.dialect.commit(here.link)
    here.server.kill()
    here.dialect.begin(here.link)
    assert here.dialect.refresh(here.link, catalog) is catalog
    assert here.link.execute("SELECT * FROM t") == [(1,)]
    here.dialect.rollback(here.link)
