"""Mending: indexes that were damaged or lost are made again from the segments; many are merged into few."""

from __future__ import annotations

from collections.abc import Sequence

from takeback_acts.files.packs import recovering, runs
from takeback_acts.files.packs.catalog import Catalog, Volume
from takeback_acts.files.packs.index import Index


def own_index(catalog: Catalog, volume: Volume) -> Index | None:
    """A sealed segment's own index, made again where damaged; None where it can't be. Raises OSError."""
    with catalog.mending:
        found = Index.open(volume.index_path)
        if found is not None and found.sound():
            return found
        if volume.number not in catalog.volumes or not recovering.rebuild(catalog, volume):
            return None
        made = Index.open(volume.index_path)
        if made is not None:
            # The slots in a run are those of the index before.
            _split(catalog, [one for one in catalog.indexes if volume.number in one.about.segments])
        return made


def mend(catalog: Catalog) -> bool:
    """Makes every index that look-ups use whole; whether any had to be. Reads each once. Raises OSError."""
    if all(one.sound() for one in catalog.indexes):
        return False
    with catalog.mending:
        bad = [one for one in catalog.indexes if not one.sound()]
        mended = False
        for number in {number for one in bad for number in one.about.segments}:
            volume = catalog.volumes.get(number)
            mended |= volume is not None and own_index(catalog, volume) is not None
        _split(catalog, [one for one in catalog.indexes if one.suspect and one.path.suffix == runs.SUFFIX])
        return mended


def merge(catalog: Catalog) -> None:
    """Merges indexes as long as there are many of one size. Raises OSError."""
    with catalog.mending:
        while parts := runs.due([one for one in catalog.indexes if not one.suspect]):
            run = runs.merge(catalog.folder, catalog.number(), parts, catalog.volumes)
            if run is None:
                mend(catalog)
            else:
                catalog.add_indexes([run], parts)
                discard(parts)


def discard(indexes: Sequence[Index]) -> None:
    """Removes the files of runs that are not used any more; a segment's own index stays."""
    for one in indexes:
        if one.path.suffix == runs.SUFFIX:
            one.path.unlink(missing_ok=True)


def _split(catalog: Catalog, bad: Sequence[Index]) -> None:
    """Lets look-ups ask the segments' own indexes instead."""
    with catalog.lock:
        numbers = {number for one in bad for number in one.about.segments if number in catalog.volumes}
        owns = (Index.open(catalog.volumes[number].index_path) for number in sorted(numbers))
        catalog.add_indexes([own for own in owns if own is not None], bad)
    discard(bad)
