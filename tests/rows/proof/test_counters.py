"""A counter that others have brought to the very number it had before still has in it what an act added."""

import pytest

from takeback_acts.rows.module import RowsModule
from takeback_acts.rows.rules import Rules
from takeback_core.undo.module import UndoModule
from tests.rows.proof.stage import stage


def test_what_an_act_added_is_taken_away_though_the_number_is_as_before(engine):
    engine.schema("CREATE TABLE stock (id INTEGER PRIMARY KEY, n INTEGER)")
    engine.schema("INSERT INTO stock VALUES (1, 10)")
    engine.rules = Rules(deltas={"stock": frozenset({"n"})})
    act = engine.act("UPDATE stock SET n = n + 5")
    engine.stranger("UPDATE stock SET n = n - 5")
    assert engine.take_back(act).clean
    assert engine.stranger("SELECT n FROM stock") == [(5,)]
    assert engine.take_back(engine.undone[-1]).clean
    assert engine.stranger("SELECT n FROM stock") == [(10,)]


@pytest.mark.anyio
async def test_so_it_is_with_the_kernel(person, tmp_path):
    settings = {"rows": {"counters": ["main.account.balance"]}}
    modules = [UndoModule, RowsModule]
    async with stage(tmp_path / "home", tmp_path / "files", modules=modules, settings=settings) as opened:
        await opened.connect({"main": person})
        done = await opened.agent().rows.execute(sql="UPDATE account SET balance = balance + 5 WHERE id = 1")
        person.sql("UPDATE account SET balance = balance - 5 WHERE id = 1")
        undone = await opened.person().undo.run(id=done.act)
        assert person.sql("SELECT balance FROM account WHERE id = 1") == [(95,)]
        await opened.person().undo.redo(id=undone.act)
        assert person.sql("SELECT balance FROM account WHERE id = 1") == [(100,)]
