"""A person's database on each engine, with the tables that `persons` describes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rows.proof.persons import Person


@pytest.fixture(params=["sqlite", "postgresql"])
def person(request, tmp_path) -> Iterator[Person]:
    """Somebody's database, made and filled."""
    if request.param == "sqlite":
        made = Person("sqlite", str(tmp_path), "person")
        made.create()
        yield made
        return
    server = request.getfixturevalue("postgres")
    made = Person("postgresql", str(server.socket), server.fresh())
    made.create()
    yield made
    server.drop(made.database)
