"""Forgetting bytes that no act names: never those that an undo needs, nor those that were just kept."""

import os

import anyio
import anyio.lowlevel
import pytest

from takeback_acts.files.staging import is_temporary

pytestmark = pytest.mark.anyio

DAY = 86_400


async def _forget_acts(bench):
    def forget(tx):
        tx.execute("DELETE FROM undo_blob")

    await bench.kernel.store.transaction(forget)


@pytest.fixture
async def deleted(bench, root):
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "small").write_text("small")
    (root / "d" / "e" / "large").write_bytes(os.urandom(100_000))
    return (await bench.agent().call("files.delete", path="d", recursive=True)).act


async def test_what_an_act_names_is_kept_and_with_it_all_that_its_folder_held(bench, root, later, deleted):
    later(10 * DAY)
    swept = await bench.person().call("files.gc", grace_hours=0)
    assert (swept.deleted, swept.kept) == (0, 3)
    await bench.undo(deleted)
    assert (root / "d" / "small").read_text() == "small"
    assert (root / "d" / "e" / "large").stat().st_size == 100_000


async def test_what_no_act_names_goes_once_it_is_old(bench, later, deleted):
    await _forget_acts(bench)
    person = bench.person()
    assert (await person.call("files.gc")).deleted == 0
    later(10 * DAY)
    told = await person.call("files.gc", {}, rehearsal_={})
    assert (told.deleted, told.kept) == (3, 0)
    done = await person.call("files.gc")
    assert (done.deleted, done.kept) == (3, 0)
    assert done.freed_bytes == told.freed_bytes > 100_000
    assert (await person.call("files.gc")).deleted == 0


async def test_it_is_swept_by_itself_once_the_module_starts(bench, later, deleted):
    await _forget_acts(bench)
    later(10 * DAY)
    person = bench.person(present=True)
    await person.call("kernel.disable", name="files")
    await person.call("kernel.enable", name="files")
    with anyio.fail_after(10):
        while (await person.call("files.gc", {}, rehearsal_={})).kept:
            await anyio.lowlevel.checkpoint()


async def test_bytes_that_are_kept_again_are_young_again(bench, root, later, deleted):
    await _forget_acts(bench)
    later(10 * DAY)
    (root / "copy").write_text("small")
    done = await bench.agent().call("files.delete", path="copy")
    await bench.person().call("files.gc")
    await bench.undo(done.act)
    assert (root / "copy").read_text() == "small"


async def test_an_agent_may_not_sweep(bench):
    from takeback.errors import NotFoundError

    with pytest.raises(NotFoundError):
        await bench.agent().call("files.gc")


def test_temporary_names_are_told_from_others():
    assert is_temporary(b".takeback-0123456789abcdef")
    assert is_temporary(b".takeback-0123456789abcdef.old")
    assert not is_temporary(b".takeback-0123456789abcdeg")
    assert not is_temporary(b"x.takeback-0123456789abcdef")
