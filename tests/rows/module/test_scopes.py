"""What an agent may touch and see: tables by grant, columns by setting, and nothing by a way around."""

import pytest

from takeback.errors import NotFoundError, RefusedError, TakebackError

pytestmark = pytest.mark.anyio


@pytest.fixture
def settings():
    return {"rows": {"hidden": ["main.skill.secret"]}}


async def refused(call, code="scope.outside"):
    with pytest.raises(TakebackError) as caught:
        await call
    assert caught.value.code == code, caught.value
    return caught.value


async def test_without_a_grant_there_is_no_database(bench):
    agent = bench.agent(tables=())
    assert (await agent.rows.tables()).tables == []
    for call in (
        agent.rows.query(table="skill"),
        agent.rows.query(database="main", table="skill"),
        agent.rows.delete(database="main", table="tag", key="red"),
        agent.rows.execute(database="main", sql="DELETE FROM tag"),
    ):
        with pytest.raises(NotFoundError, match=r"rows\.database"):
            await call


async def test_a_granted_table_and_no_other(bench):
    before = bench.dump()
    agent = bench.agent(tables=["main.tag"])
    assert [table.name for table in (await agent.rows.tables()).tables] == ["tag"]
    assert len((await agent.rows.query(table="tag")).rows) == 2
    await refused(agent.rows.query(table="skill"))
    await refused(agent.rows.query(table="nothing"))
    await refused(agent.rows.insert(table="skill", row={"title": "C"}))
    await refused(agent.rows.update(table="skill", key=1, set={"level": 1}))
    await refused(agent.rows.delete(table="skill", key=1))
    await refused(agent.rows.execute(sql="DELETE FROM skill"))
    await refused(agent.rows.execute(sql="UPDATE tag SET weight = (SELECT max(level) + 5 FROM skill)"))
    assert bench.dump() == before


async def test_a_cascade_beyond_the_grant_is_rolled_back(bench):
    before = bench.dump()
    agent = bench.agent(tables=["main.skill"])
    await refused(agent.rows.delete(table="skill", key=1))
    assert bench.dump() == before
    await agent.rows.delete(table="skill", key=3)
    assert bench.sql("SELECT id FROM skill ORDER BY id") == [(1,), (2,)]


async def test_an_agent_takes_back_only_what_its_grants_of_today_hold(bench):
    done = await bench.agent().rows.update(table="tag", key="red", set={"weight": 5.0})
    narrowed = bench.agent(tables=["main.skill"])
    await refused(narrowed.undo.run(id=done.act))
    plan = (await narrowed.undo.preview(id=done.act)).plan
    assert "scope.outside" in plan.steps[0].reason
    await bench.agent().undo.run(id=done.act)
    assert bench.sql("SELECT weight FROM tag WHERE name = 'red'") == [(1.0,)]


async def test_hidden_columns_are_not_there_for_agents(bench):
    agent, person = bench.agent(), bench.person()
    (row, *_) = (await agent.rows.query(table="skill")).rows
    assert set(row) == {"id", "title", "level"}
    assert "secret" not in (await agent.rows.tables()).model_dump_json()
    assert (await person.rows.query(table="skill")).rows[0]["secret"] == "s1"
    for asked in (
        {"columns": ["secret"]},
        {"where": {"secret": "s1"}},
        {"where": {"secret": {"like": "s%"}}},
        {"order": ["secret"]},
        {"order": ["-secret"]},
    ):
        await refused(agent.rows.query(table="skill", **asked), "rows.hidden")
    await refused(agent.rows.insert(table="skill", row={"title": "C", "secret": "x"}), "rows.hidden")
    await refused(agent.rows.update(table="skill", key=1, set={"secret": "x"}), "rows.hidden")
    await refused(agent.rows.execute(sql="UPDATE skill SET level = 1 WHERE secret = 's1'"), "rows.hidden")
    await refused(agent.rows.execute(sql="UPDATE skill SET level = 1"), "rows.hidden")
    await refused(
        agent.rows.execute(sql="UPDATE note SET body = (SELECT secret FROM skill WHERE id = 1)"),
        "rows.hidden",
    )
    await person.rows.execute(sql="UPDATE skill SET level = 1 WHERE secret = 's1'")


async def test_a_view_does_not_lead_around_the_grants(bench):
    bench.sql("CREATE VIEW peek AS SELECT secret FROM skill")
    await refused(
        bench.agent(tables=["main.tag", "main.peek"]).rows.execute(
            sql="UPDATE tag SET weight = 3 WHERE name IN (SELECT secret FROM peek)"
        )
    )
    await refused(
        bench.agent().rows.execute(sql="UPDATE tag SET weight = 3 WHERE name IN (SELECT secret FROM peek)"),
        "rows.hidden",
    )


@pytest.mark.parametrize("name", ["takeback_journal", "TAKEBACK_JOURNAL", "main.takeback_journal"])
async def test_nobody_reaches_the_journal_through_a_tool(bench, name):
    await bench.agent().rows.update(table="tag", key="red", set={"weight": 5.0})
    journal = bench.journal()
    for caller in (bench.agent(), bench.person()):
        for call in (
            caller.rows.query(table=name),
            caller.rows.delete(table=name, key=1),
            caller.rows.execute(sql=f"DELETE FROM {name}"),
            caller.rows.execute(sql=f"UPDATE tag SET weight = 4 WHERE EXISTS (SELECT 1 FROM {name})"),
        ):
            with pytest.raises((NotFoundError, RefusedError)):
                await call
    assert bench.journal() == journal


async def test_functions_of_an_agent_are_those_that_only_compute(bench):
    agent = bench.agent()
    done = await agent.rows.execute(
        sql=bench.mark(
            "UPDATE tag SET weight = abs(round(weight)) + coalesce(?, 0) WHERE lower(name) = 'red'"
        ),
        parameters=[3],
    )
    assert done.changed == {"tag": 1}
    harmful = {
        "sqlite": ["load_extension('x')", "readfile('/etc/passwd')", "sqlite_version()"],
        "postgresql": [
            "pg_read_file('/etc/passwd')",
            "query_to_xml('SELECT secret FROM skill', true, true, '')::text",
            "pg_catalog.query_to_xml('SELECT 1', true, true, '')::text",
            "set_config('takeback.act', '', true)",
            "pg_sleep(0)::text",
            "nextval('skill_id_seq')::text",
            "lower(U&'\\0061')",
            "$$a$$",
        ],
    }
    for call in harmful[bench.database.name]:
        await refused(
            agent.rows.execute(sql=f"UPDATE note SET body = {call}"),
            "rows.statement_refused" if call[0] == "$" or "U&" in call else "rows.function",
        )
    assert bench.sql("SELECT body FROM note ORDER BY id") == [("ten",), ("eleven",), ("twelve",)]


async def test_what_would_switch_capture_off_is_nobodys(bench):
    call = (
        "load_extension('x')" if bench.database.name == "sqlite" else "set_config('takeback.act', '', true)"
    )
    await refused(bench.person().rows.execute(sql=f"UPDATE note SET body = {call}"), "rows.function")
