"""Recovery: after a torn write the store goes on where the last whole record ended."""

import pytest

from takeback_acts.files.packs import segment
from takeback_acts.files.packs.keeping import Lease


def _crashed(shelf, vault):
    """A copy of the folder as a killed process would leave it."""
    import shutil

    copy = type(shelf)(shelf.folder.with_name("crashed"))
    copy.settings = shelf.settings
    shutil.rmtree(copy.folder, ignore_errors=True)
    shutil.copytree(shelf.folder, copy.folder)
    return copy


TAILS = {
    "nothing": lambda tail: b"",
    "a part of a record": lambda tail: tail[: len(tail) // 2],
    "all but a byte": lambda tail: tail[:-1],
    "zeros": lambda tail: bytes(len(tail)),
    "garbage": lambda tail: bytes(255 - byte for byte in tail),
    "a head that says too much": lambda tail: tail[:8] + b"\xff\xff\xff\x7f" + tail[12:],
}


@pytest.mark.parametrize("tail", TAILS)
def test_a_torn_tail_is_cut_and_appending_goes_on(shelf, blobs, tail):
    data = blobs(4)
    with shelf.open(segment=1 << 20) as vault:
        digests = shelf.keep(vault, *data[:3])
        copy = _crashed(shelf, vault)
        shelf.keep(vault, data[3])
        (path,) = shelf.files(".pack")
        end = copy.files(".pack")[0].stat().st_size
        torn = TAILS[tail](path.read_bytes()[end:])
    with copy.files(".pack")[0].open("ab") as file:
        file.write(torn)
    for _ in range(2):
        with copy.open(segment=1 << 20) as vault:
            assert [vault.reader.read(one) for one in digests] == data[: len(digests)]
            assert vault.stats().blobs == len(digests)
            assert vault.stats().bytes == copy.on_disk()
            digests += copy.keep(vault, *data[len(digests) : 4])
    assert len(digests) == 4


def test_a_hole_in_the_tail_costs_only_what_lies_in_it(shelf, blobs):
    data = blobs(5)
    with shelf.open(segment=1 << 20) as vault:
        digests = shelf.keep(vault, *data)
        entry = vault.catalog.find(bytes.fromhex(digests[2]))
        copy = _crashed(shelf, vault)
    with copy.files(".pack")[0].open("r+b") as file:
        file.seek(entry.offset)
        file.write(bytes(200))
    with copy.open() as vault:
        assert vault.stats().blobs == 4
        assert [vault.reader.read(digests[number]) for number in (0, 1, 3, 4)] == [*data[:2], *data[3:]]
        copy.keep(vault, data[2])
        assert vault.reader.read(digests[2]) == data[2]


def test_a_torn_payload_in_the_tail_is_not_taken_for_kept(shelf, blobs):
    data = blobs(5)
    with shelf.open(segment=1 << 20) as vault:
        digests = shelf.keep(vault, *data)
        entry = vault.catalog.find(bytes.fromhex(digests[2]))
        copy = _crashed(shelf, vault)
    with copy.files(".pack")[0].open("r+b") as file:
        file.seek(entry.offset + 200)
        file.write(bytes(50))
    with copy.open() as vault:
        assert not vault.present(bytes.fromhex(digests[2]))
        copy.keep(vault, data[2])
        assert [vault.reader.read(one) for one in digests] == data


def test_a_blob_that_holds_a_segment_is_never_read_as_one(shelf, blobs):
    """Not even with the very records of this store in it, behind a bad stretch."""
    with shelf.open(small=4000, segment=1 << 20) as vault:
        shelf.keep(vault, *blobs(3))
        forged = shelf.files(".pack")[0].read_bytes()
    (shelf.folder / "00000001.pack").unlink()
    with shelf.open(small=4000, segment=1 << 20) as vault:
        (digest,) = shelf.keep(vault, forged)
        copy = _crashed(shelf, vault)
    with copy.files(".pack")[0].open("r+b") as file:
        file.seek(segment.START)
        file.write(bytes(60))
    with copy.open() as vault:
        assert vault.stats().blobs == 0
        assert not vault.present(bytes.fromhex(digest))


def test_only_what_lies_behind_the_last_checkpoint_is_read(shelf, blobs, monkeypatch):
    starts, real = [], segment.scan

    def noted(handle, seed, start):
        starts.append(start)
        return real(handle, seed, start)

    monkeypatch.setattr(segment, "scan", noted)
    with shelf.open(segment=100_000, records=1000) as vault:
        digests = shelf.keep(vault, *blobs(100))
    with shelf.open(segment=100_000, records=1000) as vault:
        end = shelf.files(".pack")[0].stat().st_size
        for number in range(100, 130):
            digests += shelf.keep(vault, *blobs(1, start=number))
        copy = _crashed(shelf, vault)
    starts.clear()
    with copy.open(segment=100_000, records=1000) as vault:
        assert [vault.reader.read(one) for one in digests] == blobs(130)
    (start,) = starts
    assert start >= end


def test_a_checkpoint_beyond_the_end_of_the_file_is_not_believed(shelf, blobs):
    with shelf.open(segment=1 << 20) as vault:
        digests = shelf.keep(vault, *blobs(3))
    path = shelf.files(".pack")[0]
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 10)
    with shelf.open(segment=1 << 20) as vault:
        assert vault.stats().blobs == 2
        assert vault.reader.read(digests[1]) == blobs(3)[1]


def test_everything_can_be_made_again_from_the_segments_alone(shelf, blobs):
    data = [*blobs(150), b"large" * 1000]
    with shelf.open(compress=True) as vault:
        digests = shelf.keep(vault, *data[:100])
        digests += shelf.keep(vault, *data[100:], owner="cli:person")
        stats = vault.stats()
    for path in shelf.files(".idx", ".run", ".dead"):
        path.unlink()
    with shelf.open() as vault:
        assert vault.stats() == stats
        assert [vault.reader.read(one) for one in digests] == data


def test_what_a_crash_left_lying_about_is_cleared(shelf, blobs):
    with shelf.open() as vault:
        shelf.keep(vault, *blobs(3))
    left = ["incoming/abc", "00000007.idx", "00000007.dead", "00000008.pack.tmp", "00000009.run"]
    for name in left:
        (shelf.folder / name).write_bytes(b"left")
    with shelf.open() as vault:
        assert not [name for name in left if (shelf.folder / name).exists()]
        assert vault.stats().blobs == 3


def test_a_parcel_that_needs_several_segments_is_whole_when_it_is_said(shelf, blobs):
    with shelf.open() as vault, Lease(vault, "cli:person") as lease:
        lease.keep_all(blobs(60))
        lease.settle()
        copy = _crashed(shelf, vault)
        assert len(shelf.files(".pack")) > 4
    with copy.open() as vault:
        assert vault.stats().blobs == 60
