"""A vault over a fresh folder, small enough that a few blobs fill segments."""

import os
from contextlib import contextmanager
from hashlib import sha256

import pytest

from takeback_acts.files.packs.keeping import Lease
from takeback_acts.files.packs.settings import PackSettings
from takeback_acts.files.packs.vault import Vault

OWNER = "mcp:agent:juno"


class Shelf:
    """A folder with a vault, opened as often as a test likes; its clock stands still."""

    def __init__(self, folder):
        self.folder = folder
        self.now = 1_700_000_000.0
        self.settings = {"small": 1000, "segment": 4000, "records": 64}

    @contextmanager
    def open(self, **settings):
        vault = Vault(self.folder, PackSettings(**{**self.settings, **settings}), lambda: self.now)
        vault.open()
        try:
            yield vault
        finally:
            vault.close()

    def keep(self, vault, *blobs, owner=OWNER):
        with Lease(vault, owner) as lease:
            digests = lease.keep_all(blobs)
            lease.settle()
        return digests

    def sweep(self, vault, live, *, grace=0, dry_run=False, share=1.0, after=10):
        return vault.sweep(live, self.now + after, grace, dry_run=dry_run, share=share)

    def files(self, *suffixes):
        return sorted(path for path in self.folder.iterdir() if path.suffix in suffixes)

    def on_disk(self):
        """Bytes of all segments and of all blobs apart."""
        large = self.folder.glob("large/*/*")
        return sum(path.stat().st_size for path in [*self.files(".pack"), *large])


@pytest.fixture
def shelf(tmp_path):
    return Shelf(tmp_path / "packs")


@pytest.fixture
def blobs():
    """So many blobs of a size, all different."""

    def make(count, size=300, *, start=0):
        return [f"{number:08d}".encode() + b"x" * (size - 8) for number in range(start, start + count)]

    return make


@pytest.fixture
def name():
    return lambda data: sha256(data).hexdigest()


@pytest.fixture
def opened(tmp_path):
    """A descriptor of a file with these bytes."""
    handles: list[int] = []

    def make(data):
        path = tmp_path / f"file-{len(handles)}"
        path.write_bytes(data)
        handles.append(os.open(path, os.O_RDONLY))
        return handles[-1]

    yield make
    for handle in handles:
        os.close(handle)
