"""`takeback` over homes of their own."""

from collections.abc import Iterator

import pytest

from tests.cli.running import Cli, over_a_home


@pytest.fixture
def cli() -> Iterator[Cli]:
    """`takeback` over a new home; a daemon that a test leaves behind is stopped."""
    yield from over_a_home()


@pytest.fixture(scope="module")
def served() -> Iterator[Cli]:
    """`takeback` over a home that a daemon serves, shared by a file's tests."""
    for cli in over_a_home():
        daemon = cli.serve()
        assert daemon.ready["ok"], daemon.ready
        yield cli
        assert daemon.end() == 0, daemon.log.read_text()
