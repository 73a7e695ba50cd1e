"""Acts on more paths than a row of the log should hold."""

import pytest

from takeback.errors import TakebackError
from takeback_acts.files import itemlist
from tests.files.test_commands import Running, sh

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(itemlist, "MOST_IN_ROW", 3)


@pytest.fixture
def filled(root):
    sh(root, "mkdir -p d/e; for n in 1 2 3 4 5 6; do echo $n > $n; echo $n > d/e/$n; done")
    return root


async def test_they_are_listed_beside_the_row_and_come_back(bench, filled, snapshot):
    before = snapshot(filled)
    async with Running(bench.agent(), filled) as running:
        sh(filled, "rm 1 2; rm -r d; echo new > 3; echo new > 4; echo new > 7; mkdir -p 8/9")
    after = snapshot(filled, times=False)
    undone = await bench.undo(running.ended.act)
    assert snapshot(filled) == before
    again = await bench.person().call("undo.redo", id=undone.act)
    assert snapshot(filled, times=False) == after
    await bench.undo(running.ended.act)
    assert snapshot(filled) == before
    assert again.results


async def test_what_they_count_on_is_not_swept_away(bench, filled, snapshot, later):
    before = snapshot(filled)
    async with Running(bench.agent(), filled) as running:
        sh(filled, "rm -r ./*")
    (filled / "x").write_text("x")
    async with Running(bench.agent(), filled):
        pass
    later(40 * 86_400)
    await bench.person().call("files.gc", grace_hours=0)
    (filled / "x").unlink()
    await bench.undo(running.ended.act)
    assert snapshot(filled) == before


def test_a_damaged_list_is_said_to_be():
    for data in (b"rubbish\n", b'{"path":"/a","kind":"absent"}\n', b""):
        with pytest.raises(TakebackError) as caught:
            itemlist.load(data)
        assert caught.value.code == "files.blob_corrupt"
