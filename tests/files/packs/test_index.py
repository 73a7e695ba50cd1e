"""Indexes: every blob is found, no other is, and many indexes become few."""

import hashlib
import os

import pytest

from takeback_acts.files.packs import index, runs
from takeback_acts.files.packs.index import About, Entry, Index


def _digest(number):
    return hashlib.sha256(b"%d" % number).digest()


def _entries(numbers, segment=1, spread=_digest):
    ordered = sorted((spread(number), number) for number in numbers)
    return [
        Entry(digest, segment, slot, number, 10, 20, 30, 0, 0)
        for slot, (digest, number) in enumerate(ordered)
    ]


def _written(path, entries, segment=1):
    index.write(path, About([segment], sealed=True), [entry.pack() for entry in entries])
    found = Index.open(path)
    assert found is not None
    assert found.sound()
    return found


@pytest.mark.parametrize("count", [0, 1, 2, 99, 100, 101, 5000])
def test_a_look_up_finds_what_is_there_and_nothing_else(tmp_path, count):
    entries = _entries(range(count))
    found = _written(tmp_path / "1.idx", entries)
    assert [found.find(entry.digest) for entry in entries] == entries
    assert list(found.entries()) == entries
    assert not [number for number in range(count, count + 3000) if found.find(_digest(number))]
    assert found.find(bytes(32)) is found.find(b"\xff" * 32) is None


@pytest.mark.parametrize(
    "spread",
    [
        lambda number: number.to_bytes(32, "big"),
        lambda number: b"\xff" * 28 + number.to_bytes(4, "big"),
        lambda number: (b"\x80" if number % 2 else b"\x7f") * 20 + number.to_bytes(12, "big"),
    ],
)
def test_digests_that_somebody_chose_are_found_as_well(tmp_path, spread):
    """Nobody can choose many SHA-256 digests near each other, but nothing may hang on it."""
    entries = _entries(range(500), spread=spread)
    found = _written(tmp_path / "1.idx", entries)
    assert [found.find(entry.digest) for entry in entries] == entries
    assert found.find(spread(500)) is None


def test_any_damage_to_an_index_is_found(tmp_path):
    path = tmp_path / "1.idx"
    _written(path, _entries(range(20)))
    whole = path.read_bytes()
    for at in range(0, len(whole), 3):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        found = Index.open(path)
        assert found is None or not found.sound()
    for length in range(0, len(whole), 50):
        path.write_bytes(whole[:length])
        assert Index.open(path) is None


def test_a_run_has_all_of_its_parts_and_of_copies_the_newest(tmp_path):
    parts = [
        _written(tmp_path / f"{n}.idx", _entries(range(50 * n, 50 * n + 60), segment=n), n)
        for n in range(1, 9)
    ]
    assert runs.due(parts[:7]) == []
    assert runs.due(parts) == parts
    run = runs.merge(tmp_path, 9, parts, {1, 2, 3, 4, 5, 6, 8})
    assert run is not None
    assert run.about.segments == [1, 2, 3, 4, 5, 6, 8]
    for number in range(50, 460):
        entry = run.find(_digest(number))
        newest = [n for n in (1, 2, 3, 4, 5, 6, 8) if 50 * n <= number < 50 * n + 60]
        assert (entry.segment if entry else None) == (max(newest) if newest else None)


def test_many_segments_are_looked_up_in_few_indexes(shelf, blobs):
    with shelf.open(records=2) as vault:
        digests = shelf.keep(vault, *blobs(260))
        vault._upkeep.submit(lambda: None).result()
        assert len(shelf.files(".pack")) == 130
        assert len(vault.catalog.indexes) <= 16
        assert [vault.reader.read(one) for one in digests] == blobs(260)
    with shelf.open(records=2) as vault:
        assert len(vault.catalog.indexes) <= 16
        assert [vault.reader.read(one) for one in digests] == blobs(260)


def test_many_segments_need_few_open_files(shelf, blobs):
    import resource

    old = resource.getrlimit(resource.RLIMIT_NOFILE)
    data = blobs(260)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + 70, old[1]))
    try:
        with shelf.open(records=2) as vault:
            digests = shelf.keep(vault, *data)
        with shelf.open(records=2) as vault:
            assert [vault.reader.read(one) for one in digests] == data
            shelf.sweep(vault, digests[::3], share=0.4)
            assert vault.check().damaged == []
        with shelf.open(records=2) as vault:
            assert [vault.reader.read(one) for one in digests[::3]] == data[::3]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, old)


def test_an_index_takes_no_memory_for_what_it_lists(tmp_path):
    import tracemalloc

    path = tmp_path / "1.run"
    portions = (
        b"".join(
            Entry(top.to_bytes(2, "big") + _digest(n)[2:], 1, 0, 0, 1, 1, 1, 0, 0).pack() for n in range(4)
        )
        for top in range(10_000)
    )
    tracemalloc.start()
    index.write(path, About([1]), portions)
    found = Index.open(path)
    assert found is not None
    for number in range(0, 10_000, 100):
        found.find(number.to_bytes(2, "big") + bytes(30))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 2_500_000
    assert peak < 100_000
