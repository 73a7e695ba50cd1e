"""What the person declares in the settings, and what the database does by itself, by triggers."""

import pytest
from pydantic import ValidationError

from takeback.errors import ConflictError, TakebackError
from takeback_acts.rows.settings import RowsSettings

pytestmark = pytest.mark.anyio


async def refusal(call):
    with pytest.raises(TakebackError) as caught:
        await call
    return caught.value.code


class TestSettings:
    @pytest.fixture
    def settings(self):
        return {
            "rows": {
                "together": ["main.skill.{title,secret}"],
                "counters": ["main.skill.level"],
                "derived": ["main.note.body"],
            }
        }

    async def test_columns_that_belong_together_conflict_together(self, bench):
        done = await bench.agent().rows.update(table="skill", key=1, set={"title": "Rust", "secret": "x"})
        bench.sql("UPDATE skill SET secret = 'mine' WHERE id = 1")
        plan = await bench.preview(done.act)
        assert {each.resource for each in plan.conflicts} == {
            "rows:main/skill/1/secret",
            "rows:main/skill/1/title",
        }
        with pytest.raises(ConflictError):
            await bench.undo(done.act)
        assert bench.sql("SELECT title, secret FROM skill WHERE id = 1") == [("Rust", "mine")]

    async def test_of_a_counter_the_difference_is_taken_back(self, bench):
        done = await bench.agent().rows.execute(sql="UPDATE skill SET level = level + 10 WHERE id = 1")
        bench.sql("UPDATE skill SET level = level + 100 WHERE id = 1")
        plan = await bench.preview(done.act)
        await bench.undo(done.act, digest=plan.digest)
        assert bench.sql("SELECT level FROM skill WHERE id = 1") == [(105,)]

    async def test_what_is_derived_is_no_conflict(self, bench):
        done = await bench.agent().rows.insert(table="note", row={"id": 20, "skill": 1, "body": "made"})
        bench.sql("UPDATE note SET body = 'kept by an app' WHERE id = 20")
        await bench.undo(done.act)
        assert bench.sql("SELECT * FROM note WHERE id = 20") == []


@pytest.mark.parametrize("wrong", ["skill.title", "main.skill", "Main.skill.title", "main.skill.{title}", ""])
def test_a_setting_that_names_no_column_is_an_error(wrong):
    assert RowsSettings(hidden=["main.skill.title", "main.audit.log.what"]).hidden
    with pytest.raises(ValidationError):
        RowsSettings(hidden=[wrong])


class TestSqlite:
    @pytest.fixture
    def make(self):
        from tests.rows.module.conftest import Sqlite

        return Sqlite

    @pytest.fixture
    def settings(self):
        return {"rows": {"outside": ["main.heard"]}}

    async def test_an_index_for_searching_follows_by_its_own_triggers(self, bench):
        bench.sql(
            "CREATE VIRTUAL TABLE found USING fts5 (title, content='skill', content_rowid='id')",
            "INSERT INTO found (found) VALUES ('rebuild')",
            "CREATE TRIGGER found_u AFTER UPDATE ON skill BEGIN"
            " INSERT INTO found (found, rowid, title) VALUES ('delete', old.id, old.title);"
            " INSERT INTO found (rowid, title) VALUES (new.id, new.title); END",
        )
        done = await bench.agent().rows.update(table="skill", key=1, set={"title": "Rust"})
        assert bench.sql("SELECT rowid FROM found WHERE found MATCH 'Rust'") == [(1,)]
        await bench.undo(done.act)
        assert bench.sql("SELECT rowid FROM found WHERE found MATCH 'Rust'") == []
        assert bench.sql("SELECT rowid FROM found WHERE found MATCH 'Python'") == [(1,)]
        assert await refusal(bench.agent().rows.execute(sql="DELETE FROM found")) == "rows.unjournaled"

    async def test_what_a_trigger_would_change_and_nobody_could_take_back_is_refused(self, bench):
        bench.sql(
            "CREATE TRIGGER odd AFTER DELETE ON tag BEGIN INSERT INTO keyless VALUES (1, 2); END",
        )
        before = bench.dump()
        assert await refusal(bench.agent().rows.delete(table="tag", key="red")) == "rows.unjournaled"
        assert await refusal(bench.agent().rows.execute(sql="DELETE FROM tag")) == "rows.unjournaled"
        assert bench.dump() == before
        await bench.agent().rows.update(table="tag", key="red", set={"weight": 5.0})

    async def test_a_table_that_is_outside_is_written_by_triggers_alone(self, bench):
        bench.sql(
            "CREATE TABLE heard (what)",
            "CREATE TRIGGER hear AFTER UPDATE ON tag BEGIN INSERT INTO heard VALUES (new.name); END",
        )
        done = await bench.agent().rows.update(table="tag", key="red", set={"weight": 5.0})
        await bench.undo(done.act)
        assert bench.sql("SELECT count(*) FROM heard") == [(2,)]
        assert await refusal(bench.agent().rows.execute(sql="DELETE FROM heard")) in (
            "rows.outside",
            "rows.unjournaled",
        )

    async def test_a_trigger_that_rolls_everything_back(self, bench):
        bench.sql(
            "CREATE TRIGGER no BEFORE UPDATE ON tag BEGIN SELECT raise(ROLLBACK, 'no'); END",
        )
        before = bench.dump()
        code = await refusal(bench.agent().rows.update(table="tag", key="red", set={"weight": 5.0}))
        assert code == "rows.constraint"
        assert bench.dump() == before
        assert bench.journal() == []
        bench.sql("DROP TRIGGER no")
        done = await bench.agent().rows.update(table="tag", key="red", set={"weight": 5.0})
        later = await bench.agent().rows.update(table="skill", key=1, set={"level": 9})
        bench.sql("CREATE TRIGGER no BEFORE UPDATE ON tag BEGIN SELECT raise(ROLLBACK, 'no'); END")
        here = bench.dump()
        with pytest.raises(TakebackError):
            await bench.person().undo.rewind(session="s1")
        assert bench.dump() == here
        assert {act.state for act in await bench.acts() if act.id in (done.act, later.act)} <= {
            "done",
            "failed",
        }

    async def test_two_rows_that_one_replaced_come_back(self, bench):
        before = bench.dump()
        done = await bench.agent().rows.execute(
            sql="INSERT OR REPLACE INTO tag VALUES ('red', ?)", parameters=[2.0]
        )
        assert bench.sql("SELECT * FROM tag") == [("red", 2.0)]
        await bench.undo(done.act)
        assert bench.dump() == before
