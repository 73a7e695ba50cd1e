"""Kept bytes against bare appends to one file: one blob, one with its act, many, and reading back."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
import time
from pathlib import Path

from anyio import to_thread

from benchmarks.measure import Figure, Sample, compare
from takeback.store import Store
from takeback_acts.files import accounts, landing
from takeback_acts.files.blobs import Blobs
from takeback_acts.files.packs.store import BlobStore

_BYTES = 4096
_OWNER = "mcp:agent:bench"
_ONE = 200
_WRITERS = 64
_ROUNDS = 10
_MANY = 100_000
_READS = 5000
_ACTS = "CREATE TABLE act (seq INTEGER PRIMARY KEY, digest TEXT NOT NULL, about TEXT NOT NULL)"
_ROW = "INSERT INTO act (digest, about) VALUES (?, ?)"


async def figures() -> list[Figure]:
    """Every figure, with a store and a bare file beside it on the same disk."""
    with tempfile.TemporaryDirectory() as folder:
        async with BlobStore(Path(folder) / "packs") as blobs:
            with _Bare(Path(folder) / "bare") as bare:
                found = await _small(blobs, bare)
        async with BlobStore(Path(folder) / "many") as blobs:
            with _Bare(Path(folder) / "bare-many") as bare:
                found += await _bulk(blobs, bare)
        with _Bare(Path(folder) / "bare-act") as bare:
            return [*found, await _with_its_act(Path(folder), bare)]


class _Bare:
    """A file that is appended to, and read, without anything else."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1

    def __enter__(self) -> _Bare:
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def add(self, data: bytes, *, durable: bool) -> None:
        """Hashes and appends, as the least that a store of blobs can do."""
        hashlib.sha256(data).digest()
        os.write(self._handle, data)
        if durable:
            os.fdatasync(self._handle)

    def timed(self, times: int) -> float:
        """Seconds for each of so many fresh blobs, one sync each."""
        fresh = [os.urandom(_BYTES) for _ in range(times)]
        started = time.perf_counter()
        for data in fresh:
            self.add(data, durable=True)
        return (time.perf_counter() - started) / times

    def sync(self) -> None:
        os.fdatasync(self._handle)

    def read(self, number: int) -> bytes:
        data = os.pread(self._handle, _BYTES, number * _BYTES)
        hashlib.sha256(data).digest()
        return data


async def _small(blobs: BlobStore, bare: _Bare) -> list[Figure]:
    async def one() -> float:
        with blobs.lease(_OWNER) as lease:
            fresh = [os.urandom(_BYTES) for _ in range(_ONE)]
            started = time.perf_counter()
            for data in fresh:
                lease.keep(data)
                await lease.durable()
            return (time.perf_counter() - started) / _ONE

    async def floor() -> float:
        return bare.timed(_ONE)

    async def writers() -> float:
        fresh = [[os.urandom(_BYTES) for _ in range(_ROUNDS)] for _ in range(_WRITERS)]
        started = time.perf_counter()
        await asyncio.gather(*(_write(blobs, portion) for portion in fresh))
        return (time.perf_counter() - started) / (_WRITERS * _ROUNDS)

    taken = await compare({"one": one, "floor": floor, "writers": writers}, rounds=9)
    against = "append + fdatasync"
    return [
        Figure("one 4 KB blob, durable", taken["one"], taken["floor"], against, 1.5),
        Figure("a 4 KB blob of 64 writers, durable", taken["writers"], taken["floor"], against, 0.5),
    ]


async def _with_its_act(folder: Path, bare: _Bare) -> Figure:
    """A pre-image as a file's act captures it, with a row of the log as long as most."""
    async with BlobStore(folder / "landing") as packs, await Store.open(folder / "act.db") as store:
        await store.migrate("files", (landing.TABLES, landing.OWNERS, _ACTS))
        blobs = Blobs(store, packs)

        async def act(data: bytes) -> None:
            with blobs.intake(accounts.acting(_OWNER)) as intake:
                sha256 = intake.data(data)
                await intake.durable()
                kept = store.submit(intake.land, ride=True)
                intake.rides(kept)
                await store.transaction(lambda tx: tx.execute(_ROW, (sha256, "x" * 600)))
                await kept.wait()

        async def ours() -> float:
            fresh = [os.urandom(_BYTES) for _ in range(_ONE)]
            started = time.perf_counter()
            for data in fresh:
                await act(data)
            return (time.perf_counter() - started) / _ONE

        async def floor() -> float:
            return bare.timed(_ONE)

        taken = await compare({"ours": ours, "floor": floor}, rounds=9)
    what = "a 4 KB pre-image with its act's row, durable"
    return Figure(what, taken["ours"], taken["floor"], "append + fdatasync", 2.0)


async def _write(blobs: BlobStore, portion: list[bytes]) -> None:
    with blobs.lease(_OWNER) as lease:
        for data in portion:
            lease.keep(data)
            await lease.durable()


async def _bulk(blobs: BlobStore, bare: _Bare) -> list[Figure]:
    """The store fills up from round to round, so that merging its indexes is paid for as well."""
    digests: list[str] = []

    async def many() -> float:
        fresh = _fresh()
        with blobs.lease(_OWNER) as lease:
            started = time.perf_counter()
            digests[:] = await to_thread.run_sync(lease.keep_all, fresh)
            await lease.durable()
            return (time.perf_counter() - started) / _MANY

    async def floor() -> float:
        fresh = _fresh()
        started = time.perf_counter()
        for data in fresh:
            bare.add(data, durable=False)
        bare.sync()
        return (time.perf_counter() - started) / _MANY

    taken = await compare({"many": many, "floor": floor}, rounds=3)
    read = await compare(_readers(blobs, bare, digests), rounds=5)
    return [
        Figure("a 4 KB blob of 100,000 at once", taken["many"], taken["floor"], "append, one fdatasync", 4),
        Figure("reading a 4 KB blob back", read["ours"], read["floor"], "pread + SHA-256", 6),
    ]


def _readers(blobs: BlobStore, bare: _Bare, digests: list[str]) -> dict[str, Sample]:
    step = _MANY // _READS

    async def ours() -> float:
        started = time.perf_counter()
        for sha256 in digests[::step]:
            blobs.vault.reader.read(sha256)
        return (time.perf_counter() - started) / _READS

    async def floor() -> float:
        started = time.perf_counter()
        for number in range(0, _MANY, step):
            bare.read(number)
        return (time.perf_counter() - started) / _READS

    return {"ours": ours, "floor": floor}


def _fresh() -> list[bytes]:
    """Blobs that nothing has seen before."""
    seed = os.urandom(_BYTES - 8)
    return [number.to_bytes(8, "big") + seed for number in range(_MANY)]
