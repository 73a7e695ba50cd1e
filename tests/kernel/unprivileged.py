"""What a person without rights over a folder meets, also where the tests run as root."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65534


@contextmanager
def readonly_folder(*files: str, mode: int = 0o444) -> Iterator[Path]:
    """A folder that a user who isn't root can read and not write, with empty `files` of this mode."""
    # Not pytest's tmp_path: its parents are shut to everybody but the user who runs the tests.
    folder = Path(tempfile.mkdtemp(prefix="takeback-test-"))
    for name in files:
        (folder / name).touch()
        (folder / name).chmod(mode)
    folder.chmod(0o555)
    try:
        with as_nobody():
            yield folder
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Runs without root's rights, whoever runs the tests."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
