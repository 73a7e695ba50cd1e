"""The store on the event loop: durable when it is awaited, one sync for many, and a sweep beside it all."""

import os
import threading

import anyio
import pytest

from takeback.errors import ConflictError, NotFoundError
from takeback_acts.files.packs.segment import Segment
from takeback_acts.files.packs.settings import PackSettings
from takeback_acts.files.packs.store import BlobStore

pytestmark = pytest.mark.anyio

OWNER = "mcp:agent:juno"


@pytest.fixture
async def store(tmp_path):
    async with BlobStore(tmp_path / "packs", PackSettings(small=1000)) as made:
        yield made


async def _nothing():
    return []


async def _put(lease, data):
    sha256 = lease.keep(data)
    await lease.durable()
    return sha256


async def test_every_way_in_and_every_way_out(store, name, opened, tmp_path):
    large = os.urandom(3 << 20)
    with store.lease(OWNER) as lease:
        assert [lease.keep(b"one"), lease.keep(large)] == [name(b"one"), name(large)]
        many = [b"one", b"two", b"x" * 2000]
        assert lease.keep_all(many) == [name(data) for data in many]
        assert lease.keep_file(opened(b"three"), 5) == (name(b"three"), 5)
        assert lease.keep_file(opened(large[1:]), len(large)) == (name(large[1:]), len(large) - 1)
        await lease.durable()
    assert await store.get(name(b"two")) == b"two"
    assert await store.get(name(large)) == large
    parts = list(store.vault.reader.stream(name(large)))
    assert len(parts) > 1
    assert b"".join(parts) == large
    with (tmp_path / "out").open("w+b") as out:
        store.vault.reader.copy_to(name(large), out.fileno())
    assert (tmp_path / "out").read_bytes() == large
    assert store.has(name(b"one"))
    assert not store.has(name(b"four"))
    assert (await store.check()).blobs == store.stats().blobs == 6
    with pytest.raises(NotFoundError):
        await store.get(name(b"four"))


async def test_many_writers_share_a_sync(store, blobs, monkeypatch):
    synced, gate, real = [], threading.Event(), Segment.sync

    def counted(self):
        synced.append(self.number)
        gate.wait(5)
        real(self)

    async def write(data):
        with store.lease(OWNER) as lease:
            await _put(lease, data)

    monkeypatch.setattr(Segment, "sync", counted)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for data in blobs(64):
                group.start_soon(write, data)
            await anyio.wait_all_tasks_blocked()
            gate.set()
    assert len(synced) <= 3
    assert store.stats().blobs == 64


async def test_nobody_is_told_before_the_sync(store, name, monkeypatch):
    gate, real, told = threading.Event(), Segment.sync, []

    def held(self):
        gate.wait(5)
        real(self)

    async def write(lease):
        await _put(lease, b"data")
        told.append(True)

    monkeypatch.setattr(Segment, "sync", held)
    with anyio.fail_after(10), store.lease(OWNER) as lease, store.lease("cli:person") as other:
        async with anyio.create_task_group() as group:
            group.start_soon(write, lease)
            group.start_soon(write, lease)  # the same lease: what it has under way counts for both
            group.start_soon(write, other)
            await anyio.wait_all_tasks_blocked()
            assert not told
            assert not store.has(name(b"data"))
            gate.set()
    assert told == [True] * 3


async def test_a_cancelled_writer_harms_nobody(store, name, monkeypatch):
    gate, real = threading.Event(), Segment.sync

    def held(self):
        gate.wait(5)
        real(self)

    monkeypatch.setattr(Segment, "sync", held)
    with anyio.fail_after(10), store.lease(OWNER) as lease:
        async with anyio.create_task_group() as group:
            group.start_soon(_put, lease, b"data")
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        gate.set()
        assert await _put(lease, b"data") == name(b"data")
    assert await store.get(name(b"data")) == b"data"


async def test_live_blobs_are_listed_while_leases_are_watched(store, name):
    """A writer that comes and goes while the list is made."""
    with store.lease(OWNER) as lease:
        await _put(lease, b"old")

    async def live():
        with store.lease("cli:person") as lease:
            assert lease.holds(name(b"old"))
            await _put(lease, b"new")
        return []

    now = 10**10
    assert (await store.gc(live, now, 0)).deleted == 0
    assert (await store.gc(_nothing, now, 0, dry_run=True)).deleted == 2
    assert (await store.gc(_nothing, now, 0)).deleted == 2


async def test_a_list_that_fails_drops_nothing(store, name):
    with store.lease(OWNER) as lease:
        await _put(lease, b"data")

    async def live():
        raise RuntimeError("the log can't be read")

    with pytest.raises(RuntimeError):
        await store.gc(live, 10**10, 0)
    assert await store.get(name(b"data")) == b"data"
    assert (await store.gc(_nothing, 10**10, 0)).deleted == 1


async def test_a_second_store_on_the_folder_is_refused(store):
    with pytest.raises(ConflictError):
        await BlobStore(store.vault.catalog.folder).open()
