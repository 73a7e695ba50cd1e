"""What is known of a folder, compared one by one and by whole columns: the same answer."""

import os
import sys
from array import array

import pytest

from takeback_acts.files.capture.columns import Columns, Stats, of_columns, to_columns
from takeback_acts.files.capture.known import Known
from takeback_acts.files.capture.marks import COLUMNS, INODE, entries, mark, own_mark

MANY = 1_100


@pytest.fixture
def folder(tmp_path):
    """An open folder of more files than are compared at once; the working folder comes back."""
    here = os.open(".", os.O_RDONLY)
    for number in range(MANY):
        (tmp_path / f"{number}").write_bytes(b"x" * (number % 3))
    (tmp_path / "link").symlink_to("nowhere")
    handle = os.open(tmp_path, os.O_RDONLY)
    yield handle
    os.fchdir(here)
    os.close(handle)
    os.close(here)


def both(folder):
    """The same folder, known in both ways; in one where the system's stats are of no known layout."""
    pairs = [(name, found) for name, found, _ in entries(folder) if found is not None]
    names = b"".join(name + b"/" for name, _ in pairs)
    marks = array("q", [number for _, found in pairs for number in mark(found)])
    told = own_mark(os.fstat(folder)), True, names, marks
    return [Known(*told)] + ([Columns(Stats(), *told)] if sys.platform == "linux" else [])


def test_nothing_differs(folder):
    for one in both(folder):
        assert one.differing(folder) == ([], [])


@pytest.mark.parametrize("number", [0, 5, MANY - 1])
def test_every_kind_of_change_is_seen(folder, tmp_path, number):
    path, name = tmp_path / f"{number}", b"%d" % number
    changes = [
        lambda: path.write_bytes(b"longer"),
        lambda: path.chmod(0o751),
        lambda: os.utime(path, ns=(1, 2)),
        lambda: os.replace(os.path.join(tmp_path, "7"), path),
    ]
    for change in changes:
        known = both(folder)
        change()
        for one in known:
            assert name in one.differing(folder).altered
    known = both(folder)
    path.unlink()
    for one in known:
        assert one.differing(folder) == ([], [name])


def test_a_file_that_can_not_be_looked_at_is_not_said_to_be_gone(folder, tmp_path):
    """Of what a disk or a server does not answer for, nobody knows whether it is there."""
    known = both(folder)[0]
    # In place of a folder an open file: each look into it fails, but not because nothing is there.
    file = os.open(tmp_path / "0", os.O_RDONLY)
    try:
        found = known.differing(file)
    finally:
        os.close(file)
    assert (len(found.altered), found.gone) == (MANY + 1, [])


def test_marks_come_back_from_columns():
    rows = [(0o100644, 1, 2, 3, 4), (0o120777, INODE, 0, -1, 1_700_000_000_999_999_999)]
    marks = array("q", [number for row in rows for number in row])
    assert of_columns(to_columns(marks)) == marks
    assert len(marks) == COLUMNS * len(rows)


if sys.platform == "linux":

    def test_an_inode_with_the_highest_bit_is_known_again(folder):
        """As an overlay file system numbers them."""
        columns = both(folder)[1]
        look = columns._stats.look

        def high(names):
            found, failed = look(names)
            found[1] = array("q", [number | -(1 << 63) for number in found[1]])
            return found, failed

        columns._stats.look = high
        assert columns.differing(folder) == ([], [])
