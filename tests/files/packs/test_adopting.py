"""Adopting the files of an earlier store: none is copied, none is lost whenever it is cut short."""

import os

import pytest

from takeback import faults
from takeback_acts.files.packs.adopting import adopt

OWNER = "module:files"


@pytest.fixture
def earlier(tmp_path, name):
    """A folder of files named by their digests, and what a crash left beside them."""
    folder, contents = tmp_path / "blobs", [b"%04d" % number * 1000 for number in range(5)]
    for data in contents:
        path = folder / name(data)[:2] / name(data)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / "incoming-dead").write_bytes(b"half")
    return folder, {name(data): data for data in contents}


def test_files_are_taken_over_without_copying_and_their_folder_goes(shelf, earlier):
    folder, contents = earlier
    inodes = {path.name: path.stat().st_ino for path in folder.glob("??/*")}
    with shelf.open() as vault:
        assert adopt(vault, folder, OWNER) == 5
        assert not folder.exists()
        assert {path.name: path.stat().st_ino for path in shelf.folder.glob("large/*/*")} == inodes
        assert {one: vault.reader.read(one) for one in contents} == contents
        assert vault.stats().bytes == shelf.on_disk()
        assert adopt(vault, folder, OWNER) == 0
    with shelf.open() as vault:
        assert {one: vault.reader.read(one) for one in contents} == contents
        assert shelf.sweep(vault, list(contents)[:2]).deleted == 3
        assert vault.stats().bytes == shelf.on_disk()


def test_over_a_limit_they_are_taken_over_all_the_same(shelf, earlier):
    with shelf.open(limit=1000) as vault:
        assert adopt(vault, earlier[0], OWNER) == 5


def test_on_another_disk_they_are_copied(shelf, earlier, monkeypatch):
    folder, contents = earlier

    def other_disk(*_):
        raise OSError(18, os.strerror(18))

    monkeypatch.setattr(os, "link", other_disk)
    with shelf.open() as vault:
        adopt(vault, folder, OWNER)
        assert {one: vault.reader.read(one) for one in contents} == contents
        assert list((shelf.folder / "incoming").iterdir()) == []


class _CutError(Exception):
    pass


@pytest.mark.parametrize("occasion", range(1, 9))
def test_cut_short_anywhere_it_is_finished_the_next_time(shelf, earlier, occasion):
    folder, contents = earlier
    passed = []

    def cut(name):
        if name.startswith(("packs.linked", "packs.adopted", "packs.cleared")):
            passed.append(name)
            if len(passed) == occasion:
                raise _CutError

    with shelf.open() as vault:
        remove = faults.install(cut)
        with pytest.raises(_CutError):
            adopt(vault, folder, OWNER)
        remove()
    with shelf.open() as vault:
        adopt(vault, folder, OWNER)
        assert {one: vault.reader.read(one) for one in contents} == contents
        assert vault.stats().blobs == 5
        assert vault.stats().bytes == shelf.on_disk()
    assert not folder.exists()
