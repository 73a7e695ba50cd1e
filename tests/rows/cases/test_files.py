"""Files beside rows, cases 45 to 50: a turn that touched both goes back as one.

What is about files alone has its own tests in `tests/files`: 45 in `test_restoring.py`, `test_renames.py`, 46
in `test_merge.py`, `test_parts.py`, `test_modes.py`; 47 in `test_modes.py`, `test_links.py`, `test_paths.py`,
`test_complaints.py`; 48 in `test_restoring.py`, `test_strangers.py`, `test_full.py`, `test_no_room.py`; 49 in
`test_crash.py`; 50 in `test_strangers.py`, `test_abreast.py`, `test_acting.py`. Here each has rows in it.
"""

import asyncio
import os
import traceback

import pytest

from takeback import faults
from takeback.context import Scope
from takeback.errors import ConflictError
from takeback.kernel import Kernel
from takeback_acts.files.module import FilesModule
from takeback_acts.files.paths import resource
from takeback_acts.rows.module import RowsModule
from takeback_core.undo.module import UndoModule
from tests.files.conftest import _snapshot as snapshot
from tests.rows.module.conftest import Bench, Sqlite

pytestmark = pytest.mark.anyio
MODULES = [UndoModule, FilesModule, RowsModule]


class Desk(Bench):
    """A kernel with files and rows; `all` is all there is of both."""

    root = None

    def agent(self, name="juno", *, session="s1", turn="t1", tables=("main.*",)):
        scope = Scope(roots=(str(self.root),), tables=tables)
        return self.kernel.enter(f"mcp:agent:{name}", session=session, turn=turn, scope=scope)

    def all(self):
        return self.dump(), snapshot(self.root, times=False)

    async def rewind(self, **more):
        return await self.person().undo.rewind(session="s1", **more)


async def connected(kernel, database, root):
    desk = Desk(kernel, database)
    desk.root = root
    known = (await desk.person().call("rows.databases")).databases
    if not known:
        await desk.person().call("rows.connect", name="main", url=database.url)
    return desk


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    filled(folder)
    return folder


def filled(folder):
    (folder / "deep" / "empty").mkdir(parents=True)
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    (folder / "deep" / "b.bin").write_bytes(b"\x00\xff\r\n")
    (folder / "bom.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo")


@pytest.fixture
async def desk(tmp_path, database, root):
    async with Kernel(tmp_path / "home", settings={}, modules=MODULES) as kernel:
        yield await connected(kernel, database, root)


async def test_45_every_kind_of_act_on_files_goes_back_among_acts_on_rows(desk, root):
    before = desk.all()
    agent = desk.agent()
    await agent.files.make_dir(path="new/inner", parents=True)
    await agent.rows.insert(table="skill", row={"title": "C"})
    await agent.files.write(path="new/x.txt", content="made")
    await agent.files.write(path="a.txt", content="one\ntwo\nthree\nfour\n")
    await agent.rows.update(table="skill", key=1, set={"title": "x"})
    await agent.files.write(path="a.txt", content="")
    await agent.files.move(path="deep/b.bin", to="new/inner/c.bin")
    await agent.files.move(path="new/x.txt", to="bom.txt", overwrite=True)
    await agent.rows.delete(table="skill", key=2)
    await agent.files.delete(path="deep", recursive=True)
    await agent.files.delete(path="a.txt")
    after = desk.all()
    done = await desk.rewind()
    assert desk.all() == before
    await desk.person().undo.redo(id=done.act)
    assert desk.all() == after


async def test_46_a_text_changed_since_is_merged_and_the_row_goes_back(desk, root):
    agent = desk.agent()
    await agent.files.write(path="a.txt", content="ONE\ntwo\nthree\n")
    await agent.rows.update(table="skill", key=1, set={"title": "x"})
    (root / "a.txt").write_text("ONE\ntwo\nTHREE mine\n")
    await desk.rewind()
    assert (root / "a.txt").read_text() == "one\ntwo\nTHREE mine\n"
    assert desk.sql("SELECT title FROM skill WHERE id = 1") == [("Python",)]


async def test_46_bytes_changed_since_are_a_conflict_and_the_row_stays_too(desk, root):
    agent = desk.agent()
    await agent.rows.update(table="skill", key=1, set={"title": "x"})
    await agent.files.write(path="deep/b.bin", content_base64="AAEC")
    (root / "deep" / "b.bin").write_bytes(b"\x00theirs\xff")
    here = desk.all()
    with pytest.raises(ConflictError):
        await desk.rewind()
    assert desk.all() == here
    await desk.rewind(skip_conflicts=True)
    assert (root / "deep" / "b.bin").read_bytes() == b"\x00theirs\xff"
    assert desk.sql("SELECT title FROM skill WHERE id = 1") == [("Python",)]


async def test_47_modes_line_ends_and_names_that_are_no_text_come_back_with_the_rows(desk, root):
    odd = os.path.join(os.fsencode(root), b"no-utf8-\xff")
    with open(odd, "wb") as file:
        file.write(b"odd")
    (root / "a.txt").chmod(0o640)
    (root / "link").symlink_to("a.txt")
    before = desk.all()
    agent = desk.agent()
    await agent.files.write(path="a.txt", content="new", executable=True)
    await agent.rows.delete(table="skill", key=1)
    await agent.files.write(path="bom.txt", content="one\n")
    await agent.files.delete(path="link")
    await agent.files.delete(path="deep", recursive=True)
    await agent.files.delete(path=resource(odd))
    await desk.rewind()
    assert desk.all() == before


async def test_48_a_file_that_is_a_folder_or_a_link_by_now_is_a_conflict_and_no_row_goes_back(desk, root):
    agent = desk.agent()
    await agent.rows.update(table="skill", key=1, set={"title": "x"})
    await agent.files.write(path="a.txt", content="new")
    for put in (
        lambda: (root / "a.txt").mkdir(),
        lambda: (root / "a.txt").symlink_to("bom.txt"),
        lambda: None,
    ):
        target = root / "a.txt"
        target.rmdir() if target.is_dir() and not target.is_symlink() else target.unlink(missing_ok=True)
        put()
        here = desk.all()
        with pytest.raises(ConflictError):
            await desk.rewind()
        assert desk.all() == here


async def test_50_a_file_that_an_editor_saved_by_rename_is_looked_at_anew(desk, root):
    agent = desk.agent()
    await agent.files.write(path="a.txt", content="new\ntwo\nthree\n")
    await agent.rows.update(table="skill", key=1, set={"title": "x"})
    plan = (await desk.person().undo.preview(session="s1")).plan
    (root / "a.swp").write_text("new\ntwo\nmine\n")
    os.replace(root / "a.swp", root / "a.txt")
    with pytest.raises(ConflictError, match=r"undo\.plan_changed"):
        await desk.rewind(digest=plan.digest)
    await desk.rewind()
    assert (root / "a.txt").read_text() == "one\ntwo\nmine\n"
    assert desk.sql("SELECT title FROM skill WHERE id = 1") == [("Python",)]


async def _turn(desk):
    agent = desk.agent()
    await agent.files.write(path="a.txt", content="new\n")
    await agent.rows.update(table="skill", key=1, set={"title": "Rust", "level": 2})
    await agent.files.delete(path="deep/b.bin")


async def _rewound(desk):
    await _turn(desk)
    await desk.rewind()


async def _tell(base, database, tell, hook):
    async with Kernel(base / "home", settings={}, modules=MODULES) as kernel:
        desk = await connected(kernel, database, base / "root")
        stop = faults.install(hook)
        await tell(desk)
        stop()


def _in_fork(base, database, tell, hook):
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(_tell(base, database, tell, hook))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _dying_at(number):
    left = [number]

    def die(name):
        left[0] -= 1
        if left[0] == 0:
            os._exit(9)

    return die


@pytest.mark.parametrize("first", [1, 2])
def test_49_whatever_is_cut_off_between_a_file_and_a_row_is_settled(tmp_path, make, first):
    """Every fourth or, where a start takes longer, eighth of the places at which a process may die."""
    step = 8 if make is not Sqlite else 4
    number, code = first * step // 2 - step, 9
    while code == 9:
        number += step
        base = tmp_path / str(number)
        base.mkdir()
        filled(base / "root")
        database = make(base)
        before = database.dump(), snapshot(base / "root", times=False)
        code = _in_fork(base, database, _rewound, _dying_at(number))
        assert code in (0, 9)
        asyncio.run(_settled(base, database, before))
        database.close()
    assert number > 15


async def _settled(base, database, first_of_all):
    async with Kernel(base / "home", settings={}, modules=MODULES) as kernel:
        desk = await connected(kernel, database, base / "root")
        acts = [act for act in await desk.acts() if act.role == "act"]
        assert {act.state for act in acts} <= {"done", "undone", "abandoned"}, acts
        standing = [act for act in acts if act.state == "done"]
        assert bool(standing) == (desk.all() != first_of_all)
        await desk.rewind()
        assert desk.all() == first_of_all
