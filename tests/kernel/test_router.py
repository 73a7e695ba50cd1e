"""Routing: labels, chains, limits, validation, errors and what the audit hears."""

import logging
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from takeback import (
    Context,
    Kernel,
    Manifest,
    Module,
    NotFoundError,
    RefusedError,
    Scope,
    TakebackError,
    UsageError,
    tool,
)
from takeback.router import CALL_AS, CallRecord
from takeback.sources import Source
from tests.kernel.samples import Done, EchoModule, Given, RelayModule, Seen

pytestmark = pytest.mark.anyio
PERSON, AGENT = "cli:person", "mcp:agent:juno"


@pytest.fixture
async def kernel(tmp_path: Path) -> AsyncIterator[Kernel]:
    async with Kernel(tmp_path / "home", settings={}, modules=[EchoModule, RelayModule]) as running:
        yield running


async def test_the_context_tells_who_calls(kernel: Kernel) -> None:
    ctx = kernel.enter(AGENT, session="s", turn="t", scope=Scope(roots=("/a",)))
    told: Seen = await ctx.call("echo.all", {"number": 7})
    assert told == Seen(
        caller=AGENT,
        origin=AGENT,
        chain=[AGENT],
        session="s",
        turn="t",
        dry_run=False,
        roots=["/a"],
        number=7,
    )


async def test_the_kernel_carries_the_chain(kernel: Kernel) -> None:
    told: Seen = await kernel.enter(AGENT).call("relay.pass_on", tool="echo.all")
    assert told.caller == "module:relay"
    assert told.origin == AGENT
    assert told.chain == [AGENT, "module:relay"]


async def test_a_module_that_acts_by_itself_is_the_origin(kernel: Kernel) -> None:
    relay = kernel.supervisor.lives["relay"].module
    assert isinstance(relay, RelayModule)
    told = await relay.by_itself("echo.modules")
    assert (told.caller, told.origin, told.chain) == ("module:relay", "module:relay", ["module:relay"])


async def test_module_and_verb_are_attributes(kernel: Kernel) -> None:
    ctx = kernel.enter(PERSON)
    assert await ctx.echo.all(number=3) == await ctx.call("echo.all", {"number": 3})


async def test_keywords_lie_over_a_mapping_or_a_model(kernel: Kernel) -> None:
    ctx = kernel.enter(PERSON)
    assert (await ctx.call("echo.all", {"number": 3, "text": "x"}, number=4)).number == 4
    assert (await ctx.echo.all(Given(number=3), text="x")).number == 3
    with pytest.raises(UsageError):
        await ctx.echo.all(Given(number=3), numbr=4)


async def test_more_callers_than_are_remembered_are_each_decided(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("takeback.registry._MOST_VERDICTS", 2)
    for _ in range(2):
        for number in range(5):
            label = f"mcp:agent:a{number}"
            assert (await kernel.enter(label).echo.all()).caller == label
            with pytest.raises(NotFoundError):
                await kernel.enter(label).echo.person()


async def test_a_context_cannot_be_changed(kernel: Kernel) -> None:
    ctx = kernel.enter(AGENT)
    with pytest.raises(AttributeError):
        ctx.caller = PERSON  # type: ignore[misc]
    with pytest.raises(AttributeError):
        ctx.other = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("key", ["caller", "origin", "ctx", "as_", "chain", "session"])
async def test_a_label_cannot_be_given_by_arguments(kernel: Kernel, key: str) -> None:
    with pytest.raises(UsageError) as refused:
        await kernel.enter(AGENT).call("echo.all", {key: PERSON})
    assert refused.value.code == "args.invalid"


@pytest.mark.parametrize("name", ["echo.person", "echo.modules", "echo.own", "echo.nothing", "no.such", ""])
async def test_out_of_reach_answers_exactly_like_unknown(kernel: Kernel, name: str) -> None:
    with pytest.raises(NotFoundError) as refused:
        await kernel.enter(AGENT).call(name)
    assert refused.value.as_dict() == {
        "code": "tool.unknown",
        "kind": "not_found",
        "message": f"Unknown tool: {name}",
        "hint": "`takeback tools` lists what you reach.",
        "retryable": False,
    }


async def test_a_long_name_is_not_repeated_whole(kernel: Kernel) -> None:
    with pytest.raises(NotFoundError) as refused:
        await kernel.enter(AGENT).call("x" * 100_000)
    assert len(refused.value.message) < 300


async def test_the_chain_limits_a_module(kernel: Kernel) -> None:
    assert (await kernel.enter(PERSON).call("relay.pass_on", tool="echo.all")).origin == PERSON
    with pytest.raises(NotFoundError):
        await kernel.enter(AGENT).call("relay.pass_on", tool="echo.person")


async def test_only_undo_calls_under_other_limits(kernel: Kernel) -> None:
    assert set(CALL_AS) == {"module:undo"}
    assert not any(":person" in label for labels in CALL_AS.values() for label in labels)
    for limits in ({"as_": "module:undo"}, {"as_": PERSON}, {"as_": "module:relay"}, {"force": True}):
        with pytest.raises(RefusedError) as refused:
            await kernel.enter(PERSON).call("relay.pass_on", tool="echo.all", **limits)
        assert refused.value.code == "call.as"
    with pytest.raises(RefusedError):
        await kernel.enter(PERSON).call("echo.all", as_="module:undo")


async def test_a_confined_call_stays_confined(kernel: Kernel) -> None:
    ctx = kernel.router.root(_module("undo"))
    inner = ctx._replace(confined_to={"a:1": "v", "a:2": "w"})
    inner.confine("a:1")
    with pytest.raises(RefusedError) as refused:
        inner.confine("a:3")
    assert refused.value.code == "scope.confined"
    ctx.confine("a:3")


async def test_presence_is_the_persons_own(kernel: Kernel) -> None:
    with pytest.raises(RefusedError) as refused:
        await kernel.enter(PERSON).call("echo.there")
    assert (refused.value.code, refused.value.data) == ("call.presence", {"tool": "echo.there"})
    assert (await kernel.enter(PERSON, present=True).call("echo.there")).caller == PERSON
    with pytest.raises(RefusedError):  # a module in between is not the person
        await kernel.enter(PERSON, present=True).call("relay.pass_on", tool="echo.there")


async def test_the_rehearsal_of_a_write_needs_nobody_there(kernel: Kernel) -> None:
    heard: list[CallRecord] = []
    kernel.router.on_call(heard.append)
    rehearsing = kernel.enter(PERSON, dry_run=True)
    assert (await rehearsing.call("echo.foretold")).dry_run
    with pytest.raises(RefusedError) as refused:  # it could do nothing but happen
        await rehearsing.call("echo.there")
    assert refused.value.code == "call.no_preview"
    with pytest.raises(RefusedError) as read:  # a read is no less of one in a rehearsal
        await rehearsing.call("echo.secret")
    assert read.value.code == "call.presence"
    assert (await kernel.enter(PERSON, dry_run=True, present=True).call("echo.secret")).dry_run
    assert [one.outcome for one in heard] == ["rehearsed", "call.no_preview", "call.presence", "ok"]


async def test_a_rehearsal_never_does_what_cannot_be_rehearsed(kernel: Kernel) -> None:
    ctx = kernel.enter(PERSON, dry_run=True)
    with pytest.raises(RefusedError) as refused:
        await ctx.call("echo.blind")
    assert refused.value.code == "call.no_preview"
    assert (await ctx.call("echo.rehearsed")).dry_run
    assert (await ctx.call("relay.pass_on", tool="echo.all")).dry_run


@pytest.mark.parametrize(
    "args", [{"number": "x"}, {"number": 1.5}, {"text": 3}, {"extra": 1}, {"number": None}, {"ratio": []}]
)
async def test_arguments_are_validated(kernel: Kernel, args: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refused:
        await kernel.enter(PERSON).call("echo.all", args)
    assert refused.value.code == "args.invalid"
    assert next(iter(args)) in refused.value.message


async def test_values_are_not_quoted_in_errors(kernel: Kernel) -> None:
    with pytest.raises(UsageError) as refused:
        await kernel.enter(PERSON).call("echo.all", {"number": "my secret", "text": ["my secret"]})
    assert "my secret" not in str(refused.value.as_dict())


async def test_a_crash_is_told_without_its_words(kernel: Kernel, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(TakebackError) as failed:
        await kernel.enter(PERSON).call("echo.crash", text="the secret")
    assert failed.value.code == "call.crashed"
    assert "secret" not in str(failed.value.as_dict())
    assert "secret" not in caplog.text
    assert "raise ValueError" in caplog.text  # where it happened is in the log
    assert failed.value.data["call"] in caplog.text


async def test_an_undeclared_answer_is_a_crash(kernel: Kernel) -> None:
    with pytest.raises(TakebackError) as failed:
        await kernel.enter(PERSON).call("echo.wrong_answer")
    assert failed.value.code == "call.crashed"


async def test_the_audit_hears_of_every_call_and_never_of_arguments(kernel: Kernel) -> None:
    heard: list[CallRecord] = []
    stop = kernel.router.on_call(heard.append)
    ctx = kernel.enter(AGENT)
    await ctx.call("relay.pass_on", tool="echo.all")
    for name, args in (("echo.person", {}), ("echo.crash", {}), ("echo.all", {"number": "my secret"})):
        with pytest.raises(TakebackError):
            await ctx.call(name, args)
    stop()
    await ctx.call("echo.all")
    assert [(one.tool, one.caller, one.origin, one.allowed, one.outcome) for one in heard] == [
        ("echo.all", "module:relay", AGENT, True, "ok"),
        ("relay.pass_on", AGENT, AGENT, True, "ok"),
        ("echo.person", AGENT, AGENT, False, "tool.unknown"),
        ("echo.crash", AGENT, AGENT, True, "call.crashed"),
        ("echo.all", AGENT, AGENT, True, "args.invalid"),
    ]
    assert heard[0].parent == heard[1].id
    assert heard[1].parent is None
    assert all(one.reason for one in heard)
    assert "my secret" not in repr(heard)


async def test_the_audit_hears_of_a_call_to_a_module_that_does_not_run(kernel: Kernel) -> None:
    heard: list[CallRecord] = []
    await kernel.set_enabled("echo", False)
    kernel.router.withdraw("echo")  # as if it had never come up
    kernel.router.on_call(heard.append)
    with pytest.raises(TakebackError) as off:
        await kernel.enter(PERSON).call("echo.all")
    assert off.value.code == "module.off"
    assert [(one.tool, one.allowed, one.reason, one.outcome) for one in heard] == [
        ("echo.all", False, "off", "module.off")
    ]


async def test_the_audit_hears_of_a_module_that_tries_another_label(kernel: Kernel) -> None:
    heard: list[CallRecord] = []
    kernel.router.on_call(heard.append)
    with pytest.raises(RefusedError):
        await kernel.enter(AGENT).call("relay.pass_on", {"tool": "echo.all", "as_": PERSON})
    told = [(one.tool, one.caller, one.allowed, one.outcome) for one in heard]
    assert told[0] == ("echo.all", "module:relay", False, "call.as")


async def test_who_listens_to_calls_changes_none(kernel: Kernel, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[CallRecord] = []

    def fail(record: CallRecord) -> None:
        raise ValueError("the secret")

    kernel.router.on_call(fail)
    kernel.router.on_call(heard.append)
    assert (await kernel.enter(PERSON).echo.all()).caller == PERSON
    assert [one.outcome for one in heard] == ["ok"]
    assert "fail could not take a call in: ValueError" in caplog.text
    assert "secret" not in caplog.text


async def test_a_tool_that_exits_ends_its_call_alone(tmp_path: Path) -> None:
    class QuitterModule(Module):
        manifest: ClassVar[Manifest] = Manifest(1, "quitter", "Exits.")

        @tool(effect="read", reach=("person",))
        async def go(self, ctx: Context, args: Given) -> Done:
            """Exit."""
            sys.exit(3)

    async with Kernel(tmp_path / "other", settings={}, modules=[QuitterModule]) as kernel:
        with pytest.raises(TakebackError) as failed:
            await kernel.enter(PERSON).quitter.go()
        assert failed.value.code == "call.crashed"


async def test_listing_shows_what_a_caller_reaches(kernel: Kernel) -> None:
    names = [spec.name for spec in kernel.router.reachable(AGENT)]
    assert names == sorted(names)
    assert "echo.all" in names
    assert not {"echo.person", "echo.modules", "echo.own", "kernel.disable"} & set(names)
    assert kernel.router.explain(AGENT, "echo.person").reason == "echo.person is not open to agents"


async def test_an_added_module_sees_no_plumbing_until_trusted(tmp_path: Path) -> None:
    added = Source.of(RelayModule, builtin=False, distribution="somebody")
    home = tmp_path / "home"
    async with Kernel(home, settings={}, modules=[EchoModule, added]) as kernel:
        relay = kernel.supervisor.lives["relay"].module
        assert isinstance(relay, RelayModule)
        with pytest.raises(NotFoundError):
            await relay.by_itself("echo.modules")
        assert (await relay.by_itself("echo.all")).origin == "module:relay"
        await kernel.enter(PERSON, present=True).kernel.trust(name="relay")
        assert (await relay.by_itself("echo.modules")).origin == "module:relay"
        await kernel.enter(PERSON).kernel.untrust(name="relay")
        with pytest.raises(NotFoundError):
            await relay.by_itself("echo.modules")
        await kernel.enter(PERSON, present=True).kernel.trust(name="relay")
    impostor = Source.of(RelayModule, builtin=False, distribution="somebody-else")
    async with Kernel(home, settings={}, modules=[EchoModule, impostor]) as kernel:
        relay = kernel.supervisor.lives["relay"].module
        assert isinstance(relay, RelayModule)
        with pytest.raises(NotFoundError):  # trust was given to another package of that name
            await relay.by_itself("echo.modules")


async def test_a_manifest_limits_what_a_module_calls_by_itself(kernel: Kernel) -> None:
    relay = kernel.supervisor.lives["relay"].module
    assert isinstance(relay, RelayModule)
    with pytest.raises(NotFoundError):
        await relay.by_itself("kernel.status")
    decision = kernel.router.explain("module:relay", "kernel.status")
    assert not decision.allowed


async def test_a_context_of_an_agent_without_a_scope_may_touch_nothing(kernel: Kernel) -> None:
    assert (await kernel.enter(AGENT).call("echo.all")).roots == []
    assert (await kernel.enter(PERSON).call("echo.all")).roots is None


def _module(name: str) -> Any:
    from takeback import Caller

    return Caller.module(name)


def test_context_has_no_default() -> None:
    with pytest.raises(TypeError):
        Context()  # type: ignore[call-arg]
