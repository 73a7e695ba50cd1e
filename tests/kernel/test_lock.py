"""The lock: one process owns a home, and a dead one doesn't."""

import os
import signal
import subprocess
import sys

import pytest

from takeback.errors import TakebackError
from takeback.home import Home
from takeback.lock import HomeLock
from tests.kernel.unprivileged import readonly_folder

_OWNER = """
import sys
from takeback.home import Home
from takeback.lock import HomeLock

sys.argv = ["/usr/bin/takeback", "serve", "--token=secret"]
lock = HomeLock.acquire(Home.at(%r))
print("owned", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path):
    made = Home.at(tmp_path / "h")
    made.create()
    return made


@pytest.fixture
def owner(home, tmp_path):
    """Another process that owns the home."""
    child = subprocess.Popen(
        [sys.executable, "-c", _OWNER % str(tmp_path / "h")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "owned\n"
        yield child
        child.kill()


def test_a_second_process_is_told_who_owns_the_home(home, owner):
    with pytest.raises(TakebackError) as refused:
        HomeLock.acquire(home)
    error = refused.value
    assert error.code == "home.locked"
    assert error.data["pid"] == owner.pid
    assert error.data["command"] == "takeback serve"
    assert error.data["since"].endswith("Z")
    assert str(owner.pid) in error.message
    assert "secret" not in error.message + home.lock.read_text()


def test_the_lock_of_a_killed_owner_is_taken_over(home, owner):
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    with HomeLock.acquire(home):
        with pytest.raises(TakebackError) as refused:
            HomeLock.acquire(home)
        assert refused.value.data["pid"] == os.getpid()


def test_one_process_cannot_own_a_home_twice_and_may_own_it_again(home):
    with HomeLock.acquire(home) as lock:
        with pytest.raises(TakebackError) as refused:
            HomeLock.acquire(home)
        assert refused.value.code == "home.locked"
        lock.release()
        lock.release()
        with HomeLock.acquire(home):
            pass
    assert home.lock.read_text() == ""  # it stays, and names nobody


def test_an_owner_that_has_not_signed_yet_is_another_process(home):
    with HomeLock.acquire(home):
        home.lock.write_text("")
        with pytest.raises(TakebackError) as refused:
            HomeLock.acquire(home)
    assert "another process" in refused.value.message
    assert refused.value.data == {}


def test_deleting_the_file_does_not_give_the_home_to_a_second_owner(home):
    with HomeLock.acquire(home):
        home.lock.unlink()
        with pytest.raises(TakebackError) as refused:
            HomeLock.acquire(home)
    assert refused.value.code == "home.locked"


def test_the_file_is_shut_to_others(home):
    home.lock.touch()
    home.lock.chmod(0o666)
    with HomeLock.acquire(home):
        assert home.lock.stat().st_mode & 0o777 == 0o600


def test_a_link_in_place_of_the_file_is_not_followed(home, tmp_path):
    (tmp_path / "mine").write_text("mine")
    home.lock.symlink_to(tmp_path / "mine")
    with pytest.raises(TakebackError) as refused:
        HomeLock.acquire(home)
    assert refused.value.code == "home.unusable"
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_state_folder_that_cannot_be_written_is_said_so():
    with readonly_folder() as folder:
        with pytest.raises(TakebackError) as refused:
            HomeLock.acquire(Home(folder, folder, folder, folder))
    assert refused.value.code == "home.readonly"
