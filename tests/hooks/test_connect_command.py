"""`takeback connect`, `disconnect` and `gate` as a person and an agent run them."""

import json
import shlex

from tests.cli.running import Cli
from tests.hooks.desk import AgentShell, recorded, repository


def test_what_connect_writes_captures_and_disconnect_takes_it_out(cli: Cli):
    settings = cli.work / ".claude" / "settings.local.json"
    dry = cli.json("connect", "claude", "--project", "--dry-run")["connection"]
    assert dry["changed"]
    assert not settings.exists()
    done = cli.json("connect", "claude", "--project")["connection"]
    assert done["path"] == str(settings)
    command = json.loads(settings.read_text())["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
    root = repository(cli.work / "repo")
    agent = AgentShell(cli.work, cli.environ)
    for event in recorded("claude", root)[2:4]:
        assert agent.run(command, json.dumps(event).encode()) == (0, b"", b"")
        (root / "a.txt").write_text("two\n")
    agent.end()
    (act,) = cli.json("log")["acts"]
    assert act["actor"] == "hook:agent:claude"
    assert cli.json("disconnect", "claude", "--project")["connection"]["changed"]
    assert not settings.exists()


def test_the_gate_by_its_own_name_does_the_same(cli: Cli):
    cli.json("log")
    root = repository(cli.work / "repo")
    agent = AgentShell(cli.work, cli.environ)
    command = shlex.join(cli.command("gate", "--agent", "gemini"))
    for event in recorded("gemini", root)[2:4]:
        assert agent.run(command, json.dumps(event).encode()) == (0, b"", b"")
        (root / "a.txt").write_text("two\n")
    agent.end()
    assert len(cli.json("log")["acts"]) == 1


def test_a_gate_for_nobody_ends_well(cli: Cli):
    cli.json("log")
    for words in ("gate", "gate --agent nobody", "gate --agent claude --and more"):
        ran = cli.run(*shlex.split(words), stdin="{}")
        assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_settings_that_are_no_json_are_refused_with_a_hint(cli: Cli):
    settings = cli.work / ".claude" / "settings.local.json"
    settings.parent.mkdir()
    settings.write_text("{ not json")
    ran = cli.run("connect", "claude", "--project", "--json")
    assert ran.code == 4
    assert ran.json["error"]["code"] == "connect.not_json"
    assert ran.json["error"]["hint"]
    assert settings.read_text() == "{ not json"


def test_words_for_a_person(cli: Cli):
    assert "would be changed" in cli.run("connect", "cursor", "--project", "--dry-run").err
    assert "was changed" in cli.run("connect", "cursor", "--project").err
    assert "connected already" in cli.run("connect", "cursor", "--project").err
    assert "was changed" in cli.run("disconnect", "cursor", "--project").err
    assert cli.run("connect", "emacs").code == 2
