"""What could not be taken back, or would reach too far, is refused before anything happens."""

import os
import stat

import pytest

from takeback.errors import TakebackError
from takeback_acts.files import mounts, staging, trees
from takeback_acts.files.beneath import Home, Spot
from takeback_acts.files.reading import Digester

pytestmark = pytest.mark.anyio


async def _refused(bench, tool, **args):
    with pytest.raises(TakebackError) as error:
        await bench.agent().call(tool, args)
    assert (await bench.person().call("undo.list")).acts == []
    return error.value.code


@pytest.fixture
def mount(root, tmp_path, monkeypatch):
    """A list of mounts as the system keeps it, with one in a folder that has a space in its name."""
    (root / "a b" / "disk").mkdir(parents=True)
    (root / "a b" / "disk" / "x").write_text("x")
    point = os.fsencode(root / "a b" / "disk").replace(b" ", b"\\040")
    (tmp_path / "mounts").write_bytes(
        b"36 35 98:0 /sub " + point + b" rw,noatime shared:1 - ext3 /dev/x rw\n"
    )
    monkeypatch.setattr(mounts, "_LIST", str(tmp_path / "mounts"))


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("files.delete", {"path": "a b", "recursive": True}),
        ("files.delete", {"path": "a b/disk", "recursive": True}),
        ("files.move", {"path": "a b", "to": "c"}),
        ("files.move", {"path": "c", "to": "a b", "overwrite": True}),
    ],
)
async def test_a_folder_with_a_mount_in_it_stays_where_it_is(bench, root, mount, snapshot, tool, args):
    if args["path"] == "c":
        (root / "c").mkdir()
    before = snapshot(root)
    assert await _refused(bench, tool, **args) == "files.mount"
    assert snapshot(root) == before


async def test_acts_beside_and_in_a_mount_go_on(bench, root, mount):
    agent = bench.agent()
    await agent.call("files.write", path="a b/disk/x", content="new")
    await agent.call("files.make_dir", path="a b/other")
    await agent.call("files.delete", path="a b/other")
    await bench.person().call("undo.rewind", session="s1")
    assert (root / "a b" / "disk" / "x").read_text() == "x"


def test_another_device_is_told_where_there_is_no_list(tmp_path):
    here = os.open(tmp_path, os.O_RDONLY)
    spot = Spot(here, os.fsencode(os.path.relpath("/dev", os.path.realpath(tmp_path))), b"/dev")
    try:
        with pytest.raises(TakebackError) as error:
            trees.observe(spot, Digester(), Home([]))
    finally:
        os.close(here)
    assert error.value.code == "files.mount"


@pytest.mark.parametrize("offset", [1 << 62, (1 << 63) - 1])
async def test_a_read_far_behind_the_end_answers_nothing(bench, root, offset):
    (root / "a").write_text("x")
    found = await bench.agent().call("files.read", path="a", offset=offset)
    assert (found.content, found.next) == ("", None)


@pytest.mark.parametrize("offset", [1 << 63, 10**30, -1])
async def test_an_offset_that_no_file_can_have_is_an_invalid_argument(bench, root, offset):
    (root / "a").write_text("x")
    assert await _refused(bench, "files.read", path="a", offset=offset) == "args.invalid"


@pytest.mark.parametrize("name", [".takeback-0123456789abcdef", ".takeback-0123456789abcdef.part"])
async def test_names_of_our_own_are_nobodys_target(bench, root, name):
    (root / "a").write_text("x")
    for tool, args in (
        ("files.write", {"path": name, "content": "x"}),
        ("files.make_dir", {"path": name}),
        ("files.move", {"path": "a", "to": name}),
        ("files.write", {"path": name + "/x", "content": "x"}),
    ):
        assert await _refused(bench, tool, **args) == "files.reserved"
    assert os.listdir(root) == ["a"]


async def test_what_others_hide_under_such_a_name_is_listed_and_only_our_own_is_not(bench, root):
    (root / ".takeback-0123456789abcdef").write_text("x")
    (root / f".takeback-{staging.fresh()}").write_text("x")
    page = await bench.agent().call("files.list", path=str(root))
    assert [entry.name for entry in page.entries] == [".takeback-0123456789abcdef"]


@pytest.mark.parametrize(
    ("before", "after"),
    [(0o4755, 0o755), (0o2755, 0o755), (0o6711, 0o711), (0o2644, 0o2644), (0o1755, 0o1755)],
)
async def test_new_bytes_do_not_run_with_the_rights_of_the_old_ones(bench, root, before, after):
    (root / "a").write_text("old")
    (root / "a").chmod(before)
    assert stat.S_IMODE((root / "a").stat().st_mode) == before
    agent = bench.agent()
    await agent.call("files.write", path="a", content="old", executable=None)
    assert stat.S_IMODE((root / "a").stat().st_mode) == before
    done = await agent.call("files.write", path="a", content="new")
    assert stat.S_IMODE((root / "a").stat().st_mode) == after
    await bench.undo(done.act)
    assert stat.S_IMODE((root / "a").stat().st_mode) == before
