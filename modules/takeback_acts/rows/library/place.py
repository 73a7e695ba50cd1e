"""Place: what is known of one database, by all of a pool's connections."""

from __future__ import annotations

from dataclasses import dataclass

from takeback_acts.rows.tables import Catalog


@dataclass(slots=True)
class Place:
    """`catalog` is from the last look at the schema. `installed` has its triggers for certain: whoever put
    them there has committed. `beginning` is the statement that an act on such a catalog begins with."""

    catalog: Catalog | None = None
    installed: Catalog | None = None
    beginning: tuple[Catalog, str] | None = None
