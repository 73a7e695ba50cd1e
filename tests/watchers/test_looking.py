"""Looking: what lies in a folder, and what there is to listen to, whatever the system refuses."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from takeback_acts.watchers.looking import files, ground
from tests.kernel.unprivileged import as_nobody


def _paths(*roots):
    return [found.path for found in ground(str(root) for root in roots)]


def test_a_root_that_is_there_is_listened_to_itself(tmp_path):
    (tmp_path / "a").mkdir()
    assert _paths(tmp_path / "a", tmp_path / "a") == [str(tmp_path / "a")]


def test_what_there_is_on_the_way_to_a_root_is_listened_to(tmp_path):
    (tmp_path / "file").write_text("x")
    assert _paths(tmp_path / "far" / "away", tmp_path / "file") == [str(tmp_path)]


def test_a_folder_in_the_place_of_another_is_another_ground(tmp_path):
    (tmp_path / "a").mkdir()
    before = ground([str(tmp_path / "a")])
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "a").mkdir()
    assert ground([str(tmp_path / "a")]) != before


def test_only_files_that_concern_a_rule_are_found(tmp_path):
    for name in ("a.pdf", "b.txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "c.pdf").mkdir()
    (tmp_path / "d.pdf").symlink_to("a.pdf")
    os.mkfifo(tmp_path / "e.pdf")
    assert list(files(str(tmp_path), lambda name: name.endswith(".pdf"))) == ["a.pdf"]


@pytest.fixture
def locked():
    """A folder that may not be read, in one that may."""
    with as_nobody():
        folder = Path(tempfile.mkdtemp(prefix="takeback-test-"))
        (folder / "in").mkdir(mode=0)
        yield folder / "in"
        (folder / "in").chmod(0o700)
        shutil.rmtree(folder)


def test_a_root_that_may_not_be_read_says_so_and_deafens_nobody(locked):
    assert files(str(locked), bool) == "Permission denied"
    assert _paths(locked) == [str(locked.parent)]
