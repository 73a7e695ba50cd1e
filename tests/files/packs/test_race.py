"""Writers, readers and sweeps at once: a blob whose row is there can be read, at every moment."""

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from takeback.errors import ConflictError
from takeback_acts.files.packs.keeping import Lease
from takeback_acts.files.packs.pins import Pins
from tests.files.packs import contender

OWNER = "mcp:agent:juno"
POOL = 60


def _content(number):
    return b"%04d" % number * (400 if number % 6 == 0 else 50)


class Rows:
    """Rows that name blobs, each durable as soon as it is added."""

    def __init__(self):
        self.lock = threading.Lock()
        self.named = {}

    def add(self, digest):
        with self.lock:
            self.named[digest] = self.named.get(digest, 0) + 1

    def remove(self, digest):
        with self.lock:
            self.named[digest] -= 1
            if not self.named[digest]:
                del self.named[digest]

    def live(self):
        with self.lock:
            return list(self.named)


def _write(vault, rows, seed, enough, failures):
    try:
        luck = random.Random(seed)
        while not enough.is_set():
            contents = [_content(luck.randrange(POOL)) for _ in range(luck.randrange(1, 4))]
            with Lease(vault, OWNER) as lease:
                digests = lease.keep_all(contents)
                lease.settle()
                for digest in digests:
                    rows.add(digest)
            for digest, content in zip(digests, contents, strict=True):
                assert vault.reader.read(digest) == content
                rows.remove(digest)
    except BaseException as error:
        failures.append(error)
        enough.set()


def _sweep(vault, shelf, rows, enough):
    swept = 0
    while swept < 150 and not enough.is_set():
        vault.catalog.pins.begin()
        try:
            swept += shelf.sweep(vault, rows.live(), share=0.8).deleted
        finally:
            vault.catalog.pins.end()
    enough.set()


def _race(vault, shelf):
    """Until many blobs have been swept, or one was lost; what the writers ran into."""
    rows, enough = Rows(), threading.Event()
    failures: list[BaseException] = []
    writers = [
        threading.Thread(target=_write, args=(vault, rows, seed, enough, failures)) for seed in range(4)
    ]
    for writer in writers:
        writer.start()
    _sweep(vault, shelf, rows, enough)
    for writer in writers:
        writer.join()
    return failures


def test_no_sweep_takes_what_a_writer_is_about_to_name(shelf):
    with shelf.open(small=300) as vault:
        assert _race(vault, shelf) == []
        shelf.sweep(vault, [])
        assert vault.stats().owners == {}
        assert vault.stats().bytes == shelf.on_disk() == 0


def test_the_race_is_one_that_a_store_without_pins_loses(shelf, monkeypatch):
    """So that the test above means something."""
    monkeypatch.setattr(Pins, "held", lambda *_: False)
    with shelf.open(small=300) as vault:
        assert any(_race(vault, shelf) for _ in range(20))


def test_another_process_is_told_that_the_store_is_in_use(shelf):
    with shelf.open():
        with pytest.raises(ConflictError) as error:
            with shelf.open():
                pass
        assert error.value.code == "blobs.locked"
    with shelf.open():
        pass


def test_processes_in_turns_and_some_killed_lose_no_named_blob(shelf, tmp_path):
    """Each takes its turn as soon as the lock is free, however the one before ended."""
    source = os.pathsep.join(path for path in sys.path if path)
    started = [
        subprocess.Popen(
            [sys.executable, contender.__file__, str(tmp_path), str(number)],
            env={**os.environ, "PYTHONPATH": source},
            stderr=subprocess.PIPE,
        )
        for number in range(4)
    ]
    ended = []
    for process in started:
        _, words = process.communicate(timeout=60)
        assert b"Traceback" not in words, words.decode()
        ended.append(process.returncode)
    assert ended == [0, -signal.SIGKILL, 0, -signal.SIGKILL]
    named = Path(tmp_path / "rows").read_text().split()
    with shelf.open() as vault:
        assert named
        assert {len(vault.reader.read(digest)) > 0 for digest in named} == {True}
        assert vault.check().damaged == []
