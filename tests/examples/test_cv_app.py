"""The CV app over HTTP: an assistant writes to all eight tables while a person edits by hand."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn

from cv_app.app import create_app

pytestmark = pytest.mark.anyio

ROWS = {
    "skill": {"name": "Python", "level": 5},
    "experience": {
        "title": "Developer",
        "started": "2020-02-29",
        "salary": "1234567890.10",
        "tasks": ["b", "a"],
    },
    "user_language": {"name": "German", "level": "C2"},
    "education": {"school": "ETH", "ended": "2015-06-30"},
    "certificate": {"name": "Diver", "issued": "2021-03-28T02:30:00.123456+00:00", "seal": "AAECAw=="},
    "cv_project": {"name": "Undo"},
    "cv_extra": {"kind": "hobby", "content": {"z": [1.5, None], "a": "\u00e4"}},
}


class Client:
    """Somebody at the app: the person of a CV, and the assistant that works for them."""

    def __init__(self, http: httpx2.AsyncClient, user: int) -> None:
        self.http = http
        self.user = user

    async def ask(self, method: str, path: str, status: int = 200, **more: Any) -> Any:
        """Ask the app as the person; answers the JSON."""
        headers = {"X-User": str(self.user)}
        answer = await self.http.request(method, f"/v1/{path}", headers=headers, **more)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def say(self, content: str) -> Any:
        """Say something; answers the message and its run."""
        return await self.ask("POST", "chat/me/messages", json={"content": content})

    async def work(self, run: int, tool: str, given: object, status: int = 200) -> Any:
        """The assistant calls a tool in a run."""
        return await self.ask("POST", f"runs/{run}/{tool}", status, json=given)

    async def end(self, run: int, reply: str = "Done.") -> None:
        """The assistant is through."""
        await self.work(run, "end", {"reply": reply})

    async def turn(self, content: str, *calls: tuple[str, object]) -> tuple[int, list[Any]]:
        """A message and the calls it causes; answers the message's id and the calls' answers."""
        said = await self.say(content)
        answers = [await self.work(said["run"], tool, given) for tool, given in calls]
        await self.end(said["run"])
        return said["message"], answers

    async def cv(self) -> Any:
        """The whole CV."""
        return await self.ask("GET", "cv")

    async def edit(self, message: int, content: str, status: int = 200, **how: Any) -> Any:
        """Edit a message."""
        return await self.ask("PUT", f"chat/me/messages/{message}", status, json={"content": content, **how})

    async def messages(self) -> list[str]:
        """What was said."""
        return [one["content"] for one in await self.ask("GET", "chat/me/messages")]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path) -> str:
    if request.param == "sqlite":
        return f"sqlite+aiosqlite:///{tmp_path / 'cv.db'}"
    server = request.getfixturevalue("postgres")
    return str(server.url(server.fresh())).replace("+psycopg", "+asyncpg")


@pytest.fixture
async def client(url):
    async with serving(url) as http:
        made = await http.post("/v1/accounts", params={"email": "a@example.org"})
        yield Client(http, made.json()["user"])


@asynccontextmanager
async def serving(url: str):
    """The app behind a real server on loopback."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(create_app(url), log_level="error", lifespan="on")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        async with httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=30
        ) as http:
            yield http
    finally:
        server.should_exit = True
        with anyio.CancelScope(shield=True):
            await task


async def test_an_assistant_writes_to_all_eight_tables_and_all_of_it_goes_back(client):
    first = await client.cv()
    profile = first["profile"][0]["id"]
    begun, _ = await client.turn("hello")
    made, answers = await client.turn(
        "write my CV", *((f"create_{name}", [row]) for name, row in ROWS.items())
    )
    ids = {name: answer["ids"][0] for name, answer in zip(ROWS, answers, strict=True)}
    await client.turn(
        "polish it",
        (f"update_profile/{profile}", {"headline": "Engineer", "summary": "Ten years."}),
        (f"update_experience/{ids['experience']}", {"title": "Senior Developer"}),
        ("create_cv_project", [{"name": "Rewind", "experience_id": ids["experience"]}]),
        ("delete_user_language", [ids["user_language"]]),
    )
    await client.turn("drop the job", ("delete_experience", [ids["experience"]]))
    assert [row["name"] for row in (await client.cv())["cv_project"]] == ["Undo"]

    told = await client.ask("GET", f"chat/me/messages/{made}/rollback-preview")
    assert told["conflicts"] == []
    phrases = {item["phrase"] for item in told["items"]}
    assert {"1 skill will be deleted", "1 profile will revert"} <= phrases
    await client.edit(made, "write it shorter", roll_back=True, digest=told["digest"])
    assert await client.cv() == first
    assert await client.messages() == ["hello", "write it shorter"]
    assert begun < made


async def test_what_the_person_wrote_by_hand_stays(client):
    profile = (await client.cv())["profile"][0]["id"]
    message, answers = await client.turn(
        "write",
        (f"update_profile/{profile}", {"headline": "Engineer"}),
        ("create_skill", [{"name": "Python", "level": 3}, {"name": "Rust", "level": 1}]),
    )
    await client.ask("PATCH", f"cv/profile/{profile}", json={"summary": "My own words."})
    await client.ask("POST", "cv/skill", json={"name": "Cooking", "level": 5})
    await client.edit(message, "don't", roll_back=True)
    cv = await client.cv()
    assert (cv["profile"][0]["headline"], cv["profile"][0]["summary"]) == ("", "My own words.")
    assert [row["name"] for row in cv["skill"]] == ["Cooking"]
    assert len(answers[1]["ids"]) == 2


async def test_what_was_polished_by_hand_is_a_conflict_and_nothing_happens(client):
    message, (made,) = await client.turn("write", ("create_skill", [{"name": "Python", "level": 3}]))
    await client.ask("PATCH", f"cv/skill/{made['ids'][0]}", json={"level": 4})
    before = await client.cv()
    refused = await client.edit(message, "don't", status=409, roll_back=True)
    (conflict,) = refused["detail"]["plan"]["conflicts"]
    assert (conflict["table"], conflict["key"]) == ("skill", {"id": made["ids"][0]})
    assert await client.cv() == before
    assert await client.messages() == ["write"]


async def test_three_messages_that_touch_one_entry(client):
    first, (made,) = await client.turn("add it", ("create_experience", [{"title": "Developer"}]))
    job = made["ids"][0]
    second, _ = await client.turn("rename it", (f"update_experience/{job}", {"title": "Senior Developer"}))
    third, _ = await client.turn("drop it", ("delete_experience", [job]))
    await client.end((await client.edit(third, "keep it", roll_back=True))["run"])
    (row,) = (await client.cv())["experience"]
    assert (row["id"], row["title"]) == (job, "Senior Developer")
    await client.end((await client.edit(second, "leave it", roll_back=True))["run"])
    assert [row["title"] for row in (await client.cv())["experience"]] == ["Developer"]
    await client.edit(first, "never mind", roll_back=True)
    assert (await client.cv())["experience"] == []


async def test_the_text_alone_keeps_what_was_written_for_good(client):
    first, _ = await client.turn("a skill", ("create_skill", [{"name": "Python"}]))
    second, _ = await client.turn("another", ("create_skill", [{"name": "Rust"}]))
    run = await client.edit(second, "another one")
    await client.end(run["run"])
    await client.edit(first, "none", roll_back=True)
    assert [row["name"] for row in (await client.cv())["skill"]] == ["Rust"]


async def test_a_run_under_way_is_busy_and_a_run_that_is_over_writes_no_more(client):
    message, _ = await client.turn("hello")
    said = await client.say("write")
    refused = await client.edit(message, "hi", status=409, roll_back=True)
    assert refused["detail"] == {"code": "agent_busy"}
    await client.end(said["run"])
    await client.work(said["run"], "create_skill", [{"name": "Late"}], status=409)
    assert (await client.cv())["skill"] == []


async def test_a_turn_that_died_halfway_keeps_what_it_committed_and_rolls_back_whole(url):
    async with serving(url) as http:
        made = await http.post("/v1/accounts", params={"email": "a@example.org"})
        client = Client(http, made.json()["user"])
        said = await client.say("two skills")
        await client.work(said["run"], "create_skill", [{"name": "Python"}])
    async with serving(url) as http:
        client = Client(http, client.user)
        assert [row["name"] for row in (await client.cv())["skill"]] == ["Python"]
        await client.edit(said["message"], "no skills", roll_back=True)
        assert (await client.cv())["skill"] == []


async def test_the_assistants_draft_goes_with_what_it_was_derived_from(client):
    said = await client.say("start a job")
    await client.work(said["run"], "draft", {"entry": 7})
    await client.end(said["run"])
    await client.edit(said["message"], "start another", roll_back=True)
    assert await client.messages() == ["start another"]


async def test_a_guest_keeps_everything_at_signing_up(url):
    async with serving(url) as http:
        user = (await http.post("/v1/guests")).json()["user"]
        client = Client(http, user)
        message, _ = await client.turn("write", ("create_skill", [{"name": "Python"}]))
        signed = await http.post("/v1/accounts", params={"email": "g@example.org", "guest": user})
        assert signed.json() == {"user": user}
        assert await client.messages() == ["write"]
        await client.edit(message, "don't", roll_back=True)
        assert (await client.cv())["skill"] == []


async def test_a_tool_that_fails_leaves_neither_rows_nor_a_way_back(client):
    said = await client.say("twice the same")
    await client.work(said["run"], "create_skill", [{"name": "Python"}])
    refused = await client.work(said["run"], "create_skill", [{"name": "Go"}, {"name": "Python"}], status=409)
    assert refused["detail"] == {"code": "taken"}
    assert [row["name"] for row in (await client.cv())["skill"]] == ["Python"]
    await client.end(said["run"])
    told = await client.ask("GET", f"chat/me/messages/{said['message']}/rollback-preview")
    assert [item["phrase"] for item in told["items"]] == ["1 skill will be deleted"]


async def test_a_preview_that_is_out_of_date_is_refused(client):
    message, _ = await client.turn("write", ("create_skill", [{"name": "Python"}]))
    told = await client.ask("GET", f"chat/me/messages/{message}/rollback-preview")
    await client.turn("more", ("create_skill", [{"name": "Rust"}]))
    refused = await client.edit(message, "x", status=409, roll_back=True, digest=told["digest"])
    assert refused["detail"]["code"] == "journal.changed"
    assert len((await client.cv())["skill"]) == 2
