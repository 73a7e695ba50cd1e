"""The boundary that no tool can forget: one way to what a caller names, and nothing written through it."""

import ast
import os
from pathlib import Path

import pytest

from takeback.errors import TakebackError
from takeback_acts.files import beneath

pytestmark = pytest.mark.anyio
ROOM = Path(beneath.__file__).parent
# The one way itself.
_KNOWN = {"beneath.py"}
_BY_NAME = {
    "chflags", "chmod", "chown", "lchown", "link", "lstat", "makedirs", "mkdir", "mkfifo", "mknod", "open",
    "readlink", "remove", "removedirs", "rename", "renames", "replace", "rmdir", "stat", "symlink",
    "truncate", "unlink", "walk",
}  # fmt: skip


def _by_name(call: ast.Call) -> bool:
    """Whether a call hands a path to the system, not a name in a folder that is open."""
    called = call.func
    if isinstance(called, ast.Name):
        return called.id == "open"
    if not (isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name)):
        return False
    in_a_folder = any((keyword.arg or "").endswith("dir_fd") for keyword in call.keywords)
    return called.value.id == "os" and called.attr in _BY_NAME and not in_a_folder


def test_46_every_tool_opens_what_it_is_given_the_one_way():
    found = [
        f"{path.name}:{node.lineno}"
        for path in sorted(ROOM.glob("*.py"))
        if path.name not in _KNOWN
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and _by_name(node)
    ]
    assert found == []


@pytest.mark.parametrize("source", ["os.open(path, 0)", "open(path)", "os.rename(a, b)", "os.stat(path)"])
def test_46_a_way_around_would_be_noticed(source):
    (call,) = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    assert _by_name(call)


@pytest.mark.parametrize(
    ("verb", "more"),
    [
        ("write", {"content": "new\n"}),
        ("edit", {"old": "kept", "new": "changed"}),
        ("delete", {}),
        ("move", {"to": "elsewhere"}),
    ],
)
async def test_44_a_hard_link_is_never_written_through(bench, root, tmp_path, verb, more):
    outside = tmp_path / "outside"
    outside.write_text("kept outside\n")
    os.link(outside, root / "inside")
    done = await bench.agent().call(f"files.{verb}", {"path": "inside", **more})
    assert outside.read_text() == "kept outside\n"
    await bench.undo(done.act)
    assert (root / "inside").read_text() == "kept outside\n"
    assert outside.read_text() == "kept outside\n"


@pytest.mark.parametrize("name", ["-rf", "--output=x", "-"])
async def test_45_a_name_like_an_option_is_a_name(bench, root, snapshot, name):
    agent, before = bench.agent(), snapshot(root, times=False)
    await agent.call("files.make_dir", path=name)
    await agent.call("files.write", path=f"{name}/{name}", content="x")
    assert (root / name / name).read_text() == "x"
    assert [one.name for one in (await agent.call("files.list", path=name)).entries] == [name]
    await agent.call("files.delete", path=name, recursive=True)
    await bench.person().call("undo.rewind", agent="juno")
    assert snapshot(root, times=False) == before


async def test_17_an_undo_is_no_way_around_a_scope(bench, root, tmp_path):
    """What the person could reach when they wrote it, an agent can't by taking it back."""
    other = tmp_path / "other"
    other.mkdir()
    done = await bench.person().call("files.write", path=str(other / "mine"), content="x")
    for verb in ("undo.run", "undo.show", "undo.preview"):
        with pytest.raises(TakebackError) as refused:
            await bench.agent().call(verb, id=done.act)
        assert refused.value.kind in ("not_found", "refused")
    assert (other / "mine").read_text() == "x"
