"""Supply: where a worker thread gets the bytes it writes from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from takeback_acts.files import failures
from takeback_acts.files.large import LargeBlobs
from takeback_acts.files.reading import write_all

Fetch = Callable[[Collection[str]], dict[str, bytes]]
Has = Callable[[Collection[str]], set[str]]

_PORTION = 50


class Supply:
    """Bytes by digest: those at hand, small ones from the store in portions, large ones from files."""

    def __init__(self, files: LargeBlobs, at_hand: Mapping[str, bytes], fetch: Fetch, has: Has) -> None:
        self._files = files
        self._at_hand = dict(at_hand)
        self._fetch = fetch
        self._has = has
        self._portion: dict[str, bytes] = {}

    def bring(self, digests: Collection[str]) -> None:
        """Fetches the small ones of these at once; what an earlier call fetched is let go."""
        wanted = [sha256 for sha256 in digests if sha256 not in self._at_hand]
        self._portion = self._fetch(wanted) if wanted else {}

    def write(self, sha256: str, target: int) -> None:
        """Writes a blob into an open file; raises `files.blob_missing`, `files.blob_corrupt` and OSErrors."""
        data = self._small(sha256)
        if data is None:
            self._files.copy_to(sha256, target)
        else:
            write_all(target, data)

    def read(self, sha256: str) -> bytes:
        """A blob's bytes; raises `files.blob_missing`, `files.blob_corrupt`."""
        data = self._small(sha256)
        return self._files.read(sha256) if data is None else data

    def require(self, digests: Collection[str]) -> None:
        """Raises `files.blob_missing` or `files.blob_corrupt` for the first of these that can't be written.

        Their bytes are read through: a preview must not promise what the undo would then fail at.
        """
        wanted = [sha256 for sha256 in digests if sha256 not in self._at_hand and sha256 not in self._portion]
        absent = set(wanted) - self._has(wanted) if wanted else set()
        if absent:
            raise failures.blob_missing(min(absent))
        for start in range(0, len(wanted), _PORTION):
            portion = wanted[start : start + _PORTION]
            small = self._fetch(portion)
            for sha256 in portion:
                if sha256 not in small and not self._files.is_sound(sha256):
                    raise failures.blob_corrupt(sha256)

    def _small(self, sha256: str) -> bytes | None:
        if sha256 in self._at_hand:
            return self._at_hand[sha256]
        if sha256 not in self._portion:
            self._portion |= self._fetch([sha256])
        return self._portion.get(sha256)
