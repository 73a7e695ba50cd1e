"""Bytes as they are read and written anew."""

import os

import pytest

from takeback.errors import ConflictError
from takeback_acts.files import reading
from takeback_acts.files.packs.store import BlobStore

pytestmark = pytest.mark.anyio


async def test_holes_stay_holes(bench, root):
    """A disk image of some gigabytes that holds little must not fill the disk when it comes back."""
    with (root / "image").open("wb") as file:
        file.write(b"head")
        file.seek(9 << 20)
        file.write(b"tail")
        file.truncate(12 << 20)
    before = (root / "image").read_bytes()
    used = (root / "image").stat().st_blocks
    done = await bench.agent().call("files.delete", path="image")
    await bench.undo(done.act)
    assert (root / "image").read_bytes() == before
    assert (root / "image").stat().st_blocks <= used + (3 << 20) // 512


async def test_zeros_that_take_room_go_on_taking_it(bench, root):
    (root / "reserved").write_bytes(bytes(4 << 20))
    done = await bench.agent().call("files.delete", path="reserved")
    await bench.undo(done.act)
    assert (root / "reserved").read_bytes() == bytes(4 << 20)


class Growing:
    """A file that somebody appends to faster than it is read."""

    def __init__(self, path, size):
        path.write_bytes(bytes(size))
        self.taken = 0
        self._path, self._read = path, os.read

    def read(self, handle, size):
        part = self._read(handle, size)
        self.taken += len(part)
        assert self.taken < 256 << 20, "it is followed for ever"
        with self._path.open("ab") as file:
            file.write(bytes(len(part)))
        return part


@pytest.mark.parametrize("size", [1000, 3 << 20])
def test_a_file_that_grows_faster_than_it_is_read_is_unstable(tmp_path, monkeypatch, size):
    growing = Growing(tmp_path / "log", size)
    handle = os.open(tmp_path / "log", os.O_RDONLY)
    monkeypatch.setattr(os, "read", growing.read)
    try:
        with pytest.raises(ConflictError) as caught:
            reading.steady(handle, b"/log", reading.Digester().file)
    finally:
        os.close(handle)
    assert caught.value.code == "files.unstable"


def test_a_large_file_that_grows_is_not_read_again_and_again(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_MOST_AGAIN", 4 << 20)
    growing = Growing(tmp_path / "log", 3 << 20)
    handle = os.open(tmp_path / "log", os.O_RDONLY)
    monkeypatch.setattr(os, "read", growing.read)
    try:
        with pytest.raises(ConflictError):
            reading.steady(handle, b"/log", reading.Digester().file)
    finally:
        os.close(handle)
    assert growing.taken <= 5 << 20


async def test_nothing_is_kept_of_a_file_that_grows_while_it_is_copied(tmp_path, monkeypatch):
    growing = Growing(tmp_path / "log", 3 << 20)
    (tmp_path / "log").write_bytes(b"")
    os.truncate(tmp_path / "log", 3 << 20)  # with holes, which the kernel does not copy
    async with BlobStore(tmp_path / "packs") as store:
        handle = os.open(tmp_path / "log", os.O_RDONLY)
        with store.lease("person") as lease, monkeypatch.context() as patched:
            patched.setattr(os, "read", growing.read)
            with pytest.raises(ConflictError):
                reading.steady(handle, b"/log", lease.keep_file)
        os.close(handle)
        assert store.stats().bytes < 1000
        assert [*(tmp_path / "packs").glob("incoming/*")] == []
