"""Bytes kept by their digest: small ones in the database, large ones as files, both verified."""

import hashlib
import os
import threading

import pytest

from takeback.errors import NotFoundError, TakebackError
from takeback.store import Store
from takeback_acts.files import blobs as rows
from takeback_acts.files.blobs import Blobs
from takeback_acts.files.large import LargeBlobs
from takeback_acts.files.reading import CHUNK, steady

pytestmark = pytest.mark.anyio


def _digest(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def large(tmp_path):
    made = LargeBlobs(tmp_path / "blobs")
    made.prepare()
    return made


@pytest.fixture
async def blobs(tmp_path, large):
    async with await Store.open(tmp_path / "blobs.db") as store:
        await store.migrate("files", (rows.TABLES,))
        yield Blobs(store, large, 100)


@pytest.fixture
def opened(tmp_path):
    handles = []

    def make(data, name="source"):
        (tmp_path / name).write_bytes(data)
        handles.append(os.open(tmp_path / name, os.O_RDWR))
        return handles[-1]

    yield make
    for handle in handles:
        os.close(handle)


async def test_small_bytes_become_rows_and_large_ones_files(blobs, large, opened):
    intake = blobs.intake()
    small, big = b"s" * 100, b"b" * 101
    assert intake.data(small) == _digest(small)
    assert intake.file(opened(big), 101) == (_digest(big), 101)
    assert list(intake.small) == [_digest(small)]
    assert large.read(_digest(big)) == big
    await blobs.keep(intake.small)
    assert await blobs.fetch([_digest(small), _digest(big)]) == {_digest(small): small}
    assert await blobs.has([_digest(small), _digest(big), _digest(b"?")]) == {_digest(small), _digest(big)}


async def test_the_same_bytes_are_kept_once(blobs, large, tmp_path):
    for _ in range(2):
        await blobs.keep({_digest(b"x"): b"x"})
        large.add_data(b"y" * 1000)
    assert (
        await blobs._store.read(lambda db: db.execute("SELECT count(*) FROM files_blob").fetchone()[0]) == 1
    )
    assert large.total() == (1, 1000)
    assert not list((tmp_path / "blobs").glob("incoming-*"))


async def test_a_damaged_row_is_found_out(blobs):
    key = _digest(b"good")
    await blobs.keep({key: b"good"})
    await blobs._store.transaction(lambda tx: tx.execute("UPDATE files_blob SET bytes = x'00'"))
    with pytest.raises(TakebackError) as error:
        await blobs.fetch([key])
    assert error.value.code == "files.blob_corrupt"


async def test_many_small_blobs_do_not_pile_up_in_memory(blobs, large):
    flushed: list[dict[str, bytes]] = []
    intake = rows.Intake(large, 1 << 20, flushed.append)
    for number in range(20):
        intake.data(number.to_bytes(1) * (1 << 19))
    assert flushed
    assert sum(len(data) for data in intake.small.values()) <= 4 << 20
    assert len(intake.digests) == 20
    assert sum(len(small) for small in flushed) + len(intake.small) == 20


def test_a_large_file_of_any_size_is_copied_and_verified(large, opened, tmp_path):
    data = os.urandom(CHUNK) * 3 + b"tail"
    sha256, size = large.add(opened(data))
    assert (sha256, size) == (_digest(data), len(data))
    target = os.open(tmp_path / "target", os.O_RDWR | os.O_CREAT)
    large.copy_to(sha256, target)
    os.close(target)
    assert (tmp_path / "target").read_bytes() == data


def test_a_missing_and_a_damaged_file_have_their_own_codes(large, tmp_path):
    data = b"z" * 1000
    sha256 = large.add_data(data)
    path = tmp_path / "blobs" / sha256[:2] / sha256
    path.write_bytes(b"z" * 999 + b"!")
    with pytest.raises(TakebackError) as error:
        large.read(sha256)
    assert error.value.code == "files.blob_corrupt"
    with (tmp_path / "target").open("wb") as target, pytest.raises(TakebackError) as error:
        large.copy_to(sha256, target.fileno())
    assert error.value.code == "files.blob_corrupt"
    path.unlink()
    with pytest.raises(NotFoundError) as error:
        large.read(sha256)
    assert error.value.code == "files.blob_missing"


def test_what_a_crash_left_half_written_goes_at_the_next_start(large, tmp_path):
    (tmp_path / "blobs" / "incoming-dead").write_bytes(b"half")
    large.prepare()
    assert not list((tmp_path / "blobs").iterdir())


def test_a_sweep_spares_what_is_live_and_what_is_young(large, tmp_path):
    kept, young, old = (large.add_data(name * 1000) for name in (b"k", b"y", b"o"))
    for sha256 in (kept, old):
        os.utime(tmp_path / "blobs" / sha256[:2] / sha256, (1, 1))
    assert large.sweep({kept}, 1000, dry_run=True) == (1, 1000)
    assert large.has(old)
    assert large.sweep({kept}, 1000, dry_run=False) == (1, 1000)
    assert (large.has(kept), large.has(young), large.has(old)) == (True, True, False)


def test_bytes_kept_again_count_as_young(large, tmp_path):
    sha256 = large.add_data(b"o" * 1000)
    os.utime(tmp_path / "blobs" / sha256[:2] / sha256, (1, 1))
    large.add_data(b"o" * 1000)
    assert large.sweep(set(), 1000, dry_run=False) == (0, 0)


def test_a_file_that_changes_while_it_is_read_is_read_again(opened):
    handle, times = opened(b"first"), []

    def take(source, size):
        times.append(size)
        data = os.read(source, 100)
        if len(times) == 1:
            os.pwrite(source, b"second, longer", 0)
        return _digest(data), len(data)

    about, sha256, size = steady(handle, b"/f", take)
    assert (sha256, size, about.st_size) == (_digest(b"second, longer"), 14, 14)


def test_a_file_that_never_holds_still_is_refused(opened):
    handle = opened(b"")

    def take(source, size):
        os.pwrite(source, b"x" * (size + 1), 0)
        return _digest(b""), size

    with pytest.raises(TakebackError) as error:
        steady(handle, b"/f", take)
    assert error.value.code == "files.unstable"
    assert error.value.retryable


def test_writers_of_the_same_bytes_at_once_all_find_them_whole(large, opened):
    data = os.urandom(300_000)
    failures = []

    def keep(number):
        try:
            assert large.add(opened(data, f"source{number}"))[0] == _digest(data)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=keep, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert large.read(_digest(data)) == data
    assert large.total() == (1, 300_000)


@pytest.mark.parametrize("damage", [b"", b"y" * 999, b"x" + b"y" * 999, b"y" * 1001])
def test_a_damaged_file_gives_way_when_its_bytes_are_kept_again(large, opened, tmp_path, damage):
    data = b"y" * 1000
    sha256 = large.add_data(data)
    path = tmp_path / "blobs" / sha256[:2] / sha256
    for keep in (lambda: large.add_data(data), lambda: large.add(opened(data, os.urandom(4).hex()))):
        path.write_bytes(damage)
        keep()
        assert large.read(sha256) == data
    assert large.total() == (1, 1000)


def test_a_file_that_the_disk_no_longer_gives_back_is_replaced(large, tmp_path):
    sha256 = large.add_data(b"y" * 1000)
    path = tmp_path / "blobs" / sha256[:2] / sha256
    path.unlink()
    path.symlink_to(tmp_path)
    large.add_data(b"y" * 1000)
    assert large.read(sha256) == b"y" * 1000


async def test_a_damaged_row_gives_way_when_its_bytes_are_kept_again(blobs):
    await blobs.keep({_digest(b"x"): b"x"})
    await blobs._store.transaction(lambda tx: tx.execute("UPDATE files_blob SET bytes = x'00'"))
    with pytest.raises(TakebackError):
        await blobs.fetch([_digest(b"x")])
    await blobs.keep({_digest(b"x"): b"x"})
    assert await blobs.fetch([_digest(b"x")]) == {_digest(b"x"): b"x"}
