"""Bytes kept by their digest: the few of a small act as rows until they are moved, all others in packs."""

import hashlib
import os
import sqlite3

import pytest

from takeback.errors import NotFoundError, TakebackError
from takeback.store import Store
from takeback_acts.files import accounts, landing
from takeback_acts.files.blobs import Blobs
from takeback_acts.files.packs.settings import PackSettings
from takeback_acts.files.packs.store import BlobStore
from takeback_acts.files.reading import steady
from takeback_acts.files.supply import Supply

pytestmark = pytest.mark.anyio

JUNO, KIM = accounts.acting("mcp:agent:juno"), accounts.acting("mcp:agent:kim")
DAMAGE = "UPDATE files_blob SET bytes = x'00'"


def _digest(data):
    return hashlib.sha256(data).hexdigest()


class Kept:
    """A store and its packs, small enough that a few blobs reach the bounds."""

    def __init__(self, store, blobs):
        self.store = store
        self.blobs = blobs

    async def act(self, *contents, account=JUNO):
        """Keeps as an act does; answers the digests."""
        with self.blobs.intake(account) as intake:
            digests = [intake.data(data) for data in contents]
            await intake.durable()
            job = self.store.submit(intake.land)
            intake.rides(job)
            await job.wait()
        return digests

    async def rows(self):
        sql = "SELECT digest, owner FROM files_blob"
        return {
            key.hex(): owner for key, owner in await self.store.read(lambda db: db.execute(sql).fetchall())
        }

    def packed(self, *digests):
        return [self.blobs.packs.has(one) for one in digests]

    @property
    def used(self):
        return self.blobs.packs.stats().owners


@pytest.fixture
async def kept(tmp_path):
    settings = PackSettings(small=100_000, owner_limit=400_000)
    async with (
        await Store.open(tmp_path / "blobs.db") as store,
        BlobStore(tmp_path / "packs", settings) as packs,
    ):
        await store.migrate("files", (landing.TABLES, landing.OWNERS))
        yield Kept(store, Blobs(store, packs))


@pytest.fixture
def opened(tmp_path):
    handles = []

    def make(data, name="source"):
        (tmp_path / name).write_bytes(data)
        handles.append(os.open(tmp_path / name, os.O_RDWR))
        return handles[-1]

    yield make
    for handle in handles:
        os.close(handle)


async def _code(call):
    with pytest.raises(TakebackError) as error:
        await call
    return error.value.code


async def test_the_few_of_a_small_act_land_and_large_ones_are_packed(kept):
    small, large = await kept.act(b"small", b"l" * 100_001)
    assert await kept.rows() == {small: "agent:juno"}
    assert kept.packed(small, large) == [False, True]
    assert [await kept.blobs.read(one) for one in (small, large)] == [b"small", b"l" * 100_001]


async def test_what_goes_beyond_the_bounds_of_a_small_act_is_packed_at_once(kept):
    contents = [number.to_bytes(2) for number in range(100)]
    digests = await kept.act(*contents)
    assert len(await kept.rows()) + sum(kept.packed(*digests)) == 100
    assert sum(kept.packed(*digests)) > 50
    assert [await kept.blobs.read(one) for one in digests] == contents
    big = await kept.act(*(bytes([number]) * 90_000 for number in range(4)))
    assert kept.packed(*big) == [False, False, True, True]


async def test_a_file_is_kept_as_its_bytes_are(kept, opened):
    with kept.blobs.intake(JUNO) as intake:
        for data in (b"x", b"y" * 200_000):
            assert intake.file(opened(data), len(data)) == (_digest(data), len(data))


async def test_the_same_bytes_are_kept_once_wherever_they_lie(kept):
    (digest,) = await kept.act(b"same")
    used = kept.used
    await kept.act(b"same", account=KIM)
    assert (await kept.rows(), kept.used) == ({digest: "agent:juno"}, used)
    await kept.blobs.landing.move()
    used = kept.used
    await kept.act(b"same", account=KIM)
    assert (await kept.rows(), kept.used) == ({}, used)
    assert list(used) == ["agent:juno"]


async def test_a_move_packs_for_whom_they_were_kept_and_empties_the_landing(kept):
    digests = [*await kept.act(b"one", b"two"), *await kept.act(b"three", account=KIM)]
    assert kept.used == {"agent:juno": 6, "agent:kim": 5}
    assert await kept.blobs.landing.move() == 3
    assert await kept.rows() == {}
    assert kept.packed(*digests) == [True] * 3
    assert [await kept.blobs.read(one) for one in digests] == [b"one", b"two", b"three"]
    entries = [kept.blobs.packs.vault.catalog.find(bytes.fromhex(one)) for one in digests]
    owners = [kept.blobs.packs.vault.catalog.owner(entry) for entry in entries]
    assert owners == ["agent:juno", "agent:juno", "agent:kim"]
    assert await kept.blobs.landing.move() == 0


async def test_room_for_what_did_not_land_is_given_back(kept):
    with kept.blobs.intake(JUNO) as intake:
        intake.data(b"never")
    with kept.blobs.intake(JUNO) as intake:
        intake.data(b"refused")
        await kept.store.transaction(
            lambda tx: tx.execute(
                "CREATE TRIGGER no_bytes BEFORE INSERT ON files_blob BEGIN SELECT RAISE(ABORT, 'no'); END"
            )
        )
        job = kept.store.submit(intake.land)
        intake.rides(job)
        with pytest.raises(sqlite3.IntegrityError):
            await job.wait()
    assert kept.used == {}


async def test_a_limit_counts_rows_and_packs_alike(kept):
    await kept.act(*(bytes([number]) * 90_000 for number in range(4)))
    assert await _code(kept.act(b"x" * 50_000)) == "blobs.agent_full"
    await kept.act(b"x" * 50_000, account=KIM)
    await kept.blobs.landing.move()
    assert await _code(kept.act(b"y" * 50_000)) == "blobs.agent_full"
    assert await kept.act(b"y" * 50_000, account=accounts.UNDO)


async def test_what_lies_in_the_landing_counts_after_a_restart(kept):
    await kept.act(b"12345")
    kept.blobs.packs.vault.usage.give_back("agent:juno", 5)  # as if the process had just started
    await kept.blobs.landing.open()
    assert kept.used == {"agent:juno": 5}


async def test_a_damaged_row_is_found_out_and_not_moved(kept):
    (digest,) = await kept.act(b"good")
    await kept.store.transaction(lambda tx: tx.execute(DAMAGE))
    assert await _code(kept.blobs.read(digest)) == "files.blob_corrupt"
    assert await kept.blobs.landing.damaged() == 1
    assert await kept.blobs.landing.move() == 0
    assert list(await kept.rows()) == [digest]


async def test_damaged_bytes_give_way_when_they_are_kept_again(kept, tmp_path):
    contents = [b"small", b"l" * 150_000]
    digests = await kept.act(*contents)
    await kept.store.transaction(lambda tx: tx.execute(DAMAGE))
    await kept.act(b"small")
    await kept.blobs.landing.move()
    for path in [*(tmp_path / "packs").glob("*.pack"), *(tmp_path / "packs").glob("large/*/*")]:
        data = bytearray(path.read_bytes())
        data[-3] ^= 1
        path.write_bytes(data)
    await kept.act(*contents)
    assert [await kept.blobs.read(one) for one in digests] == contents


async def test_bytes_that_are_nowhere_are_missing(kept):
    with pytest.raises(NotFoundError):
        await kept.blobs.read(_digest(b"?"))


async def test_a_supply_finds_what_is_moved_while_it_looks(kept, tmp_path):
    """Whichever side of a move the rows are asked on."""
    contents = [b"a", b"b", b"c"]
    digests = await kept.act(*contents)
    rows = await kept.blobs.landing.fetch(digests)
    await kept.blobs.landing.move()
    answers: list[dict[str, bytes]] = [rows, {}]
    for answer in answers:
        supply = Supply(kept.blobs.packs.vault.reader, {}, lambda asked: dict(answer))  # noqa: B023
        supply.bring(digests)
        supply.require(digests)
        assert [supply.read(one) for one in digests] == contents
        with (tmp_path / "out").open("w+b") as out:
            supply.write(digests[0], out.fileno())
        assert (tmp_path / "out").read_bytes() == b"a"


def test_a_file_that_changes_while_it_is_read_is_read_again(opened):
    handle, times = opened(b"first"), []

    def take(source, size):
        times.append(size)
        data = os.read(source, 100)
        if len(times) == 1:
            os.pwrite(source, b"second, longer", 0)
        return _digest(data), len(data)

    about, sha256, size = steady(handle, b"/f", take)
    assert (sha256, size, about.st_size) == (_digest(b"second, longer"), 14, 14)


def test_a_file_that_never_holds_still_is_refused(opened):
    handle = opened(b"")

    def take(source, size):
        os.pwrite(source, b"x" * (size + 1), 0)
        return _digest(b""), size

    with pytest.raises(TakebackError) as error:
        steady(handle, b"/f", take)
    assert error.value.code == "files.unstable"
    assert error.value.retryable
