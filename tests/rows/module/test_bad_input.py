"""Bad input: each is a typed error with a hint, and nothing is changed by it."""

import pytest

from takeback.errors import TakebackError

pytestmark = pytest.mark.anyio

REFUSED = [
    ("CREATE TABLE x (a INTEGER)", "rows.statement_refused"),
    ("DROP TABLE skill", "rows.statement_refused"),
    ("ALTER TABLE skill ADD COLUMN x TEXT", "rows.statement_refused"),
    ("TRUNCATE skill", "rows.statement_refused"),
    ("SELECT * FROM skill", "rows.statement_refused"),
    ("VALUES (1)", "rows.statement_refused"),
    ("BEGIN", "rows.statement_refused"),
    ("COMMIT", "rows.statement_refused"),
    ("ROLLBACK", "rows.statement_refused"),
    ("SAVEPOINT x", "rows.statement_refused"),
    ("PRAGMA foreign_keys = OFF", "rows.statement_refused"),
    ("ATTACH 'x.db' AS x", "rows.statement_refused"),
    ("VACUUM", "rows.statement_refused"),
    ("REINDEX skill", "rows.statement_refused"),
    ("COPY skill FROM STDIN", "rows.statement_refused"),
    ("DO $$BEGIN END$$", "rows.statement_refused"),
    ("CALL f()", "rows.statement_refused"),
    ("SET TimeZone = 'UTC'", "rows.statement_refused"),
    ("GRANT ALL ON skill TO other", "rows.statement_refused"),
    ("LOCK TABLE skill", "rows.statement_refused"),
    ("EXPLAIN DELETE FROM skill", "rows.statement_refused"),
    ("REPLACE INTO tag VALUES ('red', 1)", "rows.statement_refused"),
    ("DELETE FROM tag RETURNING name", "rows.statement_refused"),
    ("DELETE FROM tag; DELETE FROM note", "rows.statement"),
    ("DELETE FROM tag; -- \nDROP TABLE note", "rows.statement"),
    ("", "args.invalid"),
    ("  ;  ", "rows.statement"),
    ("DELETE FRM tag WHERE (", "rows.statement"),
    ("DELETE FROM nothing", "rows.table"),
    ("UPDATE tag SET absent = 1", "rows.column"),
    ("DELETE FROM keyless", "rows.unjournaled"),
    ("INSERT INTO keyless VALUES (1, 2)", "rows.unjournaled"),
]


async def code(call):
    with pytest.raises(TakebackError) as caught:
        await call
    error = caught.value
    assert error.code != "call.crashed", error
    assert error.hint
    return error.code


async def test_statements_that_are_none_of_ours(bench):
    before = bench.dump()
    for sql, expected in REFUSED:
        for caller in (bench.person(), bench.agent()):
            found = await code(caller.rows.execute(sql=sql))
            # What is no word of one engine's is no statement to it.
            no_word = (found, expected) == ("rows.statement", "rows.statement_refused")
            assert found == expected or no_word, (sql, found)
    assert bench.dump() == before
    assert {act.state for act in await bench.acts()} <= {"abandoned"}


async def test_tables_columns_and_keys_that_are_not_there(bench):
    person = bench.person()
    assert await code(person.rows.query(table="nothing")) == "rows.table"
    assert await code(person.rows.query(table="keyless")) == "rows.unjournaled"
    assert await code(person.rows.query(table="tag", columns=["nothing"])) == "rows.column"
    assert await code(person.rows.query(table="tag", where={"nothing": 1})) == "rows.column"
    assert await code(person.rows.query(table="tag", order=["nothing"])) == "rows.column"
    assert await code(person.rows.insert(table="tag", row={"nothing": 1})) == "rows.column"
    assert await code(person.rows.update(table="tag", key="red", set={"nothing": 1})) == "rows.column"
    assert await code(person.rows.update(table="tag", key="green", set={"weight": 1.5})) == "rows.no_row"
    assert await code(person.rows.delete(table="tag", key="green")) == "rows.no_row"
    assert await code(person.rows.delete(table="tag", key={"weight": 1.0})) == "rows.key"
    assert await code(person.rows.delete(table="tag", key={"name": "red", "weight": 1.0})) == "rows.key"
    assert await code(person.rows.delete(table="tag", key=None)) == "rows.key"
    assert await code(person.rows.query(database="other", table="tag")) == "rows.database"
    assert await code(person.rows.update(table="tag", key="red", set={})) == "args.invalid"


async def test_values_that_a_column_can_not_take(bench):
    person, before = bench.person(), bench.dump()
    assert await code(person.rows.insert(table="tag", row={"name": "\ud800"})) == "rows.unfit"
    assert await code(person.rows.insert(table="skill", row={"title": "x", "level": 1 << 70})) == "rows.unfit"
    assert await code(person.rows.insert(table="tag", row={"name": {"base64": "no base64!"}})) == "rows.unfit"
    if bench.database.name == "postgresql":
        assert await code(person.rows.insert(table="tag", row={"name": "a\0b"})) == "rows.unfit"
        assert (
            await code(person.rows.insert(table="skill", row={"title": "x", "level": "many"})) == "rows.unfit"
        )
        assert await code(person.rows.update(table="tag", key="red", set={"weight": "heavy"})) == "rows.unfit"
    else:
        assert await code(person.rows.insert(table="tag", row={"name": float("nan")})) == "rows.unfit"
    assert bench.dump() == before


async def test_constraints_are_told_by_name_and_without_values(bench):
    person, before = bench.person(), bench.dump()
    for call, kind in (
        (person.rows.insert(table="tag", row={"name": "red", "weight": 77.0}), "unique"),
        (person.rows.insert(table="tag", row={"name": "pink", "weight": 2.0}), "unique"),
        (person.rows.insert(table="skill", row={"level": 1}), "not_null"),
        (person.rows.insert(table="note", row={"id": 1, "skill": 77}), "foreign_key"),
    ):
        with pytest.raises(TakebackError) as caught:
            await call
        assert caught.value.code == "rows.constraint"
        assert caught.value.data["kind"] == kind
        assert "77" not in str(caught.value.as_dict())
    assert bench.dump() == before


async def test_the_number_of_parameters_is_looked_at(bench):
    person, before = bench.person(), bench.dump()
    sql = bench.mark("UPDATE tag SET weight = ? WHERE name = ?")
    for given in ([], [1.5], [1.5, "red", "more"]):
        assert await code(person.rows.execute(sql=sql, parameters=given)) == "rows.parameters"
    assert bench.dump() == before


class TestLimits:
    @pytest.fixture
    def settings(self):
        return {"rows": {"most_changed": 2, "most_answered": 2}}

    async def test_too_many_rows_at_once_are_refused_and_rolled_back(self, bench):
        before = bench.dump()
        assert await code(bench.agent().rows.execute(sql="UPDATE skill SET level = 0")) == "rows.limit"
        assert await code(bench.agent().rows.delete(table="skill", key=1)) == "rows.limit"
        assert bench.dump() == before
        assert bench.journal() == []
        assert {act.state for act in await bench.acts()} == {"abandoned"}

    async def test_a_query_answers_no_more_than_it_may(self, bench):
        agent = bench.agent()
        assert await code(agent.rows.query(table="skill", limit=3)) == "rows.most_answered"
        found = await agent.rows.query(table="skill", limit=2)
        assert (len(found.rows), found.more) == (2, True)
        found = await agent.rows.query(table="skill", limit=2, offset=2)
        assert (len(found.rows), found.more) == (1, False)


class TestTime:
    @pytest.fixture
    def settings(self):
        return {"rows": {"statement_seconds": 0.3}}

    async def test_a_statement_that_takes_too_long_is_ended_and_rolled_back(self, bench):
        before = bench.dump()
        endless = (
            "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
            " UPDATE tag SET weight = (SELECT count(*) FROM c)"
        )
        if bench.database.name == "postgresql":
            endless = "UPDATE tag SET weight = (SELECT count(*) FROM generate_series(1, 100000000000) n)"
        assert await code(bench.agent().rows.execute(sql=endless)) == "rows.deadline"
        assert bench.dump() == before
        await bench.agent().rows.update(table="tag", key="red", set={"weight": 5.0})
        assert (await bench.acts())[0].state == "done"
