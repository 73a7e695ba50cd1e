"""Sessions and turns: as the client says, or as its pauses show."""

import time

import pytest

from tests.mcp.house import house

pytestmark = pytest.mark.anyio


async def where(door, token, **meta):
    answer = await door.call(token, "notes.where", {}, **meta)
    found = answer["result"]["structuredContent"]
    return found["session"], found["turn"]


async def test_the_client_says_which_session_and_turn(door):
    token = await door.token("juno")
    meta = {"takeback/session": "trip to \u00c5bo", "takeback/turn": "3"}
    assert await where(door, token, **meta) == ("trip to \u00c5bo", "3")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_can_say_it_too(door, mode):
    token = await door.token("juno")
    async with door.client(token, mode) as client:
        meta = {"takeback/session": "s1", "takeback/turn": "t1"}
        found = (await client.call_tool("notes.where", {}, meta=meta)).structured_content
    assert (found["session"], found["turn"]) == ("s1", "t1")


@pytest.mark.parametrize("key", ["takeback/session", "takeback/turn"])
@pytest.mark.parametrize("value", ["", "x" * 201, "a\nb", "a\x00b", "\u202eabc", 7, ["x"], {"a": 1}, True])
async def test_a_name_that_can_be_none_is_refused(door, key, value):
    token = await door.token("juno")
    answer = await door.call(token, "notes.where", {}, **{key: value})
    assert answer["error"]["code"] == -32602
    assert key in answer["error"]["message"]


async def test_without_a_word_it_is_one_session_until_a_pause(home, monkeypatch):
    async with house(home, session_gap_minutes=10) as door:
        juno, guest = await door.token("juno"), await door.token("guest")
        now = [time.time()]
        monkeypatch.setattr(time, "time", lambda: now[0])
        first, turn = await where(door, juno)
        assert first
        assert turn is None
        assert (await where(door, guest))[0] != first
        for _ in range(3):
            now[0] += 9 * 60
            assert (await where(door, juno))[0] == first
        now[0] += 11 * 60
        second, _ = await where(door, juno)
        assert second != first
        now[0] -= 3600  # a clock that was set back
        assert (await where(door, juno))[0] != second


async def test_a_named_turn_keeps_the_doors_session(door):
    token = await door.token("juno")
    session, _ = await where(door, token)
    assert await where(door, token, **{"takeback/turn": "9"}) == (session, "9")


async def test_a_session_outlives_a_restart(home):
    async with house(home) as door:
        token = await door.token("juno")
        before = await where(door, token)
    async with house(home) as door:
        assert await where(door, token) == before


async def test_a_session_that_is_over_is_not_taken_up(home, monkeypatch):
    async with house(home) as door:
        token = await door.token("juno")
        before = await where(door, token)
    later = time.time() + 31 * 60
    monkeypatch.setattr(time, "time", lambda: later)
    async with house(home) as door:
        assert await where(door, token) != before
