"""The acts of an agent: what they do, what they refuse, and what a rehearsal says of them."""

import base64
import itertools
import os
import stat

import anyio
import pytest

from takeback.errors import TakebackError

pytestmark = pytest.mark.anyio


async def _code(call):
    with pytest.raises(TakebackError) as error:
        await call
    return error.value.code


async def test_a_new_file_is_written(bench, root):
    done = await bench.agent().call("files.write", path="a.txt", content="héllo\n")
    assert (root / "a.txt").read_bytes() == "héllo\n".encode()
    assert done.path == str(root / "a.txt")
    assert done.resource == bench.uri("a.txt")
    assert done.version.startswith("file:0")
    assert [(e.resource, e.action) for e in done.effects] == [(done.resource, "create")]
    shown = await bench.person().call("undo.show", id=done.act)
    assert shown.act.tool == "files.write"
    assert shown.act.state == "done"
    assert "content" not in shown.act.input


async def test_bytes_are_written_and_come_back_as_they_are(bench, root):
    data = bytes(range(256))
    agent = bench.agent()
    await agent.call("files.write", path="b", content_base64=base64.b64encode(data).decode())
    assert (root / "b").read_bytes() == data
    read = await agent.call("files.read", path="b")
    assert read.content is None
    assert base64.b64decode(read.content_base64) == data


async def test_mode_and_owner_stay_and_the_bit_can_be_set(bench, root):
    script = root / "run.sh"
    script.write_text("old")
    script.chmod(0o640)
    agent = bench.agent()
    await agent.call("files.write", path="run.sh", content="new")
    assert stat.S_IMODE(script.stat().st_mode) == 0o640
    await agent.call("files.write", path="run.sh", content="newer", executable=True)
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    await agent.call("files.write", path="run.sh", content="newest", executable=False)
    assert stat.S_IMODE(script.stat().st_mode) == 0o640


async def test_the_owner_and_attached_attributes_stay(bench, root):
    (root / "a").write_text("old")
    if os.geteuid() == 0:
        os.chown(root / "a", 12345, 12346)
    attributes = getattr(os, "setxattr", None) is not None
    if attributes:
        os.setxattr(root / "a", "user.note", b"mine")
    owner = (root / "a").stat()
    done = await bench.agent().call("files.write", path="a", content="new")
    for _ in range(2):
        found = (root / "a").stat()
        assert (found.st_uid, found.st_gid) == (owner.st_uid, owner.st_gid)
        if attributes:
            assert os.getxattr(root / "a", "user.note") == b"mine"
        await bench.undo(done.act)
    assert (root / "a").read_text() == "old"


async def test_writing_what_is_there_already_is_no_act(bench, root):
    (root / "a").write_text("same")
    done = await bench.agent().call("files.write", path="a", content="same")
    assert done.act is None
    assert (await bench.person().call("undo.list")).acts == []


async def test_a_large_file_is_written_and_taken_back(bench, root):
    (root / "big").write_bytes(b"\0old" * 500_000)
    done = await bench.agent().call(
        "files.write", path="big", content_base64=base64.b64encode(b"\0new" * 600_000).decode()
    )
    assert (root / "big").read_bytes() == b"\0new" * 600_000
    await bench.undo(done.act)
    assert (root / "big").read_bytes() == b"\0old" * 500_000


async def test_an_edit_replaces_one_place_or_all(bench, root):
    (root / "a").write_text("x = 1\ny = 1\n")
    agent = bench.agent()
    assert await _code(agent.call("files.edit", path="a", old="= 1", new="= 2")) == "files.many_matches"
    assert await _code(agent.call("files.edit", path="a", old="z", new="w")) == "files.no_match"
    await agent.call("files.edit", path="a", old="x = 1", new="x = 2")
    assert (root / "a").read_text() == "x = 2\ny = 1\n"
    await agent.call("files.edit", path="a", old=" = ", new="=", all=True)
    assert (root / "a").read_text() == "x=2\ny=1\n"


async def test_an_edit_s_refusal_names_how_often_it_was_found(bench, root):
    (root / "a").write_text("aaa")
    with pytest.raises(TakebackError) as error:
        await bench.agent().call("files.edit", path="a", old="a", new="b")
    assert "3 times" in error.value.message
    assert error.value.data == {"count": 3}


async def test_an_edit_keeps_line_endings_and_needs_a_file(bench, root):
    (root / "a").write_bytes(b"one\r\ntwo\r\n")
    agent = bench.agent()
    await agent.call("files.edit", path="a", old="two", new="2")
    assert (root / "a").read_bytes() == b"one\r\n2\r\n"
    assert await _code(agent.call("files.edit", path="none", old="a", new="b")) == "files.absent"


async def test_a_file_moves_and_never_onto_another_unasked(bench, root):
    (root / "a").write_text("a")
    (root / "b").write_text("b")
    agent = bench.agent()
    assert await _code(agent.call("files.move", path="a", to="b")) == "files.exists"
    assert await _code(agent.call("files.move", path="none", to="c")) == "files.absent"
    await agent.call("files.move", path="a", to="c")
    assert sorted(os.listdir(root)) == ["b", "c"]
    done = await agent.call("files.move", path="c", to="b", overwrite=True)
    assert (root / "b").read_text() == "a"
    assert os.listdir(root) == ["b"]
    assert done.path == str(root / "b")


async def test_a_folder_moves_but_not_into_itself(bench, root):
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "x").write_text("x")
    agent = bench.agent()
    assert await _code(agent.call("files.move", path="d", to="d/e/f")) == "files.into_itself"
    assert await _code(agent.call("files.move", path="d/e", to="d", overwrite=True)) == "files.into_itself"
    await agent.call("files.move", path="d", to="f")
    assert (root / "f" / "x").read_text() == "x"
    assert os.listdir(root) == ["f"]


async def test_only_an_empty_folder_is_deleted_unasked(bench, root):
    (root / "d").mkdir()
    (root / "d" / "x").write_text("x")
    agent = bench.agent()
    assert await _code(agent.call("files.delete", path="d")) == "files.not_empty"
    assert (root / "d" / "x").exists()
    await agent.call("files.delete", path="d", recursive=True)
    assert os.listdir(root) == []
    assert await _code(agent.call("files.delete", path="d")) == "files.absent"


async def test_a_link_is_deleted_and_moved_itself(bench, root, tmp_path):
    (tmp_path / "outside").write_text("mine")
    (root / "way").symlink_to(tmp_path / "outside")
    agent = bench.agent()
    await agent.call("files.move", path="way", to="path")
    assert os.readlink(root / "path") == str(tmp_path / "outside")
    assert await _code(agent.call("files.read", path="path")) == "files.link"
    assert await _code(agent.call("files.write", path="path", content="x")) == "files.link"
    await agent.call("files.delete", path="path")
    assert (tmp_path / "outside").read_text() == "mine"


async def test_folders_are_made_with_their_parents_when_asked(bench, root):
    agent = bench.agent()
    assert await _code(agent.call("files.make_dir", path="a/b/c")) == "files.absent"
    done = await agent.call("files.make_dir", path="a/b/c", parents=True)
    assert (root / "a" / "b" / "c").is_dir()
    assert done.path == str(root / "a" / "b" / "c")
    assert await _code(agent.call("files.make_dir", path="a/b")) == "files.exists"
    assert await _code(agent.call("files.write", path="no/x", content="x")) == "files.absent"


async def test_a_granted_folder_that_is_gone_is_not_made_again(bench, root):
    agent = bench.agent(roots=[root / "disk" / "own"])
    for path in ("new", "new/er"):
        missing = str(root / "disk" / "own" / path)
        assert await _code(agent.call("files.make_dir", path=missing, parents=True)) == "files.absent"
    assert not (root / "disk").exists()


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("files.write", {"path": "../x", "content": ""}),
        ("files.write", {"path": "/etc/x", "content": ""}),
        ("files.write", {"path": "a\0b", "content": ""}),
        ("files.read", {"path": "../root/a"}),
        ("files.delete", {"path": "/"}),
        ("files.move", {"path": "a", "to": "/tmp/x"}),
        ("files.move", {"path": "/etc/passwd", "to": "x"}),
        ("files.make_dir", {"path": "../new"}),
        ("files.list", {"path": ".."}),
    ],
)
async def test_every_tool_stays_inside_the_root(bench, root, tool, args, snapshot, tmp_path):
    (root / "a").write_text("a")
    before = snapshot(root)
    assert await _code(bench.agent().call(tool, args)) in ("scope.outside", "files.path")
    assert snapshot(root) == before


async def test_a_folder_whose_name_begins_like_the_root_s_is_outside(bench, root, tmp_path):
    (tmp_path / "root-evil").mkdir()
    call = bench.agent().call("files.write", path=str(tmp_path / "root-evil" / "x"), content="x")
    assert await _code(call) == "scope.outside"


async def test_a_root_itself_is_neither_written_moved_nor_deleted(bench, root):
    agent = bench.agent()
    for tool, args in (
        ("files.delete", {"path": ".", "recursive": True}),
        ("files.move", {"path": str(root), "to": "x"}),
        ("files.write", {"path": ".", "content": "x"}),
        ("files.make_dir", {"path": "."}),
    ):
        assert await _code(agent.call(tool, args)) == "files.root"


async def test_takeback_s_own_folders_are_out_of_reach_for_everybody(bench, tmp_path):
    person, own = bench.person(), tmp_path / "home"
    wide = bench.agent(roots=[tmp_path])
    for caller in (person, wide):
        for tool, args in (
            ("files.read", {"path": str(own / "data" / "takeback.db")}),
            ("files.list", {"path": str(own / "data")}),
            ("files.write", {"path": str(own / "config" / "takeback.toml"), "content": "x"}),
            ("files.delete", {"path": str(own), "recursive": True}),
            ("files.move", {"path": str(own), "to": str(tmp_path / "gone")}),
            ("files.move", {"path": str(own / "data" / "packs"), "to": str(tmp_path / "gone")}),
        ):
            assert await _code(caller.call(tool, args)) == "files.home"
    assert (own / "data" / "takeback.db").exists()


async def test_pipes_and_devices_are_refused_whatever_is_wanted(bench, root):
    os.mkfifo(root / "pipe")
    agent = bench.agent()
    for tool, args in (
        ("files.read", {"path": "pipe"}),
        ("files.write", {"path": "pipe", "content": "x"}),
        ("files.delete", {"path": "pipe"}),
        ("files.move", {"path": "pipe", "to": "tube"}),
    ):
        assert await _code(agent.call(tool, args)) == "files.special"
    assert stat.S_ISFIFO((root / "pipe").lstat().st_mode)


async def test_a_folder_with_a_pipe_in_it_is_not_deleted(bench, root):
    (root / "d").mkdir()
    (root / "d" / "x").write_text("x")
    os.mkfifo(root / "d" / "pipe")
    assert await _code(bench.agent().call("files.delete", path="d", recursive=True)) == "files.special"
    assert sorted(os.listdir(root / "d")) == ["pipe", "x"]


async def test_content_is_given_exactly_once(bench):
    agent = bench.agent()
    assert await _code(agent.call("files.write", path="a")) == "files.content"
    assert await _code(agent.call("files.write", path="a", content="", content_base64="")) == "files.content"
    assert await _code(agent.call("files.write", path="a", content_base64="%")) == "files.content"


async def test_names_that_are_no_text_travel_as_resources(bench, root):
    (root / os.fsdecode(b"b\xff")).write_text("old")
    agent = bench.agent()
    (entry,) = (await agent.call("files.list", path=".")).entries
    assert entry.path == bench.uri() + "/b%FF"
    done = await agent.call("files.write", path=entry.path, content="new")
    assert (root / os.fsdecode(b"b\xff")).read_text() == "new"
    await bench.undo(done.act)
    assert (root / os.fsdecode(b"b\xff")).read_text() == "old"


REHEARSED = [
    ("files.write", {"path": "a", "content": "new"}, "write"),
    ("files.write", {"path": "n", "content": "new"}, "create"),
    ("files.edit", {"path": "a", "old": "old", "new": "new"}, "write"),
    ("files.move", {"path": "a", "to": "c"}, "delete"),
    ("files.delete", {"path": "d", "recursive": True}, "delete"),
    ("files.make_dir", {"path": "x/y", "parents": True}, "create"),
]


@pytest.mark.parametrize(("tool", "args", "action"), REHEARSED)
async def test_a_rehearsal_tells_and_does_nothing(bench, root, tool, args, action, snapshot):
    (root / "a").write_text("old")
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "x").write_text("x")
    before = snapshot(root)
    agent = bench.agent()
    told = await agent.call("files." + tool.partition(".")[2], args, rehearsal_={})
    assert told.act is None
    assert told.effects[0].action == action
    assert snapshot(root) == before
    assert (await bench.person().call("undo.list")).acts == []
    done = await agent.call(tool, args)
    assert done.version == told.version
    assert [(e.resource, e.action, e.version) for e in done.effects] == [
        (e.resource, e.action, e.version) for e in told.effects
    ]


async def test_a_rehearsal_refuses_what_the_act_would_refuse(bench, root):
    (root / "a").write_text("old")
    agent = bench.agent()
    for tool, args, code in (
        ("files.edit", {"path": "a", "old": "x", "new": "y"}, "files.no_match"),
        ("files.move", {"path": "a", "to": "../x"}, "files.path"),
        ("files.delete", {"path": "none"}, "files.absent"),
    ):
        assert await _code(agent.call(tool, args, rehearsal_={})) == code


async def test_writing_onto_a_folder_or_a_link_is_refused_and_reads_nothing(bench, root, tmp_path):
    (root / "d").mkdir()
    (root / "d" / "large").write_bytes(os.urandom(100_000))
    (root / "way").symlink_to("d/large")
    agent = bench.agent()
    assert await _code(agent.call("files.write", path="d", content="x")) == "files.is_folder"
    assert await _code(agent.call("files.edit", path="d", old="x", new="y")) == "files.is_folder"
    assert await _code(agent.call("files.edit", path="way", old="x", new="y")) == "files.link"
    packs = tmp_path / "home" / "data" / "packs"
    assert [*packs.glob("*.pack"), *packs.glob("large/*/*")] == []


async def test_folders_made_at_once_share_their_parents(bench, root):
    agent = bench.agent()
    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(agent.call, "files.make_dir", {"path": f"a/b/c{number}", "parents": True})
    assert len(os.listdir(root / "a" / "b")) == 8
    await bench.person().call("undo.rewind", session="s1")
    assert os.listdir(root) == []


async def test_acts_on_one_file_at_once_leave_log_and_disk_in_one_order(bench, root):
    agent = bench.agent()
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(agent.call, "files.write", {"path": "a", "content": f"{number}\n"})
    acts = (await bench.person().call("undo.list")).acts
    assert len(acts) == 20
    for newer, older in itertools.pairwise(acts):
        assert newer.touched[0].before == older.touched[0].after
    await bench.person().call("undo.rewind", session="s1")
    assert os.listdir(root) == []
