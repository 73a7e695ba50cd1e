"""What is refused as an inverse, when it is recorded, begun and run."""

import pytest
from pydantic import BaseModel, ConfigDict

from takeback import Manifest, NotFoundError, RefusedError, UsageError
from takeback.sources import Source
from tests.undo.house import house
from tests.undo.odd import Odd, offer_anew

pytestmark = pytest.mark.anyio

GIVEN = {"text": "back"}
REFUSED = [
    ("odd.nothing", GIVEN, "undo.inverse_unknown"),
    ("nobody.fix", GIVEN, "undo.inverse_unknown"),
    ("odd.send", GIVEN, "undo.inverse_outward"),
    ("odd.sign", GIVEN, "undo.inverse_presence"),
    ("odd.secret", GIVEN, "undo.inverse_person_only"),
    ("odd.private", GIVEN, "undo.inverse_person_only"),
    ("odd.human", GIVEN, "undo.inverse_person_only"),
    ("odd.surface", GIVEN, "undo.inverse_person_only"),
    ("odd.outside", GIVEN, "undo.inverse_unreachable"),
    ("undo.run", {"id": "x"}, "undo.inverse_own"),
    ("undo.rewind", {"session": "s1"}, "undo.inverse_own"),
    ("undo.record", {}, "undo.inverse_own"),
    ("undo.nothing", {}, "undo.inverse_own"),
    ("odd.fix", {}, "undo.inverse_input"),
    ("odd.fix", {"text": 7}, "undo.inverse_input"),
    ("odd.fix", {"text": "x", "more": 1}, "undo.inverse_input"),
]
CHANGED = [
    ({"outward": True}, "undo.inverse_outward"),
    ({"presence": True}, "undo.inverse_presence"),
    ({"person_only": True}, "undo.inverse_person_only"),
    ({"reach": frozenset({"person"})}, "undo.inverse_person_only"),
    ({"reach": frozenset({"person", "agents"})}, "undo.inverse_unreachable"),
]


class Other(BaseModel):
    model_config = ConfigDict(extra="forbid")
    words: list[str]


def recorded(inverse="odd.fix", given=GIVEN):
    return {"tool": "odd.do", "summary": "did it", "inverse_tool": inverse, "inverse_input": given}


@pytest.fixture
async def odd(home):
    Odd.texts.clear()
    async with house(home, Odd) as opened:
        yield opened


@pytest.mark.parametrize("verb", ["record", "begin"])
@pytest.mark.parametrize(("inverse", "given", "code"), REFUSED)
async def test_refused_when_recorded(odd, verb, inverse, given, code):
    with pytest.raises(RefusedError) as refused:
        await odd.module("odd").call(f"undo.{verb}", recorded(inverse, given))
    assert refused.value.code == code
    assert await odd.rows() == []


async def test_a_tool_of_reach_modules_may_be_an_inverse(odd):
    made = await odd.module("odd").undo.record(recorded())
    await odd.person().undo.run(id=made.id)
    assert Odd.texts == ["back"]


async def test_a_tool_that_others_reach_too_may_be_an_inverse(odd):
    made = await odd.module("odd").undo.record(recorded("odd.open"))
    assert (await odd.person().undo.run(id=made.id)).results[0].state == "undone"


@pytest.mark.parametrize(("changes", "code"), CHANGED)
async def test_a_tool_that_changed_since_is_refused_when_run(odd, changes, code):
    made = await odd.module("odd").undo.record(recorded())
    offer_anew(odd.kernel, "odd.fix", **changes)
    with pytest.raises(RefusedError) as refused:
        await odd.person().undo.run(id=made.id)
    assert refused.value.code == code
    assert Odd.texts == []
    assert await odd.state(made.id) == "done"


@pytest.mark.parametrize(("changes", "code"), CHANGED)
async def test_a_tool_that_changed_after_it_was_begun_stays_refused(odd, changes, code):
    begun = await odd.module("odd").undo.begin(recorded())
    offer_anew(odd.kernel, "odd.fix", **changes)
    await odd.module("odd").undo.confirm(id=begun.id)
    with pytest.raises(RefusedError) as refused:
        await odd.person().undo.run(id=begun.id)
    assert refused.value.code == code


async def test_a_tool_that_takes_other_input_since_is_refused_when_run(odd):
    made = await odd.module("odd").undo.record(recorded())
    offer_anew(odd.kernel, "odd.fix", input=Other)
    with pytest.raises(RefusedError) as refused:
        await odd.person().undo.run(id=made.id)
    assert refused.value.code == "undo.inverse_input"


async def test_a_tool_that_changed_back_is_run_again(odd):
    made = await odd.module("odd").undo.record(recorded())
    offer_anew(odd.kernel, "odd.fix", outward=True)
    with pytest.raises(RefusedError):
        await odd.person().undo.run(id=made.id)
    offer_anew(odd.kernel, "odd.fix", outward=False)
    assert (await odd.person().undo.run(id=made.id)).results[0].state == "undone"


async def test_a_module_switched_off_since_is_refused_when_run(odd):
    made = await odd.module("odd").undo.record(recorded())
    await odd.kernel.set_enabled("odd", False)
    with pytest.raises(RefusedError) as refused:
        await odd.person().undo.run(id=made.id)
    assert refused.value.code == "undo.inverse_unknown"
    await odd.kernel.set_enabled("odd", True)
    assert (await odd.person().undo.run(id=made.id)).results[0].state == "undone"


async def test_a_withdrawn_tool_is_refused_when_run(odd):
    made = await odd.module("odd").undo.record(recorded())
    odd.kernel.router.withdraw("odd")
    with pytest.raises(RefusedError) as refused:
        await odd.person().undo.run(id=made.id)
    assert refused.value.code == "undo.inverse_unknown"


async def test_the_refusal_is_in_the_preview(odd):
    made = await odd.module("odd").undo.record(recorded())
    offer_anew(odd.kernel, "odd.fix", outward=True)
    plan = (await odd.person().undo.preview(id=made.id)).plan
    assert [step.status for step in plan.steps] == ["not_undoable"]
    assert "undo.inverse_outward" in plan.steps[0].reason


async def test_confirm_checks_the_input_it_corrects(odd):
    begun = await odd.module("odd").undo.begin(recorded())
    with pytest.raises(RefusedError) as refused:
        await odd.module("odd").undo.confirm(id=begun.id, inverse_input={"text": 1})
    assert refused.value.code == "undo.inverse_input"
    assert await odd.state(begun.id) == "pending"


async def test_an_inverse_in_an_added_module_needs_the_person_s_trust(home):
    class Added(Odd):
        manifest = Manifest(1, "odd", "Odd tools.", calls=("undo.*",))

    async with house(home, Source.of(Added, builtin=False, distribution="odd")) as at:
        with pytest.raises(RefusedError) as refused:
            await at.module("notes").undo.record(recorded())
        assert refused.value.code == "undo.inverse_untrusted"
        await at.person(present=True).kernel.trust(name="odd")
        made = await at.module("notes").undo.record(recorded())
        await at.person().kernel.untrust(name="odd")
        with pytest.raises(RefusedError) as again:
            await at.person().undo.run(id=made.id)
        assert again.value.code == "undo.inverse_untrusted"


async def test_an_added_module_reaches_no_recording_until_it_is_trusted(home):
    async with house(home, Source.of(Odd, builtin=False, distribution="odd")) as at:
        with pytest.raises(NotFoundError) as refused:
            await at.module("odd").undo.record(recorded())
        assert refused.value.code == "tool.unknown"
        await at.person(present=True).kernel.trust(name="odd")
        assert (await at.module("odd").undo.record(recorded())).id


@pytest.mark.parametrize("verb", ["record", "begin", "confirm", "abandon", "blobs", "settle_crashed"])
@pytest.mark.parametrize("who", ["cli:person", "web:person:phone", "mcp:agent:juno"])
async def test_recording_is_unknown_to_all_but_modules(odd, who, verb):
    with pytest.raises(NotFoundError) as missing:
        await odd.kernel.enter(who).call(f"undo.{verb}", {})
    with pytest.raises(NotFoundError) as unknown:
        await odd.kernel.enter(who).call("undo.nothing_at_all", {})
    assert missing.value.code == unknown.value.code == "tool.unknown"
    assert missing.value.as_dict()["hint"] == unknown.value.as_dict()["hint"]
    assert f"undo.{verb}" not in {spec.name for spec in odd.kernel.tools.reachable(who)}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"inverse_tool": None, "inverse_input": {}}, "undo.no_inverse"),
        ({"final_reason": "gone for good"}, "undo.no_inverse"),
        ({"touched": [{"resource": "odd:a", "before": "1", "after": "2"}] * 2}, "undo.twice_touched"),
    ],
)
async def test_a_record_that_makes_no_sense_is_refused(odd, changes, code):
    with pytest.raises(UsageError) as refused:
        await odd.module("odd").undo.record({**recorded(), **changes})
    assert refused.value.code == code


async def test_a_module_records_only_what_it_owns(odd):
    touched = [{"resource": "notes:a", "before": "absent", "after": "v:1"}]
    with pytest.raises(RefusedError) as refused:
        await odd.module("odd").undo.record({**recorded(), "touched": touched})
    assert refused.value.code == "undo.foreign_resource"
    begun = await odd.module("odd").undo.begin(recorded())
    with pytest.raises(RefusedError) as later:
        await odd.module("odd").undo.confirm(id=begun.id, touched=touched)
    assert later.value.code == "undo.foreign_resource"


@pytest.mark.parametrize("verb", ["confirm", "abandon"])
async def test_only_the_module_that_began_an_act_settles_it(odd, verb):
    begun = await odd.module("odd").undo.begin(recorded())
    with pytest.raises(NotFoundError) as foreign:
        await odd.module("notes").call(f"undo.{verb}", {"id": begun.id})
    with pytest.raises(NotFoundError) as unknown:
        await odd.module("notes").call(f"undo.{verb}", {"id": "0" * 36})
    assert foreign.value.code == unknown.value.code == "undo.unknown_act"
