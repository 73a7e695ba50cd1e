"""Swapping names and taking free ones, with the system's help and without."""

import errno
import os

import pytest

from takeback_acts.files import renames
from takeback_acts.files.beneath import Spot


@pytest.fixture(params=["system", "plain"])
def spots(root, request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setattr(renames, "_rename", None)  # as on a file system that can't
    handle = os.open(root, os.O_RDONLY)
    yield lambda name: Spot(handle, name, os.fsencode(root) + b"/" + name)
    os.close(handle)


def test_a_free_name_is_taken(root, spots):
    (root / "a").write_text("a")
    renames.take_free(spots(b"a"), spots(b"b"))
    assert (root / "b").read_text() == "a"
    assert os.listdir(root) == ["b"]


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_a_taken_name_is_never_written_over(root, spots, kind):
    (root / "a").write_text("a")
    {
        "file": lambda: (root / "b").write_text("b"),
        "folder": lambda: (root / "b").mkdir(),
        "link": lambda: (root / "b").symlink_to("nowhere"),
    }[kind]()
    with pytest.raises(FileExistsError):
        renames.take_free(spots(b"a"), spots(b"b"))
    assert (root / "a").read_text() == "a"


def test_a_folder_takes_a_free_name_but_no_empty_folder_s(root, spots):
    (root / "a").mkdir()
    (root / "a" / "x").write_text("x")
    (root / "b").mkdir()
    with pytest.raises(FileExistsError):
        renames.take_free(spots(b"a"), spots(b"b"))
    renames.take_free(spots(b"a"), spots(b"c"))
    assert (root / "c" / "x").read_text() == "x"


def test_two_names_are_swapped_or_it_says_that_it_can_not(root, spots):
    (root / "a").write_text("a")
    (root / "b").mkdir()
    swapped = renames.exchange(spots(b"a"), spots(b"b"))
    assert swapped == (renames._rename is not None)
    assert (root / "b").is_file() == swapped


def test_what_the_system_refuses_comes_as_its_error(root, spots):
    with pytest.raises(OSError) as error:
        renames.take_free(spots(b"none"), spots(b"b"))
    assert error.value.errno == errno.ENOENT
