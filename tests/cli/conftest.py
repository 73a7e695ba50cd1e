"""Homes with short names, so that their sockets lie within them."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import Cli


@pytest.fixture
def cli() -> Iterator[Cli]:
    """`takeback` over a new home; a daemon that a test leaves behind is stopped."""
    yield from _cli()


@pytest.fixture(scope="module")
def served() -> Iterator[Cli]:
    """`takeback` over a home that a daemon serves, shared by a file's tests."""
    for cli in _cli():
        daemon = cli.serve()
        assert daemon.ready["ok"], daemon.ready
        yield cli
        assert daemon.end() == 0, daemon.log.read_text()


def _cli() -> Iterator[Cli]:
    root = Path(tempfile.mkdtemp(prefix="tb-"))
    cli = Cli(root)
    try:
        yield cli
    finally:
        cli.stop()
        shutil.rmtree(root)
