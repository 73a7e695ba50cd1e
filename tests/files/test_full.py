"""Full disks, file systems that can't be written, and what is larger than may be: nothing is half done."""

import errno
import os
import resource
import signal
import stat

import pytest

from takeback.errors import TakebackError
from takeback_acts.files import failures, staging

pytestmark = pytest.mark.anyio

LIMIT = 32 << 20


@pytest.fixture
def full(bench):
    """No file may grow beyond a limit, as if the disk were full from there on; the database stays below."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, old[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, old)
    signal.signal(signal.SIGXFSZ, handler)


async def _error(call):
    with pytest.raises(TakebackError) as error:
        await call
    return error.value


def _big(path):
    with path.open("wb") as file:
        file.truncate(LIMIT + 4096)  # sparse: it takes no room and is larger than may be written


async def test_no_room_for_the_pre_image_leaves_the_file_and_no_act(bench, root, tmp_path, snapshot):
    _big(root / "a")
    before = snapshot(root)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, old[1]))
    try:
        error = await _error(bench.agent().call("files.write", path="a", content="new"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert (error.code, error.retryable) == ("blobs.no_space", True)
    assert snapshot(root) == before
    assert (await bench.person().call("undo.list")).acts == []
    packs = tmp_path / "home" / "data" / "packs"
    assert [*packs.glob("large/*/*"), *packs.glob("incoming/*")] == []


async def test_no_room_for_the_new_file_leaves_the_old_one_and_an_abandoned_act(bench, root, full, snapshot):
    (root / "a").write_text("old")
    before = snapshot(root)
    error = await _error(bench.agent().call("files.write", path="a", content="x" * (LIMIT + 1)))
    assert error.code == "files.full"
    assert snapshot(root) == before
    assert [act.state for act in (await bench.person().call("undo.list")).acts] == ["abandoned"]


@pytest.mark.parametrize("nameless", [True, False])
async def test_no_room_while_a_file_comes_back_leaves_things_as_they_are(
    bench, root, monkeypatch, snapshot, nameless
):
    if not nameless:
        monkeypatch.setattr(staging, "_NAMELESS", None)  # as where there are no files without a name
    _big(root / "a")
    done = await bench.agent().call("files.delete", path="a")
    before = snapshot(root)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, old[1]))
    try:
        error = await _error(bench.undo(done.act))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert "no room" in error.message
    assert snapshot(root) == before
    await bench.undo(done.act)
    assert (root / "a").stat().st_size == LIMIT + 4096


async def test_a_file_system_that_takes_no_files_is_said_so(bench):
    error = await _error(bench.person().call("files.write", path="/proc/takeback-test", content="x"))
    assert error.code in ("files.absent", "files.denied", "files.readonly")


@pytest.mark.parametrize(
    ("number", "code", "kind"),
    [
        (errno.ENOSPC, "files.full", "failed"),
        (errno.EDQUOT, "files.full", "failed"),
        (errno.EROFS, "files.readonly", "refused"),
        (errno.EACCES, "files.denied", "refused"),
        (errno.ELOOP, "files.link", "refused"),
        (errno.ENAMETOOLONG, "files.path", "usage"),
        (errno.ENOTEMPTY, "files.exists", "conflict"),
        (errno.EXDEV, "files.cross_device", "refused"),
        (errno.ENOENT, "files.absent", "not_found"),
        (errno.EIO, "files.io", "failed"),
    ],
)
def test_what_the_system_says_becomes_a_typed_error_with_a_hint(number, code, kind):
    error = failures.failure(b"/some/path", OSError(number, os.strerror(number)))
    assert (error.code, error.kind) == (code, kind)
    assert "/some/path" in error.message
    assert error.hint


async def test_a_name_that_is_too_long_is_refused(bench):
    assert (await _error(bench.agent().call("files.write", path="x" * 256, content="x"))).code == "files.path"


async def test_a_name_of_255_bytes_is_written_and_comes_back(bench, root):
    name = "x" * 255
    agent = bench.agent()
    await agent.call("files.write", path=name, content="1")
    done = await agent.call("files.write", path=name, content="2")
    await bench.undo(done.act)
    assert (root / name).read_text() == "1"
    assert stat.S_ISREG((root / name).stat().st_mode)
