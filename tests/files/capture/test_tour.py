"""The way between folders: it never ends in another one than was meant."""

import os

import pytest

from takeback_acts.files.capture.node import Node
from takeback_acts.files.capture.scan import Step, scan
from takeback_acts.files.capture.tour import Tour
from takeback_acts.files.capture.way import MovedError

DEPTH = 200


@pytest.fixture
def chain(tmp_path):
    """Nodes of folders, each in the one before, whose inode is known to the test."""
    nodes, here = [Node(None, b"")], tmp_path
    for number in range(DEPTH):
        here = here / f"{number}"
        here.mkdir()
        nodes.append(Node(nodes[-1], b"%d" % number))
    return nodes


@pytest.fixture
def root(tmp_path):
    handle = os.open(tmp_path, os.O_RDONLY)
    yield handle
    os.close(handle)


def inode(tmp_path, depth):
    return os.stat(os.path.join(tmp_path, *map(str, range(depth)))).st_ino


@pytest.mark.parametrize(
    "path", [(200, 0, 200), (200, 100, 150, 3, 64, 65, 66, 1), (5, 199, 134, 135, 136, 0, 70)]
)
def test_any_way_leads_to_the_folder_that_was_meant(tmp_path, chain, root, path):
    tour = Tour(root, chain[0])
    for depth in path:
        assert os.fstat(tour.to(chain[depth])).st_ino == inode(tmp_path, depth)
    tour.close()


def test_a_way_back_that_is_gone_is_noticed_and_other_ways_are_still_found(tmp_path, chain, root):
    tour = Tour(root, chain[0])
    tour.to(chain[DEPTH])
    for depth in (100, 5):
        os.rename(os.path.join(tmp_path, *map(str, range(depth))), tmp_path / f"moved{depth}")
    with pytest.raises(MovedError):
        tour.to(chain[99])
    assert os.fstat(tour.to(chain[3])).st_ino == inode(tmp_path, 3)
    with pytest.raises(FileNotFoundError):
        tour.to(chain[60])
    os.rename(tmp_path / "moved5", os.path.join(tmp_path, *map(str, range(5))))
    assert os.fstat(tour.to(chain[99])).st_ino == inode(tmp_path, 99)
    tour.close()


def test_a_tour_leaves_no_descriptor_open(tmp_path, chain, root):
    before = len(os.listdir("/dev/fd"))
    tour = Tour(root, chain[0])
    for depth in (DEPTH, 20, 90, DEPTH):
        tour.to(chain[depth])
    assert len(os.listdir("/dev/fd")) < before + 100
    tour.close()
    assert len(os.listdir("/dev/fd")) == before


def test_a_scan_tells_of_every_folder_that_it_could_not_enter(tmp_path, chain, root):
    for number, node in enumerate(chain):
        node.number = number
    steps = [Step(node.number, depth, node.name, True) for depth, node in enumerate(chain)]
    os.rename(os.path.join(tmp_path, *map(str, range(120))), tmp_path / "moved")
    found = list(scan(root, steps, lambda number: chain[number].known()))
    assert [difference.number for difference in found] == list(range(121))
    assert [difference.number for difference in found if difference.error] == [120]
