"""Labels: one strict grammar, and nothing that looks like a label is one."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback import Caller, RefusedError


@pytest.mark.parametrize(
    ("label", "kind", "door", "name"),
    [
        ("module:watchers", "module", None, "watchers"),
        ("mcp:agent:juno", "agent", "mcp", "juno"),
        ("hook:agent:claude-2", "agent", "hook", "claude-2"),
        ("cli:person", "person", "cli", None),
        ("web:person:phone", "person", "web", "phone"),
    ],
)
def test_a_label_is_read(label: str, kind: str, door: str | None, name: str | None) -> None:
    caller = Caller.parse(label)
    assert (caller.kind, caller.door, caller.name, caller.label) == (kind, door, name, label)


@pytest.mark.parametrize(
    "label",
    [
        "",
        "juno",
        "mcp:agent:",
        ":agent:juno",
        "mcp:agent:juno:x",
        "mcp:agent:Juno",
        "MCP:agent:juno",
        "mcp:agent:jun\u043e",
        "mcp:agent:juno ",
        " mcp:agent:juno",
        "mcp:agent:ju no",
        "mcp:agent:*",
        "mcp:agent:juno\n",
        "mcp:agent:juno\0",
        "mcp:agent:-juno",
        "mcp:agent:" + "j" * 64,
        "module:agent:juno",
        "module:person:phone",
        "module:a:b",
        "cli:person:",
        "cli:person:phone:x",
        "cli:module:x",
        "mcp:agent:person:x",
        "person",
        "\u0661:person",
    ],
)
def test_what_is_no_label_is_refused(label: str) -> None:
    with pytest.raises(RefusedError) as refused:
        Caller.parse(label)
    assert refused.value.code == "caller.malformed"


@pytest.mark.parametrize("thing", [None, 3, b"cli:person", ["cli:person"]])
def test_a_label_is_text(thing: object) -> None:
    with pytest.raises(RefusedError):
        Caller.parse(thing)  # type: ignore[arg-type]


@given(st.text(max_size=80))
def test_a_name_never_makes_another_kind_of_caller(name: str) -> None:
    try:
        caller = Caller.agent("mcp", name)
    except RefusedError:
        return
    assert caller.kind == "agent"
    assert caller.door == "mcp"
    assert caller.name == name


def test_a_module_named_person_is_still_a_module() -> None:
    assert Caller.parse("module:person").kind == "module"


def test_an_agent_is_the_same_over_any_door_and_the_person_on_any_surface() -> None:
    assert Caller.parse("mcp:agent:juno").same_actor(Caller.parse("hook:agent:juno"))
    assert not Caller.parse("mcp:agent:juno").same_actor(Caller.parse("mcp:agent:june"))
    assert Caller.parse("cli:person").same_actor(Caller.parse("web:person:phone"))
    assert not Caller.parse("module:juno").same_actor(Caller.parse("mcp:agent:juno"))
    assert not Caller.parse("module:a").same_actor(Caller.parse("module:b"))


def test_an_error_survives_a_trip_through_a_pickle() -> None:
    with pytest.raises(RefusedError) as refused:
        Caller.parse("?")
    again = pickle.loads(pickle.dumps(refused.value))
    assert isinstance(again, RefusedError)
    assert again.as_dict() == refused.value.as_dict()
