"""Keeping: durable when it is said, once however often, within the limits, and held as long as the lease."""

import os

import pytest

from takeback.errors import TakebackError
from takeback_acts.files.packs import apart
from takeback_acts.files.packs.keeping import Lease

OWNER = "mcp:agent:juno"


def test_kept_bytes_come_back_also_after_closing(shelf, name):
    data = [b"", b"a", b"\0" * 1000, b"b" * 1001, os.urandom(300_000)]
    with shelf.open() as vault:
        assert shelf.keep(vault, *data) == [name(one) for one in data]
        assert [vault.reader.read(name(one)) for one in data] == data
    with shelf.open() as vault:
        assert [vault.reader.read(name(one)) for one in data] == data
        assert [b"".join(vault.reader.stream(name(one))) for one in data] == data
        assert vault.stats().blobs == len(data)


def test_bytes_kept_again_take_no_more_room(shelf, blobs, opened):
    data = [*blobs(20), b"large" * 1000]
    with shelf.open() as vault:
        shelf.keep(vault, *data)
        before, disk = vault.stats(), shelf.on_disk()
        shelf.keep(vault, *data, data[0], owner="cli:person")
        with Lease(vault, OWNER) as lease:
            lease.keep_file(opened(data[-1]), len(data[-1]))
            lease.settle()
        assert (vault.stats(), shelf.on_disk()) == (before, disk)
        assert list((shelf.folder / "incoming").iterdir()) == []
    with shelf.open() as vault:
        shelf.keep(vault, *data)
        assert (vault.stats(), shelf.on_disk()) == (before, disk)


def test_what_the_store_says_it_takes_is_what_lies_on_disk(shelf, blobs):
    with shelf.open() as vault:
        shelf.keep(vault, *blobs(50), b"large" * 1000)
        shelf.keep(vault, *blobs(50, start=40), owner="cli:person")
        stats = vault.stats()
        assert stats.bytes == shelf.on_disk()
        assert list(stats.owners) == ["cli:person", OWNER]
        heads = stats.segments * 56
        assert sum(stats.owners.values()) == stats.bytes - heads
    with shelf.open() as vault:
        assert vault.stats() == stats


@pytest.mark.parametrize("way", ["clone or kernel", "kernel", "by hand"])
@pytest.mark.parametrize("size", [0, 999, 1000, 1001, 3 << 20])
def test_files_of_any_size_in_every_way_of_copying(shelf, name, opened, monkeypatch, way, size, tmp_path):
    if way != "clone or kernel":
        monkeypatch.setattr(apart, "_clone", lambda *_: False)
    if way == "by hand":
        monkeypatch.setattr(apart, "_in_kernel", lambda *_: False)
    data = os.urandom(size)
    with shelf.open() as vault:
        with Lease(vault, OWNER) as lease:
            handle = opened(data)
            os.lseek(handle, 0, os.SEEK_END)  # wherever it stands
            assert lease.keep_file(handle, size) == (name(data), size)
            lease.settle()
        out = os.open(tmp_path / "out", os.O_RDWR | os.O_CREAT)
        vault.reader.copy_to(name(data), out)
        os.close(out)
        assert (tmp_path / "out").read_bytes() == data
        assert bool(list(shelf.folder.glob("large/*/*"))) == (size > 1000)


def test_a_file_that_has_grown_is_kept_whole(shelf, name, opened):
    data = os.urandom(5000)
    with shelf.open() as vault, Lease(vault, OWNER) as lease:
        assert lease.keep_file(opened(data), 10) == (name(data), 5000)
        lease.settle()
        assert vault.reader.read(name(data)) == data
        assert vault.stats().bytes == shelf.on_disk()


def test_large_files_are_copied_in_constant_memory(shelf, opened, tmp_path):
    import tracemalloc

    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(200 << 20)
    handle = os.open(path, os.O_RDONLY)
    with shelf.open() as vault, Lease(vault, OWNER) as lease:
        tracemalloc.start()
        lease.keep_file(handle, 200 << 20)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    os.close(handle)
    assert peak < 8 << 20


def test_holes_stay_holes_kept_and_given_back(shelf, tmp_path):
    path, out = tmp_path / "sparse", tmp_path / "out"
    with path.open("wb") as file:
        file.seek(64 << 20)
        file.write(b"end")
    with shelf.open() as vault, path.open("rb") as source, Lease(vault, OWNER) as lease:
        sha256, size = lease.keep_file(source.fileno(), path.stat().st_size)
        lease.settle()
        with out.open("w+b") as target:
            vault.reader.copy_to(sha256, target.fileno())
    assert size == out.stat().st_size == path.stat().st_size
    for kept in (out, *shelf.folder.glob("large/*/*")):
        assert kept.stat().st_blocks * 512 < 4 << 20


def test_squeezing_saves_room_and_changes_no_name(shelf, name):
    data = [b"the same words again " * 40, os.urandom(900), b"short"]
    with shelf.open() as vault:
        shelf.keep(vault, *data)
        plain = vault.stats().bytes
        shelf.sweep(vault, [])
    with shelf.open(compress=True) as vault:
        assert shelf.keep(vault, *data) == [name(one) for one in data]
        assert vault.stats().bytes < plain - 600
        assert vault.stats().bytes == shelf.on_disk()
    with shelf.open() as vault:
        assert [vault.reader.read(name(one)) for one in data] == data


@pytest.mark.parametrize(
    ("limits", "code"), [({"limit": 3000}, "full"), ({"owner_limit": 3000}, "agent_full")]
)
def test_a_limit_is_told_before_anything_is_written(shelf, blobs, opened, limits, code):
    with shelf.open(**limits) as vault:
        kept = shelf.keep(vault, *blobs(6))
        before, disk = vault.stats(), shelf.on_disk()
        large = b"large" * 1000
        tries = [
            lambda lease: lease.keep_all(blobs(5, start=6)),
            lambda lease: lease.keep_all([b"y", large]),
            lambda lease: lease.keep(large),
            lambda lease: lease.keep_file(opened(large), 5000),
            lambda lease: lease.keep_file(opened(large), 1),
        ]
        for attempt in tries:
            with Lease(vault, OWNER) as lease:
                with pytest.raises(TakebackError) as error:
                    attempt(lease)
                lease.settle()
            assert error.value.code == f"blobs.{code}"
            assert error.value.hint
            assert (vault.stats(), shelf.on_disk()) == (before, disk)
            assert [path for path in shelf.folder.glob("*/*") if path.is_file()] == []
        shelf.keep(vault, *blobs(6))  # what is there needs no room
        assert all(vault.reader.read(one) for one in kept)


def test_one_agents_limit_is_not_anothers(shelf, blobs):
    with shelf.open(owner_limit=2000) as vault:
        shelf.keep(vault, *blobs(5))
        with pytest.raises(TakebackError, match="mcp:agent:juno"):
            shelf.keep(vault, *blobs(5, start=5))
        shelf.keep(vault, *blobs(5, start=5), owner="mcp:agent:other")


def test_limits_hold_after_a_restart_and_a_sweep_makes_room(shelf, blobs):
    with shelf.open(limit=3000) as vault:
        kept = shelf.keep(vault, *blobs(6))
    with shelf.open(limit=3000) as vault:
        with pytest.raises(TakebackError, match="limit"):
            shelf.keep(vault, *blobs(5, start=6))
        shelf.sweep(vault, kept[:2], share=0.0)  # near the limit all is given back, whatever the share
        shelf.keep(vault, *blobs(5, start=6))
        assert vault.stats().bytes == shelf.on_disk() < 3000


def test_many_blobs_share_few_syncs(shelf, blobs, monkeypatch):
    from takeback_acts.files.packs.segment import Segment

    synced, real = [], Segment.sync

    def counted(self):
        synced.append(self.number)
        real(self)

    monkeypatch.setattr(Segment, "sync", counted)
    with shelf.open(segment=1 << 20, records=5000) as vault:
        shelf.keep(vault, *blobs(2000, 100))
    assert len(synced) <= 2


def test_an_owner_has_a_label_that_fits(shelf):
    with shelf.open() as vault:
        for owner in ("", "x" * 256):
            with pytest.raises(ValueError, match="owner"):
                Lease(vault, owner)


def test_a_lease_that_holds_a_blob_says_so_truly(shelf, name):
    with shelf.open() as vault, Lease(vault, OWNER) as lease:
        (kept,) = shelf.keep(vault, b"there")
        assert lease.holds(kept)
        assert not lease.holds(name(b"not there"))
        assert shelf.sweep(vault, []).deleted == 0
        lease.close()
        assert shelf.sweep(vault, []).deleted == 1
        assert not lease.holds(kept)


def test_a_closed_store_says_so(shelf):
    with shelf.open() as vault:
        lease = Lease(vault, OWNER)
    with pytest.raises(TakebackError) as error:
        lease.keep(b"late")
    assert error.value.code == "blobs.closed"


def test_more_than_memory_should_hold_goes_through(shelf, blobs):
    """Handed over from a thread, faster than the disk takes it."""
    data = blobs(110, 200_000)
    with shelf.open(small=1 << 20, segment=8 << 20) as vault:
        digests = shelf.keep(vault, *data)
        assert vault.reader.read(digests[109]) == data[109]
        assert vault.stats().blobs == 110


def test_what_was_never_settled_is_forgotten_with_its_lease(shelf, blobs):
    with shelf.open(limit=3000) as vault:
        with Lease(vault, OWNER) as lease:
            lease.keep_all(blobs(6))
        assert vault.stats().owners == {}
        shelf.keep(vault, *blobs(7, start=6))
