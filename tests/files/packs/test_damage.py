"""Damage: told by name, never passed on, and mended where the bytes or an index can be had again."""

import os

import pytest

from takeback.errors import TakebackError


def _flip(path, at):
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 0x10]))


def _read(vault, sha256):
    """A blob's bytes, or the code of the error."""
    try:
        return vault.reader.read(sha256)
    except TakebackError as error:
        return error.code


def _code(vault, sha256):
    with pytest.raises(TakebackError) as error:
        vault.reader.read(sha256)
    assert sha256[:12] in error.value.message
    assert sha256[:13] not in error.value.message
    return error.value.code


@pytest.mark.parametrize("compress", [False, True])
def test_a_flipped_bit_is_told_and_harms_no_other_blob(shelf, blobs, compress):
    data = [one + b"words " * 50 for one in blobs(5)]
    with shelf.open(compress=compress) as vault:
        digests = shelf.keep(vault, *data)
        entry = vault.catalog.find(bytes.fromhex(digests[2]))
    _flip(shelf.files(".pack")[0], entry.offset + 60 + len("mcp:agent:juno") + 20)
    with shelf.open(compress=compress) as vault:
        assert _code(vault, digests[2]) == "files.blob_corrupt"
        assert [vault.reader.read(one) for one in digests[:2]] == data[:2]
        found = vault.check()
        assert (found.damaged, found.missing, found.blobs) == ([digests[2]], [], 5)


def test_every_single_flipped_bit_of_a_segment_is_found_or_harmless(shelf, blobs):
    """With the index there, and with all that a segment alone tells when the index is made again."""
    data = blobs(3, 40)
    with shelf.open() as vault:
        digests = shelf.keep(vault, *data)
    path, original = shelf.files(".pack")[0], shelf.files(".pack")[0].read_bytes()
    for lost in (False, True):
        for at in range(0, len(original), 7):
            path.write_bytes(original)
            _flip(path, at)
            if lost:
                path.with_suffix(".idx").unlink(missing_ok=True)
            with shelf.open() as vault:
                for sha256, plain in zip(digests, data, strict=True):
                    assert _read(vault, sha256) in (plain, "files.blob_corrupt", "files.blob_missing")
                    assert at >= 56 or _read(vault, sha256) == plain  # the head is there twice
                assert len(vault.check().damaged) <= 1


def test_bytes_kept_again_mend_a_damaged_blob(shelf, blobs):
    data = [*blobs(5), b"large" * 1000]
    with shelf.open() as vault:
        digests = shelf.keep(vault, *data)
        entry = vault.catalog.find(bytes.fromhex(digests[2]))
    _flip(shelf.files(".pack")[0], entry.offset + 100)
    _flip(shelf.folder / "large" / digests[5][:2] / digests[5], 77)
    with shelf.open() as vault:
        assert sorted(vault.check().damaged) == sorted([digests[2], digests[5]])
        assert _code(vault, digests[5]) == "files.blob_corrupt"
        shelf.keep(vault, *data)
        assert [vault.reader.read(one) for one in digests] == data
    with shelf.open() as vault:
        shelf.sweep(vault, digests)
        assert [vault.reader.read(one) for one in digests] == data
        assert vault.check().damaged == []


def test_a_damaged_blob_stays_damaged_through_a_rewriting(shelf, blobs):
    with shelf.open() as vault:
        digests = shelf.keep(vault, *blobs(5))
        entry = vault.catalog.find(bytes.fromhex(digests[2]))
    _flip(shelf.files(".pack")[0], entry.offset + 100)
    with shelf.open() as vault:
        shelf.sweep(vault, digests[1:])
        assert _code(vault, digests[2]) == "files.blob_corrupt"
        shelf.keep(vault, *blobs(5))
        assert [vault.reader.read(one) for one in digests] == blobs(5)


def test_a_large_file_that_was_taken_away_is_missing_and_can_be_kept_again(shelf):
    with shelf.open() as vault:
        (sha256,) = shelf.keep(vault, b"large" * 1000)
        (shelf.folder / "large" / sha256[:2] / sha256).unlink()
        assert _code(vault, sha256) == "files.blob_missing"
        assert vault.check().missing == [sha256]
        assert not vault.present(bytes.fromhex(sha256))
        shelf.keep(vault, b"large" * 1000)
        assert vault.reader.read(sha256) == b"large" * 1000


def test_nothing_of_the_blob_is_in_the_words(shelf, name):
    with shelf.open() as vault:
        assert _code(vault, name(b"never kept")) == "files.blob_missing"


@pytest.mark.parametrize("suffix", [".idx", ".run"])
def test_indexes_are_made_again_when_they_are_gone_or_damaged(shelf, blobs, suffix):
    data = blobs(200)
    with shelf.open() as vault:
        digests = shelf.keep(vault, *data)
        stats = vault.stats()
    for spoil in (lambda path: _flip(path, 5), lambda path: _flip(path, path.stat().st_size - 3), os.unlink):
        with shelf.open():
            pass  # runs that were given up are merged again
        assert shelf.files(suffix)
        for path in shelf.files(suffix):
            spoil(path)
        with shelf.open() as vault:
            assert [vault.reader.read(one) for one in digests] == data
            assert vault.check().damaged == []
            assert vault.stats() == stats


def test_a_damaged_index_costs_no_blob_in_a_sweep(shelf, blobs):
    data = blobs(200)
    with shelf.open() as vault:
        digests = shelf.keep(vault, *data)
    for path in shelf.files(".idx", ".run"):
        for at in range(3, path.stat().st_size - 700, 64):
            _flip(path, at)
    with shelf.open() as vault:
        assert shelf.sweep(vault, digests).missing == 0
        assert [vault.reader.read(one) for one in digests] == data


def test_a_file_that_is_no_segment_is_set_aside(shelf, blobs):
    with shelf.open() as vault:
        digests = shelf.keep(vault, *blobs(3))
    (shelf.folder / "00000009.pack").write_bytes(b"somebody else's " * 100)
    (shelf.folder / "00000010.pack").write_bytes(b"TBPACK1\n")
    with shelf.open() as vault:
        assert vault.reader.read(digests[0]) == blobs(3)[0]
        shelf.keep(vault, *blobs(3, start=3))
    assert (shelf.folder / "00000009.unreadable").read_bytes().startswith(b"somebody")
    assert not (shelf.folder / "00000010.pack").exists()


def test_a_check_of_a_part_reads_from_all_over_and_knows_what_others_met(shelf, blobs):
    data = [*blobs(40), *(bytes([number]) * 5000 for number in range(3))]
    with shelf.open() as vault:
        digests = shelf.keep(vault, *data)
        places = [vault.catalog.find(bytes.fromhex(one)) for one in digests]
    for entry in places[:40]:
        _flip(shelf.folder / f"{entry.segment:08d}.pack", entry.offset + 100)
    large = [shelf.folder / "large" / one[:2] / one for one in digests[40:]]
    large[0].unlink()
    large[1].write_bytes(b"short")
    with shelf.open() as vault:
        assert _code(vault, digests[7]) == "files.blob_corrupt"
        found = vault.check(4000)
        assert 0 < found.bytes < 12_000
        assert digests[7] in found.damaged
        assert digests[41] in found.damaged
        assert 2 < len(found.damaged) < 41
        assert found.missing == [digests[40]]
        assert len(vault.check().damaged) == 41


def test_a_blob_with_a_whole_copy_is_not_told_as_damaged(shelf, blobs):
    with shelf.open() as vault:
        (digest,) = shelf.keep(vault, *blobs(1))
    _flip(shelf.files(".pack")[0], shelf.files(".pack")[0].stat().st_size - 5)
    with shelf.open() as vault:
        assert vault.check().damaged == [digest]
        shelf.keep(vault, *blobs(1))
        assert vault.check().damaged == []
