"""A full disk at every write, and a folder that can't be used: what was kept stays, and it goes on later."""

import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from takeback import faults
from takeback.errors import TakebackError
from takeback_acts.files.packs.keeping import Lease
from takeback_acts.files.packs.settings import PackSettings
from takeback_acts.files.packs.vault import Vault

OWNER = "mcp:agent:juno"


@contextmanager
def _no_file_beyond(size):
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)


def _code(work):
    with pytest.raises(TakebackError) as error:
        work()
    return error.value.code


@pytest.mark.parametrize("room", [0, 10, 56, 60, 400, 800, 1200])
def test_no_room_for_a_segment(shelf, blobs, room):
    with shelf.open() as vault:
        first = shelf.keep(vault, *blobs(2))
        stats, disk = vault.stats(), shelf.on_disk()
        with _no_file_beyond(room):
            code = _code(lambda: shelf.keep(vault, *blobs(9, start=2), b"large" * 1000))
            assert code == "blobs.no_space"
            again = shelf.keep(vault, *blobs(2))  # what is there can still be named
        assert again == first
        assert [vault.reader.read(one) for one in first] == blobs(2)
        assert list((shelf.folder / "incoming").iterdir()) == []
        if vault.stats().blobs == 2:
            assert (vault.stats(), shelf.on_disk()) == (stats, disk)
        assert vault.stats().bytes == shelf.on_disk()
        every = shelf.keep(vault, *blobs(11), b"large" * 1000)
    with shelf.open() as vault:
        assert [vault.reader.read(one) for one in every[:11]] == blobs(11)
        assert vault.stats().bytes == shelf.on_disk()


def _failing_at(number, passed):
    def fail(name):
        passed.append(name)
        if len(passed) == number:
            raise OSError(28, "No space left on device")

    return fail


def _tell(vault, shelf, blobs, early):
    shelf.keep(vault, *blobs(20), b"large" * 1000)
    live = shelf.keep(vault, *blobs(15, start=10))
    shelf.sweep(vault, [*live, *early])
    return live


def _places(shelf, blobs):
    """Where a failure can come: of each kind the first two occasions and the last."""
    passed: list[str] = []
    with shelf.open() as vault:
        early = shelf.keep(vault, *blobs(3, start=100))
        remove = faults.install(_failing_at(0, passed))
        _tell(vault, shelf, blobs, early)
        remove()
    every = {name: [at for at, one in enumerate(passed, 1) if one == name] for name in passed}
    return sorted({at for found in every.values() for at in (*found[:2], found[-1])})


def test_a_failure_at_any_step_is_told_and_nothing_that_was_kept_is_lost(shelf, blobs, tmp_path):
    """Disk errors wherever something is written, synced, renamed or removed."""
    told = set()
    shelf.folder = tmp_path / "0"
    places = _places(shelf, blobs)
    assert len(places) > 25
    for number in places:
        shelf.folder = tmp_path / str(number)
        with shelf.open() as vault:
            early = shelf.keep(vault, *blobs(3, start=100))
            remove = faults.install(_failing_at(number, []))
            try:
                _tell(vault, shelf, blobs, early)
            except TakebackError as error:
                told.add(error.code)
            finally:
                remove()
            assert [vault.reader.read(one) for one in early] == blobs(3, start=100)
            live = [*_tell(vault, shelf, blobs, early), *early]
            assert [vault.reader.read(one) for one in live] == [*blobs(15, start=10), *blobs(3, start=100)]
        with shelf.open() as vault:
            assert [vault.reader.read(one) for one in live[:15]] == blobs(15, start=10)
            shelf.sweep(vault, live)
            assert vault.stats().blobs == 18
            assert vault.stats().bytes == shelf.on_disk()
    assert told == {"blobs.no_space"}


def test_a_sync_that_fails_is_not_taken_for_durable(shelf, blobs, monkeypatch):
    from takeback_acts.files.packs import disk

    with shelf.open(segment=1 << 20) as vault:
        kept = shelf.keep(vault, *blobs(2))

        def broken(handle):
            raise OSError(5, "Input/output error")

        with monkeypatch.context() as patched:
            patched.setattr(disk, "sync", broken)
            assert _code(lambda: shelf.keep(vault, *blobs(2, start=2))) == "blobs.io"
            assert not any(vault.present(bytes.fromhex(one)) for one in _names(blobs(2, start=2)))
        kept += shelf.keep(vault, *blobs(2, start=2))
        assert [vault.reader.read(one) for one in kept] == blobs(4)
        assert vault.stats().bytes == shelf.on_disk()


def _names(data):
    from hashlib import sha256

    return [sha256(one).hexdigest() for one in data]


def test_whoever_waits_for_a_blob_that_another_failed_to_write_hears_of_it(shelf, blobs):
    """Two leases, one record on its way: neither may think that it is there."""
    with shelf.open() as vault, Lease(vault, OWNER) as one, Lease(vault, "cli:person") as other:
        one.keep(blobs(1)[0])
        other.keep(blobs(1)[0])
        with _no_file_beyond(0):
            for lease in (one, other):
                with pytest.raises(TakebackError):
                    lease.settle()
        assert vault.stats().owners == {}
        shelf.keep(vault, *blobs(1))


def test_a_sweep_gives_room_back_on_a_full_disk(shelf, blobs):
    with shelf.open() as vault:
        digests = shelf.keep(vault, *blobs(40), b"large" * 1000)
        shelf.keep(vault, *blobs(1, start=99))
        full = shelf.on_disk()
        with _no_file_beyond(1500):  # room for an index, none for a segment
            live = digests[35:40]
            assert _code(lambda: shelf.sweep(vault, live)) == "blobs.no_space"
        assert shelf.on_disk() < full - 10_000
        assert [vault.reader.read(one) for one in live] == blobs(5, start=35)
        assert vault.stats().bytes == shelf.on_disk()


def test_a_folder_that_is_none(shelf):
    shelf.folder.write_text("a file")
    assert _code(lambda: Vault(shelf.folder, PackSettings()).open()) == "blobs.io"


UNREADABLE = """
import os, sys
from pathlib import Path
from takeback.errors import TakebackError
from takeback_acts.files.packs.settings import PackSettings
from takeback_acts.files.packs.settings import PackSettings
from takeback_acts.files.packs.vault import Vault
if os.geteuid() == 0:
    os.setegid(65534), os.seteuid(65534)
try:
    Vault(Path(sys.argv[1]), PackSettings()).open()
except TakebackError as error:
    print(error.code, error.kind)
"""


@pytest.mark.parametrize("what", ["folder", "segment", "index"])
def test_a_folder_that_may_not_be_read(shelf, blobs, what):
    with shelf.open() as vault:
        shelf.keep(vault, *blobs(30))
    paths = {"folder": shelf.folder, "segment": shelf.files(".pack")[-1], "index": shelf.files(".idx")[0]}
    for path in [shelf.folder, *shelf.folder.rglob("*")]:
        path.chmod(0o777)
    paths[what].chmod(0)
    for parent in list(shelf.folder.parents)[:3]:
        parent.chmod(0o755)
    source = os.pathsep.join(path for path in sys.path if path)
    ran = subprocess.run(
        [sys.executable, "-c", UNREADABLE, str(shelf.folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    )
    paths[what].chmod(0o700)
    assert ran.stdout.split() == ["blobs.denied", "refused"], ran.stderr
