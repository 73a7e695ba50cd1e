"""Files with several names are one file again when they come back."""

import os

import pytest

from tests.files.test_commands import Running, sh

pytestmark = pytest.mark.anyio


@pytest.fixture
def linked(root):
    sh(root, "echo 1 > b; ln b c; mkdir -p d/e; ln b d/x; ln b d/e/y; echo other > other")
    return root


def names(root):
    """The names by the file that they are names of."""
    found: dict[int, list[str]] = {}
    for path in sorted(root.rglob("*")):
        if path.is_file():
            found.setdefault(path.stat().st_ino, []).append(str(path.relative_to(root)))
    return sorted(found.values())


@pytest.mark.parametrize(
    "script",
    [
        "echo new > b",
        "rm b",
        "rm c",
        "rm b c",
        "rm -r d",
        "rm -r b d",
        "rm -r b c d",
        "rm d/x; echo new > c",
        "rm b; echo new > b",
        "mv b z; rm -r d",
    ],
)
async def test_names_of_one_file_are_that_again(bench, linked, snapshot, script):
    before, files = names(linked), snapshot(linked)
    async with Running(bench.agent(), linked) as running:
        sh(linked, script)
    await bench.undo(running.ended.act)
    assert names(linked) == before
    assert snapshot(linked, times=False) == snapshot_without_times(files)


def snapshot_without_times(files):
    return {path: what[:-1] for path, what in files.items()}


async def test_a_name_that_was_changed_since_is_not_tied_to_what_comes_back(bench, linked):
    async with Running(bench.agent(), linked) as running:
        sh(linked, "rm b")
    sh(linked, "echo mine > c")
    await bench.undo(running.ended.act)
    assert (linked / "b").read_text() == "1\n"
    assert (linked / "c").read_text() == "mine\n"


async def test_a_name_outside_of_the_folder_is_told_of(bench, root):
    sh(root, "echo 1 > a; ln a ../outside; ln a b")
    async with Running(bench.agent(), root) as running:
        sh(root, "echo 2 > a")
    assert any(note.startswith(f"linked: {root / 'a'}") for note in running.ended.notes)
    await bench.undo(running.ended.act)
    assert (root / "a").read_text() == "1\n"
    assert (root.parent / "outside").read_text() == "2\n"
    assert os.stat(root / "a").st_nlink == 2


async def test_names_that_are_all_known_are_not_told_of(bench, linked):
    async with Running(bench.agent(), linked) as running:
        sh(linked, "echo 2 > b")
    assert running.ended.notes == []
