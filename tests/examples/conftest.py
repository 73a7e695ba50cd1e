"""The database server that examples are tested with."""

from tests.rows.conftest import postgres

__all__ = ["postgres"]
