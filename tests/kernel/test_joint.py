"""Joints: what several calls change together ends once, as a whole as far as that can be."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import ClassVar

import anyio
import pytest
from pydantic import BaseModel, ConfigDict

from takeback import Context, Kernel, Manifest, Module, RefusedError, TakebackError, tool
from takeback.joint import Joint

pytestmark = pytest.mark.anyio


class Told:
    """A participant that tells what it is asked, and fails where it is to."""

    def __init__(self, told: list[str], name: str, fails: str = "") -> None:
        self._told, self._name, self._fails = told, name, fails

    async def prepare(self) -> None:
        await self._do("prepare")

    async def commit(self) -> None:
        await self._do("commit")

    async def rollback(self) -> None:
        await self._do("rollback")

    async def _do(self, what: str) -> None:
        await anyio.lowlevel.checkpoint()
        self._told.append(f"{what} {self._name}")
        if what in self._fails.split():
            raise TakebackError("told.failed", f"{self._name} can't {what}")


class Plain:
    """A participant that has nothing to verify."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    async def commit(self) -> None:
        self.ends.append("commit")

    async def rollback(self) -> None:
        self.ends.append("rollback")


def joint_of(told: list[str], **fails: str) -> Joint:
    """A joint with a participant for each keyword."""
    joint = Joint()
    for name, failing in fails.items():
        joint.join(name, Told(told, name, failing))
    return joint


async def test_what_was_joined_is_found_under_its_key() -> None:
    joint, participant = Joint(), Plain()
    assert joint.get("a") is None
    joint.join("a", participant)
    assert joint.get("a") is participant
    assert joint.joined == ("a",)
    with pytest.raises(TakebackError) as refused:
        joint.join("a", Plain())
    assert refused.value.code == "joint.twice"
    assert joint.get("a") is participant


async def test_all_verify_before_the_first_commits() -> None:
    told: list[str] = []
    joint = joint_of(told, a="", b="")
    await joint.prepare()
    await joint.commit()
    assert told == ["prepare a", "prepare b", "commit a", "commit b"]
    assert joint.joined == ()


async def test_one_that_has_nothing_to_verify_need_not() -> None:
    joint, participant = Joint(), Plain()
    joint.join("a", participant)
    await joint.prepare()
    await joint.commit()
    assert participant.ends == ["commit"]


async def test_where_one_says_no_nothing_is_committed() -> None:
    told: list[str] = []
    joint = joint_of(told, a="", b="prepare", c="")
    with pytest.raises(TakebackError, match="b can't prepare"):
        await joint.prepare()
    assert joint.joined == ("a", "b", "c")
    await joint.rollback()
    assert told == ["prepare a", "prepare b", "rollback c", "rollback b", "rollback a"]


async def test_what_was_cut_off_is_not_committed() -> None:
    told: list[str] = []
    joint = joint_of(told, a="")
    joint.spoil()
    with pytest.raises(TakebackError) as refused:
        await joint.prepare()
    assert refused.value.code == "joint.spoilt"
    await joint.rollback()
    assert told == ["rollback a"]


async def test_nothing_is_spoilt_where_nobody_took_part() -> None:
    joint = Joint()
    joint.spoil()
    await joint.prepare()
    await joint.commit()


async def test_who_came_is_counted() -> None:
    joint = Joint()
    joint.join("a", Plain())
    before = joint.visits
    assert joint.get("b") is None
    assert joint.visits == before + 1


async def test_where_a_commit_fails_those_after_it_are_rolled_back() -> None:
    told: list[str] = []
    joint = joint_of(told, a="", b="commit", c="")
    with pytest.raises(TakebackError, match="b can't commit"):
        await joint.commit()
    assert told == ["commit a", "commit b", "rollback c", "rollback b"]
    await joint.rollback()
    assert len(told) == 4


async def test_all_are_rolled_back_where_one_can_not_be(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []
    with caplog.at_level(logging.ERROR):
        await joint_of(told, a="", b="rollback", c="").rollback()
    assert told == ["rollback c", "rollback b", "rollback a"]
    assert "told.failed" in caplog.text
    assert "b can't" not in caplog.text


@pytest.mark.parametrize("end", ["prepare", "commit", "rollback"])
async def test_nobody_joins_what_has_ended(end: str) -> None:
    joint = Joint()
    await getattr(joint, end)()
    for late in (lambda: joint.get("a"), lambda: joint.join("a", Plain())):
        with pytest.raises(TakebackError) as refused:
            late()
        assert refused.value.code == "joint.ended"


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("native", [False, True])
async def test_an_end_that_has_begun_comes_to_its_end_when_cancelled(end: str, native: bool) -> None:
    entered, go = anyio.Event(), anyio.Event()
    told: list[str] = []

    class Slow(Told):
        async def _do(self, what: str) -> None:
            entered.set()
            await go.wait()
            await super()._do(what)

    joint = Joint()
    for name in "ab":
        joint.join(name, Slow(told, name))
    after: list[str] = []

    async def work(scope: anyio.CancelScope) -> None:
        with scope:
            await getattr(joint, end)()
            await anyio.lowlevel.checkpoint()
            after.append("went on")

    scope = anyio.CancelScope()
    with anyio.fail_after(10):
        task = asyncio.ensure_future(work(scope))
        await entered.wait()
        if native:
            task.cancel()
        else:
            scope.cancel()
        await anyio.wait_all_tasks_blocked()
        assert told == []
        go.set()
        await asyncio.wait([task])
    assert sorted(told) == [f"{end} a", f"{end} b"]
    assert task.cancelled() is native
    assert after == []


# ---------------------------------------------------------------- on its way through calls


class Name(BaseModel):
    model_config = ConfigDict(extra="forbid")
    key: str = "a"


class Found(BaseModel):
    found: bool | None


class Lodger(Module):
    """Tells whether there is a joint, and whether somebody is in it."""

    manifest: ClassVar[Manifest] = Manifest(1, "lodger", "Looks into joints.", calls=("*",))
    seen: ClassVar[list[Joint | None]] = []

    @tool(effect="read", reach=("person", "agents", "modules"))
    async def look(self, ctx: Context, args: Name) -> Found:
        """Look into the joint."""
        self.seen.append(ctx.joint)
        return Found(found=None if ctx.joint is None else ctx.joint.get(args.key) is not None)

    @tool(effect="read", reach=("person", "agents", "modules"))
    async def ask(self, ctx: Context, args: Name) -> Found:
        """Have the joint looked into by a call of its own."""
        found: Found = await ctx.call("lodger.look", args)
        return found


class Opener(Module):
    """Has the name of the module that may open a joint."""

    manifest: ClassVar[Manifest] = Manifest(1, "undo", "Opens joints.", calls=("*",))


async def test_a_joint_goes_along_with_nested_calls(tmp_path: Path) -> None:
    async with Kernel(tmp_path / "home", settings={}, modules=[Lodger, Opener]) as kernel:
        undo, joint = kernel.enter("module:undo"), Joint()
        joint.join("a", Plain())
        assert (await kernel.enter("cli:person").lodger.look()).found is None
        assert (await undo.call("lodger.look", joint_=joint)).found is True
        assert (await undo.call("lodger.look", key="b", joint_=joint, rehearsal_={})).found is False
        Lodger.seen.clear()
        await undo.call("lodger.ask", joint_=joint)
        await undo.call("lodger.ask")
        assert Lodger.seen == [joint, None]


async def test_only_who_may_undo_opens_one(tmp_path: Path) -> None:
    async with Kernel(tmp_path / "home", settings={}, modules=[Lodger]) as kernel:
        for label in ("module:lodger", "cli:person", "mcp:agent:juno"):
            with pytest.raises(RefusedError) as refused:
                await kernel.enter(label).call("lodger.look", joint_=Joint())
            assert refused.value.code == "call.as"
