"""Agents: added, found by their tokens, changed and ended by the person alone."""

import hashlib
import time

import anyio
import pytest

from takeback import ConflictError, Kernel, NotFoundError, RefusedError, TakebackError, UsageError
from takeback_core.agents.module import AgentsModule

pytestmark = pytest.mark.anyio


@pytest.fixture
async def kernel(tmp_path):
    async with Kernel(tmp_path / "home", modules=[AgentsModule]) as running:
        yield running


@pytest.fixture
def person(kernel):
    return kernel.enter("cli:person", present=True)


@pytest.fixture
def module(kernel):
    return kernel.enter("module:agents")


async def refusal(module, token):
    with pytest.raises(RefusedError) as caught:
        await module.call("agents.authenticate", {"token": token})
    return caught.value.as_dict()


async def test_add_answers_a_token_that_is_recognised(person, module, tmp_path):
    root = tmp_path / "docs"
    root.mkdir()
    added = await person.call("agents.add", {"name": "juno", "roots": [str(root)]})
    assert added.token.startswith("tb_")
    assert len(added.token) >= 46
    assert added.agent.roots == [str(root)]
    assert added.token not in repr(added)
    known = await module.call("agents.authenticate", {"token": added.token})
    assert (known.name, known.roots, known.assistant) == ("juno", [str(root)], False)


async def test_the_list_has_everything_but_the_token(person):
    added = await person.call("agents.add", {"name": "juno", "assistant": True, "expires": 3})
    listed = (await person.call("agents.list")).agents
    assert listed == [added.agent]
    assert listed[0].assistant
    assert listed[0].created.endswith("Z")
    assert listed[0].expires > listed[0].created
    assert listed[0].revoked is None
    assert added.token not in listed[0].model_dump_json()


async def test_two_agents_have_two_tokens(person, module):
    one = (await person.call("agents.add", {"name": "juno"})).token
    other = (await person.call("agents.add", {"name": "guest"})).token
    assert one != other
    assert (await module.call("agents.authenticate", {"token": other})).name == "guest"


async def test_a_name_is_taken_once(person):
    await person.call("agents.add", {"name": "juno"})
    with pytest.raises(ConflictError, match=r"agent\.exists"):
        await person.call("agents.add", {"name": "juno"})


@pytest.mark.parametrize(
    "name", ["", "Juno", "a b", "a:b", "*", "-a", "jun\u043e", "a" * 64, "juno\n", "../x"]
)
async def test_a_name_that_can_be_none(person, name):
    with pytest.raises(UsageError, match=r"agent\.name"):
        await person.call("agents.add", {"name": name})
    assert (await person.call("agents.list")).agents == []


async def test_one_assistant_at_a_time(person):
    await person.call("agents.add", {"name": "juno", "assistant": True})
    with pytest.raises(ConflictError) as caught:
        await person.call("agents.add", {"name": "other", "assistant": True})
    assert caught.value.code == "agent.assistant"
    assert "juno" in caught.value.message
    await person.call("agents.revoke", {"name": "juno"})
    assert (await person.call("agents.add", {"name": "other", "assistant": True})).agent.assistant


async def test_rotate_ends_the_old_token(person, module):
    old = (await person.call("agents.add", {"name": "juno"})).token
    new = (await person.call("agents.rotate", {"name": "juno"})).token
    assert (await module.call("agents.authenticate", {"token": new})).name == "juno"
    assert (await refusal(module, old))["code"] == "agent.token"


async def test_unknown_revoked_and_expired_have_the_same_words(person, module, monkeypatch, caplog):
    revoked = (await person.call("agents.add", {"name": "gone"})).token
    expired = (await person.call("agents.add", {"name": "late", "expires": 1})).token
    assert (await module.call("agents.authenticate", {"token": expired})).name == "late"
    await person.call("agents.revoke", {"name": "gone"})
    later = time.time() + 86_401
    monkeypatch.setattr(time, "time", lambda: later)
    told = [await refusal(module, token) for token in ("tb_unknown", revoked, expired, "")]
    assert told[0] == told[1] == told[2] == told[3]
    assert "unknown" in caplog.text
    assert "revoked (gone)" in caplog.text
    assert "expired (late)" in caplog.text
    assert revoked not in caplog.text


async def test_a_revoked_agent_can_be_added_again_with_new_rights(person, module, tmp_path):
    (tmp_path / "docs").mkdir()
    old = await person.call("agents.add", {"name": "juno", "roots": [str(tmp_path / "docs")]})
    revoked = await person.call("agents.revoke", {"name": "juno"})
    assert revoked.agent.revoked
    again = await person.call("agents.revoke", {"name": "juno"})
    assert again.agent.revoked == revoked.agent.revoked
    with pytest.raises(ConflictError, match=r"agent\.revoked"):
        await person.call("agents.rotate", {"name": "juno"})
    new = await person.call("agents.add", {"name": "juno"})
    assert (await module.call("agents.authenticate", {"token": new.token})).roots == []
    assert (await refusal(module, old.token))["code"] == "agent.token"


@pytest.mark.parametrize("verb", ["rotate", "revoke"])
async def test_an_unknown_agent(person, verb):
    with pytest.raises(NotFoundError, match=r"agent\.unknown"):
        await person.call(f"agents.{verb}", {"name": "nobody"})


async def test_grant_and_withdraw(person, module, tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    token = (await person.call("agents.add", {"name": "juno", "roots": [str(first), str(first)]})).token
    for _ in range(2):
        granted = await person.call("agents.grant", {"name": "juno", "root": str(second)})
        assert granted.agent.roots == [str(first), str(second)]
    first.rmdir()  # a root that is gone can still be taken away
    withdrawn = await person.call("agents.withdraw", {"name": "juno", "root": str(first)})
    assert withdrawn.agent.roots == [str(second)]
    assert (await module.call("agents.authenticate", {"token": token})).roots == [str(second)]
    with pytest.raises(NotFoundError, match=r"agent\.root_unknown"):
        await person.call("agents.withdraw", {"name": "juno", "root": str(first)})


@pytest.mark.parametrize(
    ("expires", "days"),
    [(1, 1), ("30", 30), (36_500, 36_500), ("2099-01-01T00:00:00Z", None), ("2099-01-01", None)],
)
async def test_expiry_in_days_or_as_a_moment(person, expires, days):
    agent = (await person.call("agents.add", {"name": "juno", "expires": expires})).agent
    if days is None:
        assert agent.expires == "2099-01-01T00:00:00.000Z"
    else:
        assert agent.expires[:4] >= str(time.gmtime().tm_year)


@pytest.mark.parametrize("expires", [0, -1, 36_501, "0", "soon", "2001-01-01T00:00:00Z", "", "9" * 400, "-5"])
async def test_an_expiry_that_can_be_none(person, expires):
    with pytest.raises(UsageError, match=r"agent\.expires"):
        await person.call("agents.add", {"name": "juno", "expires": expires})
    assert (await person.call("agents.list")).agents == []


@pytest.mark.parametrize("label", ["mcp:agent:juno", "module:mcp", "module:agents"])
@pytest.mark.parametrize("verb", ["add", "rotate", "revoke", "grant", "withdraw"])
async def test_changes_are_the_persons_alone(kernel, person, label, verb):
    await person.call("agents.add", {"name": "juno"})
    with pytest.raises(NotFoundError, match=r"tool\.unknown"):
        await kernel.enter(label).call(f"agents.{verb}", {"name": "juno"})


@pytest.mark.parametrize("label", ["mcp:agent:juno", "cli:person"])
async def test_nobody_but_a_module_can_try_tokens(kernel, person, label):
    token = (await person.call("agents.add", {"name": "juno"})).token
    with pytest.raises(NotFoundError, match=r"tool\.unknown"):
        await kernel.enter(label).call("agents.authenticate", {"token": token})


@pytest.mark.parametrize("token", [None, 7, ["tb_x"], "tb_" + "s" * 600])
async def test_a_malformed_token_is_quoted_nowhere(module, token):
    with pytest.raises(TakebackError) as caught:
        await module.call("agents.authenticate", {"token": token})
    assert "sss" not in str(caught.value.as_dict())
    assert caught.value.code == "args.invalid"


async def test_agents_outlive_a_restart(tmp_path):
    async with Kernel(tmp_path / "home", modules=[AgentsModule]) as kernel:
        person = kernel.enter("cli:person")
        kept = await person.call("agents.add", {"name": "juno", "expires": 9})
        ended = await person.call("agents.add", {"name": "gone"})
        await person.call("agents.revoke", {"name": "gone"})
        before = await person.call("agents.list")
    async with Kernel(tmp_path / "home", modules=[AgentsModule]) as kernel:
        assert await kernel.enter("cli:person").call("agents.list") == before
        module = kernel.enter("module:agents")
        assert (await module.call("agents.authenticate", {"token": kept.token})).name == "juno"
        assert (await refusal(module, ended.token))["code"] == "agent.token"


async def test_each_change_is_an_event_that_comes_when_it_is_true(kernel, person, module, tmp_path):
    (tmp_path / "docs").mkdir()
    heard = []
    kernel.events.on("agents.changed", lambda seq, event: heard.append(event.name))
    token = (await person.call("agents.add", {"name": "juno"})).token
    await person.call("agents.grant", {"name": "juno", "root": str(tmp_path / "docs")})
    await person.call("agents.withdraw", {"name": "juno", "root": str(tmp_path / "docs")})
    assert heard == ["juno"] * 3
    accepted = []

    async def look(seq, event):
        try:
            await module.call("agents.authenticate", {"token": token})
        except RefusedError:
            accepted.append(False)
        else:
            accepted.append(True)

    kernel.events.on("agents.changed", look)
    await person.call("agents.revoke", {"name": "juno"})
    await kernel.events.close()
    assert accepted == [False]


async def test_many_changes_at_once_leave_one_truth(person, module):
    await person.call("agents.add", {"name": "juno"})
    tokens = []

    async def rotate() -> None:
        tokens.append((await person.call("agents.rotate", {"name": "juno"})).token)

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(rotate)
    good = []
    for token in tokens:
        try:
            good.append((await module.call("agents.authenticate", {"token": token})).name)
        except RefusedError:
            continue
    assert good == ["juno"]


async def test_a_disk_that_fails_changes_nothing(kernel, person, module):
    token = (await person.call("agents.add", {"name": "juno"})).token
    await kernel.store.transaction(
        lambda tx: tx.execute(
            "CREATE TRIGGER broken BEFORE INSERT ON agents BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    )
    for verb in ("revoke", "rotate"):
        with pytest.raises(TakebackError, match=r"call\.crashed"):
            await person.call(f"agents.{verb}", {"name": "juno"})
        assert (await module.call("agents.authenticate", {"token": token})).name == "juno"
    with pytest.raises(TakebackError, match=r"call\.crashed"):
        await person.call("agents.add", {"name": "other"})
    assert [agent.name for agent in (await person.call("agents.list")).agents] == ["juno"]


async def test_48_only_a_digest_is_stored(kernel, person):
    token = (await person.call("agents.add", {"name": "juno"})).token
    row = await kernel.store.read(lambda db: db.execute("SELECT * FROM agents").fetchone())
    assert row["digest"] == hashlib.sha256(token.encode()).digest()
    assert token not in str(tuple(row))


async def test_tables_are_granted_and_withdrawn(person, module):
    token = (await person.call("agents.add", {"name": "juno", "tables": ["main.skill", "main.skill"]})).token
    for _ in range(2):
        granted = await person.call("agents.grant", {"name": "juno", "table": "main.audit.*"})
        assert granted.agent.tables == ["main.skill", "main.audit.*"]
    known = await module.call("agents.authenticate", {"token": token})
    assert (known.tables, known.roots) == (["main.skill", "main.audit.*"], [])
    left = await person.call("agents.withdraw", {"name": "juno", "table": "main.skill"})
    assert left.agent.tables == ["main.audit.*"]
    assert (await module.call("agents.authenticate", {"token": token})).tables == ["main.audit.*"]


async def test_tables_outlive_the_kernel(tmp_path):
    async with Kernel(tmp_path / "home", modules=[AgentsModule]) as kernel:
        await kernel.enter("cli:person").call("agents.add", {"name": "juno", "tables": ["main.*"]})
    async with Kernel(tmp_path / "home", modules=[AgentsModule]) as kernel:
        (juno,) = (await kernel.enter("cli:person").call("agents.list")).agents
    assert juno.tables == ["main.*"]


@pytest.mark.parametrize(
    "table",
    ["", "skill", "main.", ".skill", "Main.skill", "main.sk*", "main.*.skill", "main.a\nb"],
)
async def test_what_names_no_table_is_not_granted(person, table):
    await person.call("agents.add", {"name": "juno"})
    with pytest.raises(UsageError, match=r"agent\.table"):
        await person.call("agents.grant", {"name": "juno", "table": table})
    assert (await person.call("agents.list")).agents[0].tables == []


async def test_a_table_that_was_not_granted_is_not_withdrawn(person):
    await person.call("agents.add", {"name": "juno", "tables": ["main.*"]})
    with pytest.raises(NotFoundError, match=r"agent\.table_unknown"):
        await person.call("agents.withdraw", {"name": "juno", "table": "main.skill"})


@pytest.mark.parametrize("what", [{}, {"root": "/tmp", "table": "main.skill"}])
async def test_a_grant_names_one_thing(person, what):
    await person.call("agents.add", {"name": "juno"})
    with pytest.raises(UsageError, match=r"args\.invalid"):
        await person.call("agents.grant", {"name": "juno", **what})


@pytest.mark.parametrize("what", ["root", "table"])
async def test_a_grant_wants_the_person_there(kernel, person, tmp_path, what):
    (tmp_path / "docs").mkdir()
    given = {"name": "juno", what: str(tmp_path / "docs") if what == "root" else "main.skill"}
    before = (await person.call("agents.add", {"name": "juno"})).agent
    with pytest.raises(RefusedError, match=r"call\.presence"):
        await kernel.enter("cli:person").call("agents.grant", given)
    told = (await kernel.enter("cli:person", dry_run=True).call("agents.grant", given)).agent
    assert [*told.roots, *told.tables] == [given[what]]
    assert (await person.call("agents.list")).agents == [before]
    granted = (await person.call("agents.grant", given)).agent
    assert [*granted.roots, *granted.tables] == [given[what]]


async def test_a_folder_is_granted_by_its_own_path_alone(person, tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (tmp_path / "link").symlink_to(docs)
    await person.call("agents.add", {"name": "juno"})
    with pytest.raises(RefusedError, match=r"agent\.root") as refused:
        await person.call("agents.grant", {"name": "juno", "root": f"{tmp_path}/link"})
    assert str(docs) in refused.value.message
    for way in (f"{docs}/", f"{tmp_path}/link/../docs"):
        granted = await person.call("agents.grant", {"name": "juno", "root": way})
        assert granted.agent.roots == [str(docs)]
