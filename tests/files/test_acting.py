"""What must be durable before an effect is, or the effect does not happen."""

import pytest

from takeback.errors import TakebackError

pytestmark = pytest.mark.anyio

NO_BYTES = """
CREATE TRIGGER no_bytes BEFORE INSERT ON files_blob BEGIN SELECT RAISE(ABORT, 'disk I/O error'); END
"""


async def _fails(bench, *call, **args):
    with pytest.raises(TakebackError) as error:
        await bench.agent().call(*call, **args)
    return error.value


async def _acts(bench):
    return [(act.tool, act.state) for act in (await bench.person().call("undo.list")).acts]


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("files.write", {"path": "a", "content": "new"}),
        ("files.edit", {"path": "a", "old": "old", "new": "x"}),
        ("files.delete", {"path": "a"}),
        ("files.delete", {"path": "d", "recursive": True}),
        ("files.move", {"path": "a", "to": "d/x", "overwrite": True}),
        ("files.make_dir", {"path": "m/n", "parents": True}),
    ],
)
async def test_nothing_is_done_when_its_pre_image_could_not_be_kept(bench, root, snapshot, tool, args):
    (root / "a").write_text("old")
    (root / "d").mkdir()
    (root / "d" / "x").write_text("x")
    before = snapshot(root)
    await bench.kernel.store.transaction(lambda tx: tx.execute(NO_BYTES))
    await _fails(bench, tool, **args)
    assert snapshot(root) == before
    assert await _acts(bench) == [(tool, "abandoned")]


async def test_an_undo_whose_own_pre_image_could_not_be_kept_does_nothing(bench, root, snapshot):
    (root / "a").write_text("old")
    done = await bench.agent().call("files.delete", path="a")
    before = snapshot(root)
    await bench.kernel.store.transaction(
        lambda tx: tx.execute(
            "CREATE TRIGGER no_script BEFORE INSERT ON files_running"
            " BEGIN SELECT RAISE(ABORT, 'disk I/O error'); END"
        )
    )
    with pytest.raises(TakebackError):
        await bench.undo(done.act)
    assert snapshot(root) == before


async def test_a_script_that_could_not_be_forgotten_is_forgotten_with_the_next_act(bench, root):
    def drop(tx):
        tx.execute("DROP TRIGGER stays")

    def waiting(db):
        return db.execute("SELECT count(*) FROM files_running").fetchone()[0]

    await bench.kernel.store.transaction(
        lambda tx: tx.execute(
            "CREATE TRIGGER stays BEFORE DELETE ON files_running BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
    )
    await bench.agent().call("files.write", path="a", content="1")
    assert await bench.kernel.store.read(waiting) == 1
    await bench.kernel.store.transaction(drop)
    await bench.agent().call("files.write", path="b", content="2")
    assert await bench.kernel.store.read(waiting) == 0


async def test_a_command_is_not_in_the_log_before_what_it_replaced_is_kept(bench, root, snapshot):
    (root / "d").mkdir()
    (root / "d" / "x").write_text("x")
    before, agent = snapshot(root, times=False), bench.agent()
    begun = await agent.call("files.begin_command", cwd=str(root), command=["rm", "-r", "d"])
    (root / "d" / "x").unlink()
    (root / "d").rmdir()
    await bench.kernel.store.transaction(lambda tx: tx.execute(NO_BYTES))
    assert (await _fails(bench, "files.end_command", window=begun.window)).code
    assert await _acts(bench) == []
    await bench.kernel.store.transaction(lambda tx: tx.execute("DROP TRIGGER no_bytes"))
    ended = await agent.call("files.end_command", window=begun.window)
    await bench.undo(ended.act)
    assert snapshot(root, times=False) == before
