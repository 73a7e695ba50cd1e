"""`act(...)`: intent before the effect, the truth after it, whatever becomes of the caller."""

import sqlite3
from contextlib import asynccontextmanager
from typing import ClassVar

import anyio
import pytest
from pydantic import BaseModel, ConfigDict

from takeback import Context, Manifest, Module, RefusedError, TakebackError, tool
from takeback_core.undo import act
from tests.undo.house import House, house

pytestmark = pytest.mark.anyio


class Job(BaseModel):
    model_config = ConfigDict(extra="forbid")
    inverse: str = "work.back"
    ends: str = "well"


class Ok(BaseModel):
    ok: bool = True


class Resources(BaseModel):
    model_config = ConfigDict(extra="forbid")
    resources: list[str]


class Versions(BaseModel):
    versions: dict[str, str]


class Work(Module):
    """One resource, `work:it`, which is made by an act that ends in many ways."""

    manifest: ClassVar[Manifest] = Manifest(1, "work", "Work for tests.", needs=("undo",), calls=("undo.*",))
    made: ClassVar[bool] = False
    ran: ClassVar[bool] = False
    lazy: ClassVar[bool] = False
    strange: ClassVar[bool] = False
    elsewhere: ClassVar[bool] = False
    entered: ClassVar[anyio.Event]

    @tool(effect="write", reach=("person", "agents", "modules"))
    async def make(self, ctx: Context, args: Job) -> Ok:
        """Make it, within an act."""
        touched = [("work:it", "absent", "there")]
        inverse = (args.inverse, {"ends": "well"})
        async with act(ctx, tool="work.make", summary="make it", inverse=inverse, touched=touched) as opened:
            type(self).ran = True
            if args.ends == "raises before":
                raise TakebackError("work.failed", "It failed")
            if args.ends == "waits before":
                self.entered.set()
                await anyio.sleep_forever()
            type(self).made = True
            if args.ends == "takes it back":
                # A stranger is at the same resource, so looking at it would tell nothing.
                type(self).strange = True
                opened.nothing_is_left()
                raise TakebackError("work.failed", "It failed, and nothing of it is left")
            if args.ends == "raises after":
                raise TakebackError("work.failed", "It failed")
            if args.ends == "crashes after":
                raise ValueError("a fault")
            if args.ends == "waits after":
                self.entered.set()
                await anyio.sleep_forever()
            if args.ends == "corrected":
                opened.confirm_with(summary="made it well", touched=touched, blobs=["b" * 64])
        return Ok()

    @tool(effect="write", reach=("modules",))
    async def back(self, ctx: Context, args: Job) -> Ok:
        """Unmake it."""
        if self.elsewhere:
            # An owner that never asks whether it is confined.
            async with act(
                ctx,
                tool="work.back",
                summary="unmake another",
                inverse=("work.back", {"ends": "well"}),
                touched=[("work:other", "absent", "there")],
            ):
                type(self).ran = True
        type(self).made = self.lazy
        return Ok()

    @tool(effect="read", reach=("modules",))
    async def versions(self, ctx: Context, args: Resources) -> Versions:
        """Tell whether it is there."""
        now = "strange" if self.strange else "there" if self.made else "absent"
        return Versions(versions=dict.fromkeys(args.resources, now))


class Workshop(House):
    """A house with work in it."""

    work: type[Work]


@asynccontextmanager
async def working(home, work):
    async with house(home, work) as opened:
        shop = Workshop(opened.kernel, opened.notebook)
        shop.work = work
        yield shop


@pytest.fixture
async def at(home):
    class Fresh(Work):
        entered = anyio.Event()

    async with working(home, Fresh) as opened:
        yield opened


async def only(at):
    (row,) = await at.rows()
    return row


async def test_an_act_that_ends_well(at):
    await at.person().work.make()
    row = await only(at)
    assert (row["state"], row["summary"], row["recorded_by"]) == ("done", "make it", "module:work")


@pytest.mark.parametrize(
    ("ends", "state", "code"),
    [
        ("raises before", "abandoned", "work.failed"),
        ("raises after", "done", "work.failed"),
        ("crashes after", "done", "call.crashed"),
    ],
)
async def test_an_act_that_raises_is_looked_at_and_the_error_goes_on(at, ends, state, code):
    with pytest.raises(TakebackError) as failed:
        await at.person().work.make(ends=ends)
    assert failed.value.code == code
    assert (await only(at))["state"] == state


@pytest.mark.parametrize(("ends", "state"), [("waits before", "abandoned"), ("waits after", "done")])
async def test_an_act_whose_caller_leaves_is_looked_at(at, ends, state):
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: at.person().work.make(ends=ends))
            await at.work.entered.wait()
            assert (await only(at))["state"] == "pending"
            tasks.cancel_scope.cancel()
    assert (await only(at))["state"] == state


async def test_a_refused_inverse_means_that_nothing_is_done(at):
    with pytest.raises(RefusedError) as refused:
        await at.person().work.make(inverse="work.nothing")
    assert refused.value.code == "undo.inverse_unknown"
    assert not at.work.ran
    assert await at.rows() == []


async def test_what_really_happened_replaces_what_was_foreseen(at):
    await at.person().work.make(ends="corrected")
    assert (await only(at))["summary"] == "made it well"
    assert (await at.module().undo.blobs()).digests == ["b" * 64]


async def test_an_act_in_a_rehearsal_is_refused_before_its_effect(at):
    with pytest.raises(RefusedError) as refused:
        await at.person()._replace(dry_run=True).work.make()
    assert refused.value.code == "call.no_preview"
    assert not at.work.ran


async def test_the_intent_is_durable_before_the_effect(home, at):
    """Another connection sees it while the effect is under way."""
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: at.person().work.make(ends="waits before"))
            await at.work.entered.wait()
            with sqlite3.connect(f"file:{at.kernel.home.database}?mode=ro", uri=True) as db:
                assert db.execute("SELECT state FROM undo_acted").fetchall() == [("pending",)]
            db.close()
            tasks.cancel_scope.cancel()


async def test_undo_of_an_act_that_raised_after_its_effect(at):
    with pytest.raises(TakebackError):
        await at.person().work.make(ends="raises after")
    assert at.work.made
    await at.person().undo.run(id=(await only(at))["id"])
    assert not at.work.made


async def test_an_inverse_that_does_nothing_is_found_out(at):
    """It reports no effects and records nothing: the owner's word on the versions decides."""
    await at.person().work.make()
    act_id = (await only(at))["id"]
    at.work.lazy = True
    with pytest.raises(TakebackError) as failed:
        await at.person().undo.run(id=act_id)
    assert failed.value.data["cause"] == "undo.not_as_planned"
    assert at.work.made
    assert await at.state(act_id) == "failed"


async def test_an_act_that_its_module_took_back_is_abandoned_whatever_lies_there_now(at):
    with pytest.raises(TakebackError):
        await at.agent().work.make(ends="takes it back")
    assert (await only(at))["state"] == "abandoned"


async def test_an_inverse_that_never_asks_is_confined_before_its_effect(at):
    await at.agent().work.make()
    row = await only(at)
    at.work.elsewhere, at.work.ran = True, False
    with pytest.raises(TakebackError) as refused:
        await at.person().undo.run(id=row["id"])
    assert refused.value.data["cause"] == "scope.confined"
    assert not at.work.ran
    assert at.work.made
