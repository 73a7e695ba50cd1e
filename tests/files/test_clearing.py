"""A folder goes whole or not at all, and what has to stay can be seen."""

import os

import pytest

from takeback.errors import TakebackError
from takeback_acts.files import clearing

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("stuck", ["d/b/x", "d/b", "d/b/link"])
async def test_a_folder_that_could_not_be_cleared_away_whole_stays_whole(
    bench, root, monkeypatch, snapshot, stuck
):
    """As with a file that somebody has made immutable."""
    (root / "d" / "b").mkdir(parents=True)
    (root / "d" / "a").write_text("a")
    (root / "d" / "b" / "x").write_text("x")
    (root / "d" / "b" / "link").symlink_to("x")
    before = snapshot(root)
    inode = (root / stuck).lstat().st_ino
    real = clearing._is_fixed
    monkeypatch.setattr(
        clearing,
        "_is_fixed",
        lambda spot, found: found.st_ino == inode or real(spot, found),
    )
    with pytest.raises(TakebackError) as error:
        await bench.agent().call("files.delete", path="d", recursive=True)
    assert error.value.code == "files.denied"
    assert stuck in error.value.message
    assert snapshot(root) == before
    assert [act.state for act in (await bench.person().call("undo.list")).acts] == ["abandoned"]


async def test_what_can_not_be_removed_after_all_can_be_seen(bench, root, monkeypatch):
    (root / "d").mkdir()
    (root / "d" / "x").write_text("x")
    (root / "d" / "y").write_text("y")
    real = os.unlink

    def unlink(name, **more):
        if name == b"x":
            raise PermissionError(1, "not permitted")
        real(name, **more)

    monkeypatch.setattr(os, "unlink", unlink)
    done = await bench.agent().call("files.delete", path="d", recursive=True)
    monkeypatch.undo()
    (kept,) = os.listdir(root)
    assert kept.startswith("d.kept-")
    assert os.listdir(root / kept) == ["x"]
    assert kept in done.notes[0]
