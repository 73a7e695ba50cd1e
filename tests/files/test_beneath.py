"""No path leads out of a folder through a link, whenever it is put there, nor to what could block or act."""

import os
import socket
import threading

import pytest

from takeback.errors import ConflictError, NotFoundError, RefusedError, TakebackError
from takeback_acts.files import beneath
from takeback_acts.files.beneath import Home


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    return Home([folder])


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("secret")
    return folder


def _code(path, home):
    with pytest.raises(TakebackError) as error, beneath.spot(os.fsencode(path), home) as spot:
        os.close(beneath.open_file(spot.folder, spot.name, spot.path))
    return error.value.code


def test_a_file_is_opened_in_its_folder(root, home):
    (root / "a").write_text("ok")
    with beneath.spot(os.fsencode(root / "a"), home) as spot:
        handle = beneath.open_file(spot.folder, spot.name, spot.path)
        assert os.read(handle, 9) == b"ok"
        os.close(handle)


def test_a_link_in_the_middle_leads_nowhere(root, home, outside):
    (root / "way").symlink_to(outside)
    assert _code(root / "way" / "secret", home) == "files.link"


def test_a_link_at_the_end_leads_nowhere(root, home, outside):
    (root / "way").symlink_to(outside / "secret")
    assert _code(root / "way", home) == "files.link"


def test_what_does_not_exist_below_a_linked_folder_is_refused_too(root, home, outside):
    (root / "way").symlink_to(outside)
    with pytest.raises(RefusedError), beneath.spot(os.fsencode(root / "way" / "new" / "file"), home):
        pass
    assert sorted(os.listdir(outside)) == ["secret"]


def test_a_link_that_stays_inside_is_refused_as_well(root, home):
    (root / "d").mkdir()
    (root / "way").symlink_to("d")
    assert _code(root / "way" / "x", home) == "files.link"


def test_a_link_is_seen_as_itself(root, home):
    (root / "way").symlink_to("nowhere")
    with beneath.spot(os.fsencode(root / "way"), home) as spot:
        assert os.readlink(spot.name, dir_fd=spot.folder) == b"nowhere"


def test_a_missing_folder_and_a_file_as_folder_have_their_own_codes(root, home):
    (root / "file").write_text("x")
    with pytest.raises(NotFoundError), beneath.spot(os.fsencode(root / "no" / "x"), home):
        pass
    with pytest.raises(ConflictError) as error, beneath.spot(os.fsencode(root / "file" / "x"), home):
        pass
    assert error.value.code == "files.not_folder"


def test_pipes_sockets_and_devices_are_never_opened(root, home):
    os.mkfifo(root / "pipe")
    assert _code(root / "pipe", home) == "files.special"
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(root)  # a socket's path is short
        try:
            listener.bind("sock")
        finally:
            os.chdir(here)
        assert _code(root / "sock", home) == "files.special"
    assert _code("/dev/null", home) == "files.special"


def test_a_link_of_proc_is_a_link(home):
    assert (
        _code("/dev/fd/0" if not os.path.isdir("/proc/self") else "/proc/thread-self/cwd/x", home)
        == "files.link"
    )


def test_a_folder_is_no_file(root, home):
    (root / "d").mkdir()
    assert _code(root / "d", home) == "files.is_folder"


def test_the_home_is_out_of_reach_by_every_name(tmp_path, root):
    own = tmp_path / "takeback"
    (own / "data").mkdir(parents=True)
    home = Home([own])
    for path in (own, own / "x", own / "data" / "x"):
        with pytest.raises(RefusedError) as error, beneath.spot(os.fsencode(path), home):
            pass
        assert error.value.code == "files.home"
    os.rename(own, root / "moved")  # by inode, so a new name does not help
    with pytest.raises(RefusedError) as error, beneath.spot(os.fsencode(root / "moved" / "data" / "x"), home):
        pass
    assert error.value.code == "files.home"


def test_a_part_of_the_home_that_is_not_made_yet_is_out_of_reach_too(tmp_path):
    home = Home([tmp_path / "later"])
    for path in (tmp_path / "later", tmp_path / "later" / "x"):
        with pytest.raises(RefusedError), beneath.spot(os.fsencode(path.resolve()), home):
            pass


def test_what_holds_the_home_is_told_apart_from_what_lies_beside_it(tmp_path):
    own = tmp_path / "a" / "home"
    own.mkdir(parents=True)
    home = Home([own])
    with pytest.raises(RefusedError):
        home.check_around(os.fsencode(tmp_path.resolve() / "a"))
    home.check_around(os.fsencode(tmp_path.resolve() / "a" / "hom"))


def test_descriptors_do_not_leak(root, home, outside):
    (root / "way").symlink_to(outside)
    (root / "a").write_text("x")
    before = len(os.listdir("/dev/fd"))
    for name in ("a", "way/x", "no/x", "a/x"):
        with pytest.raises(TakebackError), beneath.spot(os.fsencode(root / name), home) as spot:
            raise TakebackError("test.ends", spot.path.decode())
    assert len(os.listdir("/dev/fd")) == before


def test_a_folder_swapped_for_a_link_while_files_are_opened_never_leads_out(root, home, outside):
    (root / "d").mkdir()
    (root / "d" / "secret").write_text("inside")
    (root / "link").symlink_to(outside)
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            os.rename(root / "d", root / "aside")
            os.rename(root / "link", root / "d")
            os.rename(root / "d", root / "link")
            os.rename(root / "aside", root / "d")

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen: set[bytes | str] = set()
    try:
        for _ in range(3000):
            try:
                with beneath.spot(os.fsencode(root / "d" / "secret"), home) as spot:
                    handle = beneath.open_file(spot.folder, spot.name, spot.path)
                seen.add(os.read(handle, 9))
                os.close(handle)
            except TakebackError as error:
                seen.add(error.code)
    finally:
        stop.set()
        swapper.join()
    assert b"secret" not in seen
    assert b"inside" in seen
