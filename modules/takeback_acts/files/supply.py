"""Supply: where worker threads get the bytes they write from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from takeback_acts.files.packs.reading import Reader
from takeback_acts.files.reading import write_all

Fetch = Callable[[Collection[str]], dict[str, bytes]]

_PORTION = 50


class Supply:
    """Bytes by digest: those at hand, those that are rows in portions by `fetch`, all others from the packs.

    Rows are asked first: a blob that is moved meanwhile is in the packs before its row goes. Thread-safe.
    """

    def __init__(self, packs: Reader, at_hand: Mapping[str, bytes], fetch: Fetch) -> None:
        self._packs = packs
        self._at_hand = dict(at_hand)
        self._fetch = fetch
        # What was asked for at once, and the rows of it; replaced as a whole.
        self._portion: tuple[set[str], dict[str, bytes]] = (set(), {})

    def bring(self, digests: Collection[str]) -> None:
        """Fetches the rows among these at once; what an earlier call fetched is let go."""
        asked = {sha256 for sha256 in digests if sha256 not in self._at_hand}
        self._portion = (asked, self._fetch(asked) if asked else {})

    def write(self, sha256: str, target: int) -> None:
        """Writes a blob into an open, empty file.

        Raises `files.blob_missing`, `files.blob_corrupt`, `blobs.denied`, `blobs.io` and the file's OSErrors.
        """
        data = self._small(sha256)
        if data is None:
            self._packs.copy_to(sha256, target)
        else:
            write_all(target, data)

    def read(self, sha256: str) -> bytes:
        """A blob's bytes; raises what `write` does for the blob."""
        data = self._small(sha256)
        return self._packs.read(sha256) if data is None else data

    def require(self, digests: Collection[str]) -> None:
        """Raises what `read` would raise for the first of these that can't be written.

        Their bytes are read through: a preview must not promise what the undo would then fail at.
        """
        wanted = [sha256 for sha256 in digests if sha256 not in self._at_hand]
        for start in range(0, len(wanted), _PORTION):
            portion = wanted[start : start + _PORTION]
            asked, brought = self._portion
            rows = brought if asked.issuperset(portion) else self._fetch(portion)
            for sha256 in portion:
                if sha256 not in rows:
                    self._packs.require(sha256)

    def _small(self, sha256: str) -> bytes | None:
        if sha256 in self._at_hand:
            return self._at_hand[sha256]
        asked, rows = self._portion
        return rows.get(sha256) if sha256 in asked else self._fetch([sha256]).get(sha256)
