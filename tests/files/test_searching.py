"""Searching a folder: names, lines, what is passed over, and where it ends."""

import os

import pytest

from takeback.errors import TakebackError

pytestmark = pytest.mark.anyio


@pytest.fixture
def shelf(root):
    (root / "a.py").write_text("def first():\n    pass\n")
    (root / "b.txt").write_text("nothing\n")
    (root / "sub").mkdir()
    (root / "sub" / "c.py").write_text("def Second():\r\n    first()\n")
    (root / "sub" / "binary.py").write_bytes(b"\0first()")
    (root / ".hidden").mkdir()
    (root / ".hidden" / "d.py").write_text("first()\n")
    return root


async def found(bench, **args):
    matches = await bench.agent().call("files.search", path=str(bench.root), **args)
    return [(os.path.relpath(one.path, bench.root), one.line, one.text) for one in matches.matches]


async def test_lines_with_a_text(bench, shelf):
    assert await found(bench, text="first()") == [
        ("a.py", 1, "def first():"),
        ("sub/c.py", 2, "    first()"),
    ]
    assert await found(bench, text="SECOND", ignore_case=True) == [("sub/c.py", 1, "def Second():")]
    assert await found(bench, text="first", name="*.txt") == []


async def test_a_text_is_no_pattern(bench, shelf):
    assert await found(bench, text="first(.*") == []


async def test_names_alone(bench, shelf):
    assert [name for name, _, _ in await found(bench, name="*.py")] == ["a.py", "sub/binary.py", "sub/c.py"]


async def test_hidden_names_only_when_asked_for(bench, shelf):
    names = [name for name, _, _ in await found(bench, text="first", hidden=True)]
    assert names == [".hidden/d.py", "a.py", "sub/c.py"]


async def test_no_more_than_asked_for(bench, shelf):
    page = await bench.agent().call("files.search", path=str(shelf), name="*.py", limit=2)
    assert (len(page.matches), page.more) == (2, True)
    page = await bench.agent().call("files.search", path=str(shelf), name="*.py", limit=3)
    assert (len(page.matches), page.more) == (3, False)


async def test_links_lead_nowhere(bench, shelf, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "e.py").write_text("first()\n")
    (shelf / "way").symlink_to(outside)
    (shelf / "link.py").symlink_to(outside / "e.py")
    os.mkfifo(shelf / "pipe.py")
    assert [name for name, _, _ in await found(bench, name="*.py")] == ["a.py", "sub/binary.py", "sub/c.py"]


async def test_takebacks_own_home_is_passed_over(bench, tmp_path):
    """The home lies in what is searched; what is in it belongs to nobody's search."""
    matches = await bench.person().call("files.search", path=str(tmp_path), name="*", hidden=True)
    assert [one.path for one in matches.matches if "/home/" in one.path] == []


async def test_an_agent_searches_its_roots_alone(bench, tmp_path):
    with pytest.raises(TakebackError) as refused:
        await bench.agent().call("files.search", path=str(tmp_path), text="x")
    assert refused.value.code == "scope.outside"


async def test_a_long_line_is_cut_and_what_is_no_utf8_shown(bench, root):
    (root / "a").write_bytes(b"\xff needle " + b"x" * 10_000)
    ((_, line, text),) = await found(bench, text="needle")
    assert line == 1
    assert text.startswith("� needle")
    assert len(text) <= 500
