"""The home: private folders where client and daemon both look."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from takeback.errors import TakebackError
from takeback.home import Home
from tests.kernel.unprivileged import as_nobody, readonly_folder


def _mode(path):
    return path.stat().st_mode & 0o777


def _long(tmp_path):
    return tmp_path / ("a-rather-long-name" * 5)


@pytest.fixture
def long_home(tmp_path):
    """A home under a path that no socket fits into."""
    home = Home.at(_long(tmp_path))
    yield home
    if home.runtime.is_symlink():
        home.runtime.unlink()
    elif home.runtime.exists():
        home.runtime.rmdir()


def test_one_folder_holds_everything(tmp_path):
    home = Home.at(tmp_path / "h")
    assert {folder.parent for folder in home} == {tmp_path / "h"}
    assert len(set(home)) == 4
    assert home.database.parent == home.data
    assert home.settings == home.config / "takeback.toml"
    assert home.socket.parent == home.runtime
    assert home.lock.parent == home.state


def test_a_relative_path_is_taken_from_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Home.at("h") == Home.at(tmp_path / "h")


def test_the_variable_moves_everything(tmp_path):
    assert Home.of({"TAKEBACK_HOME": str(tmp_path / "h")}) == Home.at(tmp_path / "h")
    own = Home.of({})
    assert own == Home.of({"TAKEBACK_HOME": ""})
    assert own.database.name == "takeback.db"
    assert "takeback" in str(own.data)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_the_folders_are_private_under_any_umask(tmp_path, umask):
    home = Home.at(tmp_path / "above" / "h")
    before = os.umask(umask)
    try:
        home.create()
    finally:
        os.umask(before)
    for folder in (*home, tmp_path / "above" / "h", tmp_path / "above"):
        assert _mode(folder) == 0o700


def test_who_listens_on_nothing_leaves_no_folder_for_sockets(tmp_path):
    home = Home.at(tmp_path / "h")
    home.create(sockets=False)
    assert [folder.exists() for folder in home] == [True, True, True, False]


def test_folders_that_others_could_read_are_shut_and_others_left_alone(tmp_path):
    home = Home.at(tmp_path / "h")
    for folder in (home.data, home.runtime):
        folder.mkdir(parents=True)
        folder.chmod(0o777)
    (tmp_path / "h").chmod(0o755)
    home.create()
    home.create()
    assert _mode(home.data) == _mode(home.runtime) == 0o700
    assert _mode(tmp_path / "h") == 0o755


def test_the_data_folder_may_be_a_link_to_a_larger_disk(tmp_path):
    home = Home.at(tmp_path / "h")
    (tmp_path / "disk").mkdir(0o755)
    (tmp_path / "h").mkdir()
    home.data.symlink_to(tmp_path / "disk")
    home.create()
    assert _mode(tmp_path / "disk") == 0o700


def test_a_runtime_folder_that_is_a_link_is_refused_and_its_target_left_alone(tmp_path):
    home = Home.at(tmp_path / "h")
    (tmp_path / "trap").mkdir(0o755)
    (tmp_path / "h").mkdir()
    home.runtime.symlink_to(tmp_path / "trap")
    with pytest.raises(TakebackError) as refused:
        home.create()
    assert refused.value.code == "home.unsafe"
    assert str(home.runtime) in refused.value.message
    assert _mode(tmp_path / "trap") == 0o755


def test_a_folder_of_somebody_else_is_refused():
    roots = Path("/usr")
    before = _mode(roots)
    with as_nobody(), pytest.raises(TakebackError) as refused:
        Home(roots, roots, roots, roots).create()
    assert refused.value.code == "home.unsafe"
    assert _mode(roots) == before


def test_a_socket_fits_even_under_a_long_path_and_is_found_from_anywhere(tmp_path, long_home, monkeypatch):
    assert len(os.fsencode(long_home.socket)) <= 100
    long_home.create()
    assert _mode(long_home.runtime) == 0o700
    listening = socket.socket(socket.AF_UNIX)
    try:
        listening.bind(str(long_home.socket))
        long_home.socket.unlink()
    finally:
        listening.close()
    elsewhere = subprocess.run(
        [
            sys.executable,
            "-c",
            f"from takeback.home import Home; print(Home.at({str(_long(tmp_path))!r}).socket)",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={
            "PYTHONPATH": os.pathsep.join(sys.path),
            "XDG_RUNTIME_DIR": "/elsewhere",
            "TMPDIR": "/elsewhere",
        },
    )
    assert elsewhere.stdout.strip() == str(long_home.socket)
    assert Home.at(_long(tmp_path).parent / ("another-long-name-altogether" * 4)).socket != long_home.socket


def test_a_link_to_a_home_is_the_same_home(tmp_path, long_home):
    link = tmp_path / "l"
    link.symlink_to(_long(tmp_path))
    assert Home.at(link) == long_home


def test_the_platforms_folders_through_a_link_have_the_same_socket(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    sockets = set()
    for name in ("real", "link"):
        monkeypatch.setenv("HOME", str(tmp_path / name))
        sockets.add(Home.of({}).socket)
    assert len(sockets) == 1


def test_a_trap_laid_at_the_short_path_is_refused(tmp_path, long_home):
    long_home.runtime.symlink_to(tmp_path)
    with pytest.raises(TakebackError) as refused:
        long_home.create()
    assert refused.value.code == "home.unsafe"


def test_a_home_that_cannot_be_written_is_said_so():
    with readonly_folder() as folder:
        with pytest.raises(TakebackError) as refused:
            Home.at(folder / "h").create()
        assert list(folder.iterdir()) == []
    assert refused.value.code == "home.readonly"
    assert str(folder) in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize("name", ["h", "h/data"])
def test_a_file_in_the_way_is_named_and_left_alone(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    with pytest.raises(TakebackError) as refused:
        Home.at(tmp_path / "h").create()
    assert refused.value.code == "home.unusable"
    assert str(path) in refused.value.message
    assert path.read_text() == "mine"


def test_finding_a_home_imports_nothing_heavy(tmp_path):
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, takeback.home as h; h.Home.of({'TAKEBACK_HOME': '/h'}); print(*sys.modules)",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path(__file__).parent,
    )
    heavy = {"asyncio", "pydantic", "aiosqlite", "sqlite3", "platformdirs", "dataclasses", "inspect"}
    assert heavy & set(found.stdout.split()) == set()
