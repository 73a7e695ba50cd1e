"""A store without room for what a command left still takes back what it destroyed."""

import resource
import signal
from contextlib import contextmanager

import pytest

from takeback.errors import TakebackError
from takeback_acts.files.packs import failures, keeping
from tests.files.test_commands import Running, sh

pytestmark = pytest.mark.anyio

LIMIT = 32 << 20


@contextmanager
def full():
    """No file may grow beyond a limit, as if the disk were full from there on; the database stays below."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)


def _big(path):
    # Sparse: it takes no room and is larger than takeback may write.
    sh(path.parent, f"ulimit -f unlimited; truncate -s {LIMIT + 4096} {path.name}")


async def test_no_room_for_what_a_command_made_does_not_cost_what_it_deleted(bench, root):
    sh(root, "echo 1 > precious")
    with full():
        async with Running(bench.agent(), root) as running:
            sh(root, "rm precious; echo 2 > made")
            _big(root / "big")
        ended = running.ended
        assert any("big" in note and "no room" in note for note in ended.notes)
        await bench.undo(ended.act)
    assert (root / "precious").read_text() == "1\n"
    assert (root / "big").exists()
    assert not (root / "made").exists()


async def test_a_file_that_grew_beyond_the_room_goes_back_once_there_is_room(bench, root):
    sh(root, "echo 1 > precious")
    with full():
        async with Running(bench.agent(), root) as running:
            _big(root / "precious")
        with pytest.raises(TakebackError) as caught:
            await bench.undo(running.ended.act)
        assert "no room" in caught.value.message
    await bench.undo(running.ended.act)
    assert (root / "precious").read_text() == "1\n"


async def test_what_there_was_no_room_for_is_taken_once_there_is(bench, root):
    with full():
        async with Running(bench.agent(), root):
            _big(root / "big")
    async with Running(bench.agent(), root) as running:
        sh(root, "rm big")
    await bench.undo(running.ended.act)
    assert (root / "big").stat().st_size == LIMIT + 4096


async def test_a_store_that_takes_nothing_at_all_still_has_what_was_there_before(bench, root, monkeypatch):
    sh(root, "echo 1 > precious; echo 1 > edited")
    settle = keeping.Lease.settle

    def refuse(lease):
        if lease._wanted:
            lease.close()
            raise failures.failure(root, OSError(28, "full"))
        settle(lease)

    async with Running(bench.agent(), root) as running:
        sh(root, "rm precious; echo 2 > edited")
        monkeypatch.setattr(keeping.Lease, "settle", refuse)
    monkeypatch.undo()
    await bench.undo(running.ended.act)
    assert (root / "precious").read_text() == "1\n"
    assert (root / "edited").read_text() == "1\n"
