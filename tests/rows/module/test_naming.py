"""Files that a column names come back with their row, whoever deleted them."""

import pytest
from pydantic import ValidationError

from takeback.errors import ConflictError
from takeback.kernel import Kernel
from takeback_acts.files.module import FilesModule
from takeback_acts.rows.module import RowsModule
from takeback_acts.rows.naming import named
from takeback_acts.rows.settings import RowsSettings
from takeback_core.undo.module import UndoModule
from tests.rows.module.conftest import Bench

pytestmark = pytest.mark.anyio
PHOTO = b"\x89PNG\r\n\x00\xff"


@pytest.fixture
def uploads(tmp_path):
    folder = tmp_path / "uploads"
    folder.mkdir()
    (folder / "python.png").write_bytes(PHOTO)
    (folder / "2.pdf").write_bytes(b"%PDF two")
    return folder


@pytest.fixture
async def bench(tmp_path, database, uploads):
    files = [f"main.skill.secret = {uploads}", f"main.skill.id = {uploads}/{{}}.pdf"]
    modules = [UndoModule, FilesModule, RowsModule]
    async with Kernel(tmp_path / "home", settings={"rows": {"files": files}}, modules=modules) as kernel:
        made = Bench(kernel, database)
        made.sql("UPDATE skill SET secret = 'python.png' WHERE id = 1")
        await made.person().call("rows.connect", name="main", url=database.url)
        yield made


def _about(path):
    about = path.stat()
    return about.st_ino, about.st_mtime_ns, about.st_ctime_ns


async def _delete(bench):
    return await bench.agent().rows.delete(table="skill", key=1)


async def _empty(bench):
    return await bench.agent().rows.update(table="skill", key=1, set={"secret": None})


async def _another(bench):
    return await bench.agent().rows.execute(sql="UPDATE skill SET secret = 'other.png' WHERE id = 1")


@pytest.mark.parametrize("act", [_delete, _empty, _another])
async def test_a_file_that_the_app_deleted_afterwards_comes_back_with_the_row(bench, uploads, act):
    before = bench.dump()
    done = await act(bench)
    (uploads / "python.png").unlink()
    plan = await bench.preview(done.act)
    assert [step.status for step in plan.steps] == ["clean", "clean"]
    undone = await bench.undo(done.act, digest=plan.digest)
    assert bench.dump() == before
    assert (uploads / "python.png").read_bytes() == PHOTO
    await bench.person().undo.redo(id=undone.act)
    assert bench.dump() != before
    assert not (uploads / "python.png").exists()
    await bench.undo(done.act)
    assert (uploads / "python.png").read_bytes() == PHOTO


async def test_a_file_that_is_still_there_is_left_alone(bench, uploads):
    before, about = bench.dump(), _about(uploads / "python.png")
    done = await _delete(bench)
    undone = await bench.undo(done.act)
    assert bench.dump() == before
    assert _about(uploads / "python.png") == about
    await bench.person().undo.redo(id=undone.act)
    assert (uploads / "python.png").read_bytes() == PHOTO


async def test_another_file_under_its_name_is_a_conflict_and_neither_is_changed(bench, uploads):
    done = await _delete(bench)
    (uploads / "python.png").write_bytes(b"theirs")
    here = bench.dump()
    with pytest.raises(ConflictError):
        await bench.undo(done.act)
    assert bench.dump() == here
    assert (uploads / "python.png").read_bytes() == b"theirs"
    await bench.undo(done.act, skip_conflicts=True)
    assert bench.sql("SELECT secret FROM skill WHERE id = 1") == [("python.png",)]
    assert (uploads / "python.png").read_bytes() == b"theirs"


async def test_a_file_that_the_agent_deleted_goes_back_along_with_the_row(bench, uploads):
    before = bench.dump()
    done = await _delete(bench)
    gone = await bench.person(session="s1").files.delete(path=str(uploads / "python.png"))
    (step, *_) = (await bench.preview(done.act)).steps
    assert step.dependents == [gone.act]
    await bench.undo(done.act, dependents=True)
    assert bench.dump() == before
    assert (uploads / "python.png").read_bytes() == PHOTO


async def test_a_rewind_brings_rows_and_files_back(bench, uploads):
    before = bench.dump()
    await _empty(bench)
    await _delete(bench)
    await bench.agent().rows.delete(table="skill", key=2)
    for path in uploads.iterdir():
        path.unlink()
    await bench.person().undo.rewind(session="s1")
    assert bench.dump() == before
    assert {path.name: path.read_bytes() for path in uploads.iterdir()} == {
        "python.png": PHOTO,
        "2.pdf": b"%PDF two",
    }


async def test_an_act_that_does_not_come_true_leaves_nothing_in_the_log(bench, uploads):
    bench.sql("CREATE TABLE holds (id INTEGER PRIMARY KEY, skill INTEGER REFERENCES skill (id))")
    bench.sql("INSERT INTO holds VALUES (1, 1)")
    with pytest.raises(ConflictError):
        await _delete(bench)
    assert [act.state for act in await bench.acts()] == ["abandoned"]
    assert (uploads / "python.png").read_bytes() == PHOTO


@pytest.mark.parametrize(
    "value", ["../outside.png", "", "missing.png", "a/../../outside.png", "/etc/hostname"]
)
async def test_what_names_no_file_in_its_folder_is_nothing_to_keep(bench, uploads, value):
    (uploads.parent / "outside.png").write_bytes(b"outside")
    bench.sql(f"UPDATE skill SET secret = '{value}' WHERE id = 1")
    before = bench.dump()
    done = await _delete(bench)
    plan = await bench.preview(done.act)
    assert len(plan.steps) == 1
    await bench.undo(done.act)
    assert bench.dump() == before


async def test_a_file_that_another_row_of_the_act_goes_on_to_name_is_not_left(bench, uploads):
    done = await bench.agent().rows.execute(
        sql="UPDATE skill SET secret = CASE id WHEN 1 THEN NULL ELSE 'python.png' END WHERE id < 3"
    )
    assert len((await bench.preview(done.act)).steps) == 1


def test_where_the_files_of_a_column_are():
    declared = ["main.person.photo = /up", "main.cv.doc.id=/docs/d-{}.pdf", "other.t.c = /x/"]
    photo, doc = named(RowsSettings(files=declared), "main")
    assert (photo.table, photo.column, photo.path("a/b.png")) == ("person", "photo", "/up/a/b.png")
    assert photo.path("/up/a.png") == "/up/a.png"
    assert (doc.table, doc.column, doc.path(7), doc.folder) == ("cv.doc", "id", "/docs/d-7.pdf", "/docs")
    assert [photo.path(value) for value in (None, "", b"a", "../x", "a//b", "a\0b")] == [None] * 6
    assert doc.path("/../7") is None


@pytest.mark.parametrize(
    "wrong", ["main.t = /up", "main.t.c", "main.t.c = up", "main.t.c = /up/{}/{}", "main.t.c = /{x}"]
)
def test_a_setting_that_names_no_place_is_an_error(wrong):
    with pytest.raises(ValidationError):
        RowsSettings(files=[wrong])
