"""Sweeping: what nobody names goes, after its grace; nothing else does, and the disk gets its room back."""

import os

import pytest

from takeback_acts.files.packs.keeping import Lease

OWNER = "mcp:agent:juno"


def test_only_what_is_not_live_goes(shelf, blobs):
    data = [*blobs(40), b"large" * 1000, b"LARGE" * 1000]
    with shelf.open() as vault:
        digests = shelf.keep(vault, *data)
        before, disk = vault.stats(), shelf.on_disk()
        live = [*digests[:40:4], digests[41]]
        foreseen = shelf.sweep(vault, live, dry_run=True)
        assert (vault.stats(), shelf.on_disk()) == (before, disk)
        swept = shelf.sweep(vault, iter(live))
        assert (foreseen.deleted, foreseen.freed, foreseen.kept) == (swept.deleted, swept.freed, swept.kept)
        assert (swept.deleted, swept.kept, swept.missing) == (31, 11, 0)
        assert disk - shelf.on_disk() == swept.reclaimed >= swept.freed
        for sha256, plain in zip(digests, data, strict=True):
            assert vault.present(bytes.fromhex(sha256)) == (sha256 in live)
            if sha256 in live:
                assert vault.reader.read(sha256) == plain
        after = vault.stats()
        assert after.bytes == shelf.on_disk()
        assert sum(after.owners.values()) == before.owners[OWNER] - swept.freed
    with shelf.open() as vault:
        assert vault.stats() == after
        assert shelf.sweep(vault, live).deleted == 0


def test_what_is_younger_than_the_grace_stays(shelf, blobs):
    with shelf.open() as vault:
        shelf.keep(vault, *blobs(5))
        shelf.now += 100
        young = shelf.keep(vault, *blobs(5, start=5), b"large" * 1000)
        assert shelf.sweep(vault, [], grace=50, after=0).deleted == 5
        assert all(vault.reader.read(one) for one in young)
    with shelf.open() as vault:  # it is known after a restart
        assert shelf.sweep(vault, [], grace=50, after=49).deleted == 0
        assert shelf.sweep(vault, [], grace=50, after=51).deleted == 6


def test_live_blobs_that_are_not_there_are_counted(shelf, blobs, name):
    with shelf.open() as vault:
        digests = shelf.keep(vault, *blobs(3))
        assert shelf.sweep(vault, [*digests, name(b"never kept")]).missing == 1


def test_what_was_dropped_stays_dropped_though_its_segment_is_not_rewritten(shelf, blobs):
    with shelf.open(segment=1 << 20) as vault:
        digests = shelf.keep(vault, *blobs(10), b"large" * 1000)
        (path,) = shelf.files(".pack")
        swept = shelf.sweep(vault, digests[:9], share=0.1)
        assert (swept.deleted, swept.reclaimed) == (2, 5000)
        assert shelf.files(".pack") == [path]
        stats = vault.stats()
        assert stats.bytes == shelf.on_disk()
    with shelf.open() as vault:
        assert vault.stats() == stats
        assert not vault.present(bytes.fromhex(digests[9]))
        assert shelf.keep(vault, blobs(10)[9]) == [digests[9]]
        assert vault.reader.read(digests[9]) == blobs(10)[9]


def test_a_list_of_dropped_blobs_that_fits_no_index_drops_nothing(shelf, blobs):
    with shelf.open(segment=1 << 20) as vault:
        digests = shelf.keep(vault, *blobs(10))
        shelf.sweep(vault, digests[:5], share=0.1)
    (path,) = shelf.files(".dead")
    whole = path.read_bytes()
    for spoiled in (
        b"",
        b"{}",
        whole[:-4],
        whole.replace(b'"index": ', b'"index": 1'),
        b"nonsense\n" + whole,
    ):
        path.write_bytes(spoiled)
        with shelf.open() as vault:
            assert vault.stats().blobs == 10
            assert [vault.reader.read(one) for one in digests] == blobs(10)


def test_small_segments_of_many_starts_become_one(shelf, blobs):
    digests = []
    for number in range(6):
        with shelf.open(segment=1 << 20) as vault:
            digests += shelf.keep(vault, *blobs(2, start=2 * number))
            shelf.sweep(vault, digests, share=0.0)
    assert len(shelf.files(".pack")) <= 3
    with shelf.open() as vault:
        assert [vault.reader.read(one) for one in digests] == blobs(12)


def test_a_lease_holds_what_it_found_and_what_it_wrote(shelf, blobs):
    with shelf.open() as vault:
        shelf.keep(vault, *blobs(10))
        with Lease(vault, OWNER) as lease:
            held = lease.keep_all(blobs(5, start=8))
            lease.settle()
            assert shelf.sweep(vault, []).deleted == 8
            assert [vault.reader.read(one) for one in held] == blobs(5, start=8)
        assert shelf.sweep(vault, []).deleted == 5


def test_a_lease_that_ends_between_the_list_and_the_sweep_still_holds(shelf, blobs):
    """Its row came too late for the list; nobody else knows of it."""
    with shelf.open() as vault:
        shelf.keep(vault, *blobs(3))
        vault.catalog.pins.begin()
        live: list[str] = []
        with Lease(vault, OWNER) as lease:
            lease.keep(blobs(1)[0])
            lease.settle()
        assert shelf.sweep(vault, live).deleted == 2
        vault.catalog.pins.end()
        assert vault.reader.read(shelf.keep(vault, blobs(1)[0])[0]) == blobs(1)[0]
        assert shelf.sweep(vault, live).deleted == 1


def test_a_large_file_kept_again_while_it_is_removed_stays(shelf, name, monkeypatch):
    """The drop is decided, and the writer comes before the file is unlinked."""
    data = b"large" * 1000
    with shelf.open() as vault:
        shelf.keep(vault, data)
        from takeback import faults

        def meanwhile(point):
            if point == "packs.dropped":
                remove()
                shelf.keep(vault, data)

        remove = faults.install(meanwhile)
        try:
            shelf.sweep(vault, [])
        finally:
            remove()
        assert vault.reader.read(name(data)) == data
        assert vault.stats().bytes == shelf.on_disk()


def test_files_that_got_their_name_and_no_record_are_removed(shelf, blobs):
    with shelf.open() as vault:
        digests = shelf.keep(vault, b"large" * 1000)
        stray = shelf.folder / "large" / "ab" / ("ab" * 32)
        stray.parent.mkdir(exist_ok=True)
        stray.write_bytes(b"stray")
        os.utime(stray, (shelf.now, shelf.now))
        os.utime(shelf.folder / "large" / digests[0][:2] / digests[0], (shelf.now, shelf.now))
        shelf.sweep(vault, digests, grace=100)
        assert stray.exists()
        shelf.sweep(vault, digests, grace=0)
        assert not stray.exists()
        assert vault.reader.read(digests[0])
        assert vault.stats().bytes == shelf.on_disk()


def test_a_reader_in_the_middle_of_a_rewriting_reads_on(shelf, blobs):
    with shelf.open() as vault:
        digests = shelf.keep(vault, *blobs(20))
        places = [vault.catalog.find(bytes.fromhex(one)) for one in digests]
        handle = vault.catalog.handle(places[3].segment)
        shelf.sweep(vault, digests[1:])
        assert len(os.pread(handle.number, 300, places[3].offset)) == 300
        assert [vault.reader.read(one) for one in digests[1:]] == blobs(20)[1:]


def test_what_a_crash_left_twice_is_kept_once(shelf, blobs, tmp_path):
    """The new segment is there and the old ones are not removed yet."""
    data = blobs(40)
    with shelf.open() as vault:
        digests = shelf.keep(vault, *data)
    old = {path.name: path.read_bytes() for path in shelf.files(".pack", ".idx")}
    with shelf.open() as vault:
        shelf.sweep(vault, digests[::2])
        stats = vault.stats()
    for name, content in old.items():
        if not (shelf.folder / name).exists():
            (shelf.folder / name).write_bytes(content)
    with shelf.open() as vault:
        assert vault.stats() == stats
        assert [vault.reader.read(one) for one in digests[::2]] == data[::2]
        assert vault.stats().bytes == shelf.on_disk()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_rewriting_follows_the_share_that_is_needed(shelf, blobs, share):
    with shelf.open(segment=20_000) as vault:
        digests = shelf.keep(vault, *blobs(150))
        few, most = digests[:50:10], digests[50:140]
        shelf.sweep(vault, [*few, *most], share=share)
        waste = vault.stats().bytes - sum(vault.stats().owners.values())
        assert (waste > 15_000, 3000 < waste < 15_000, waste < 1000).index(True) == share * 2
