"""What gives power asks on a terminal first: grants, modules, any tool that wants the person there."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Cli, Ran, over_a_home
from tests.cli.terminal import Terminal, answered, said_yes

ADDED = '''
from pydantic import BaseModel, ConfigDict

from takeback import Context, Module, tool


class Given(BaseModel):
    model_config = ConfigDict(extra="forbid")
    what: str = ""


class Burnt(BaseModel):
    what: str


class OvenModule(Module):
    """Something that a stranger wrote."""

    @tool(effect="write", reach=("person",), presence=True)
    async def burn(self, ctx: Context, args: Given) -> Burnt:
        """Burn something."""
        return Burnt(what=args.what)

    @tool(effect="read", reach=("person",), presence=True)
    async def peek(self, ctx: Context, args: Given) -> Burnt:
        """Look inside."""
        return Burnt(what="bread")
'''


@pytest.fixture(scope="module")
def oven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A daemon that knows an added module, which is switched off."""
    site = tmp_path_factory.mktemp("packages")
    (site / "oven").mkdir()
    (site / "oven" / "__init__.py").touch()
    (site / "oven" / "module.py").write_text(ADDED)
    (site / "oven" / "module.toml").write_text('api = 1\nname = "oven"\nsummary = "Burns things."\n')
    about = site / "oven-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: oven-of-somebody\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[takeback.modules]\noven = oven.module:OvenModule\n")
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    for cli in over_a_home(PYTHONPATH=os.pathsep.join(paths)):
        daemon = cli.serve()
        assert daemon.ready["ok"], daemon.ready
        yield cli
        assert daemon.end() == 0, daemon.log.read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    return tmp_path / "docs"


@pytest.fixture
def juno(served: Cli) -> Iterator[str]:
    served.json("agents", "add", "juno")
    yield "juno"
    served.json("agents", "revoke", "juno")


def rights(cli: Cli) -> list[str]:
    (agent,) = [agent for agent in cli.json("agents")["agents"] if agent["name"] == "juno"]
    return [*agent["roots"], *agent["tables"]]


def standing(cli: Cli, name: str) -> tuple[str, bool]:
    (module,) = [module for module in cli.json("modules")["modules"] if module["name"] == name]
    return module["state"], module["trusted"]


def refused(ran: Ran) -> Any:
    assert ran.code == 4, ran
    return json.loads(ran.out)["error"]


def test_a_folder_is_granted_after_a_yes(served: Cli, juno: str, folder: Path):
    args = ("agents", "grant", juno, "--root", str(folder))
    error = refused(served.run(*args, "--json"))
    assert (error["code"], "terminal" in error["hint"]) == ("presence.no_terminal", True)
    assert rights(served) == []
    question, ran = answered(served, "n", *args, "--json")
    assert question == f"Let juno touch {folder}? [y/N]: "
    assert refused(ran)["code"] == "presence.declined"
    assert rights(served) == []
    _, ran = answered(served, "y", *args, "--json")
    assert (ran.code, ran.json["agent"]["roots"]) == (0, [str(folder)])
    assert rights(served) == [str(folder)]
    assert served.json("agents", "withdraw", juno, "--root", str(folder))["agent"]["roots"] == []


def test_one_question_is_about_all_that_is_granted(served: Cli, juno: str, folder: Path):
    more = ("--root", str(folder.parent), "--table", "main.skill", "--table", "main.audit.*")
    args = ("agents", "grant", juno, "--root", str(folder), *more, "--json")
    wanted = f"{folder}, {folder.parent}, the table main.skill and every table of main.audit"
    question, ran = answered(served, "", *args)
    assert question == f"Let juno touch {wanted}? [y/N]: "
    assert refused(ran)["code"] == "presence.declined"
    assert rights(served) == []
    said_yes(served, *args[:-1])
    assert rights(served) == [str(folder), str(folder.parent), "main.skill", "main.audit.*"]


def test_the_question_names_where_a_link_leads(served: Cli, juno: str, folder: Path):
    link = served.work / "link"
    link.symlink_to(folder)
    question, ran = answered(served, "y", "agents", "grant", juno, "--root", "link")
    assert question == f"Let juno touch {folder}? [y/N]: "
    assert ran.code == 0
    assert rights(served) == [str(folder)]


def test_a_name_does_not_steer_the_terminal(served: Cli, juno: str, tmp_path: Path):
    (tmp_path / "a\x1b[2K\u202eb").mkdir()
    args = ("agents", "grant", juno, "--root", f"{tmp_path}/a\x1b[2K\u202eb")
    question, _ = answered(served, "n", *args)
    assert question == f"Let juno touch {tmp_path}/a\\x1b[2K\\u202eb? [y/N]: "


def test_what_is_put_in_the_place_of_a_folder_meanwhile_is_not_granted(
    served: Cli, juno: str, folder: Path, tmp_path: Path
):
    terminal = Terminal(served, "agents", "grant", juno, "--root", str(folder), "--json")
    terminal.wait_for("[y/N]")
    (tmp_path / "secret").mkdir()
    folder.rmdir()
    folder.symlink_to(tmp_path / "secret")
    terminal.type("y")
    assert refused(terminal.end())["code"] == "agent.root"
    assert rights(served) == []


def test_one_bad_folder_of_many_is_told_before_anything_is_asked_or_given(
    served: Cli, juno: str, folder: Path
):
    args = ("agents", "grant", juno, "--root", str(folder), "--root", "/nowhere/at/all", "--json")
    ran = Terminal(served, *args).end()
    assert (refused(ran)["code"], "[y/N]" in ran.err) == ("agent.root", False)
    assert rights(served) == []


@pytest.mark.parametrize(
    ("args", "code", "exit_code"),
    [
        (["agents", "grant", "nobody", "--table", "main.skill"], "agent.unknown", 5),
        (["agents", "grant", "juno", "--root", "/nowhere/at/all"], "agent.root", 4),
        (["agents", "grant", "juno", "--table", "skill"], "agent.table", 2),
        (["modules", "enable", "nothing"], "module.unknown", 5),
        (["modules", "disable", "nothing"], "module.unknown", 5),
        (["modules", "disable", "kernel"], "module.needed", 1),
        (["modules", "disable", "cli"], "module.own_door", 4),
        (["modules", "trust", "nothing"], "module.unknown", 5),
        (["modules", "trust", "files"], "module.builtin", 1),
        (["modules", "untrust", "files"], "module.builtin", 1),
        (["tools", "call", "kernel.trust", '{"name": "nothing"}'], "module.unknown", 5),
        (["tools", "call", "kernel.trust", '{"nam": "x"}'], "args.invalid", 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_what_can_not_be_is_told_without_a_question(
    served: Cli, juno: str, args: list[str], code: str, exit_code: int
):
    for ran in (served.run(*args, "--json"), Terminal(served, *args, "--json").end()):
        assert (ran.code, json.loads(ran.out)["error"]["code"]) == (exit_code, code)
        assert "[y/N]" not in ran.err


def test_a_module_is_switched_off_and_on_after_a_yes(served: Cli):
    for verb, before, after in (("disable", "running", "off"), ("enable", "off", "running")):
        args = ("modules", verb, "watchers", "--json")
        assert refused(served.run(*args))["code"] == "presence.no_terminal"
        question, ran = answered(served, "n", *args)
        onoff = "off" if verb == "disable" else "on"
        assert question == f"Switch the module watchers {onoff}, now and at every start? [y/N]: "
        assert refused(ran)["code"] == "presence.declined"
        assert standing(served, "watchers")[0] == before
        assert said_yes(served, *args[:-1])["state"] == after
        assert standing(served, "watchers")[0] == after


def test_ctrl_c_at_the_question_changes_nothing(served: Cli):
    terminal = Terminal(served, "modules", "disable", "watchers")
    terminal.wait_for("[y/N]")
    terminal.press_ctrl_c()
    assert terminal.end().code == 130
    assert standing(served, "watchers")[0] == "running"


def test_what_takes_power_away_asks_nothing(oven: Cli):
    said_yes(oven, "modules", "trust", "oven")
    assert oven.json("modules", "untrust", "oven")["trusted"] is False


def test_an_added_module_is_switched_on_and_trusted_after_a_yes(oven: Cli):
    whose = "which is no part of takeback and can do all that you can"
    steps = [
        (
            "enable",
            f"Run the module oven of oven-of-somebody, {whose}, now and at every start?",
            ("running", False),
        ),
        (
            "trust",
            "Let the module oven of oven-of-somebody use what only modules may use?",
            ("running", True),
        ),
    ]
    for verb, asked, after in steps:
        args = ("modules", verb, "oven", "--json")
        before = standing(oven, "oven")
        assert refused(oven.run(*args))["code"] == "presence.no_terminal"
        question, ran = answered(oven, "n", *args)
        assert question == f"{asked} [y/N]: "
        assert refused(ran)["code"] == "presence.declined"
        assert standing(oven, "oven") == before
        said_yes(oven, *args[:-1])
        assert standing(oven, "oven") == after
    oven.json("modules", "untrust", "oven")


def test_any_tool_that_wants_the_person_is_called_after_a_yes(oven: Cli):
    said_yes(oven, "modules", "enable", "oven")
    given = '{"what": "toast"}'
    args = ("tools", "call", "oven.burn", given, "--json")
    assert refused(oven.run(*args))["code"] == "presence.no_terminal"
    terminal = Terminal(oven, *args)
    terminal.wait_for("[y/N]")
    assert given in terminal.shown
    assert "Call oven.burn with this?" in terminal.shown
    terminal.type("n")
    assert refused(terminal.end())["code"] == "presence.declined"
    assert said_yes(oven, *args[:-1])["result"] == {"what": "toast"}
    outcomes = [call["outcome"] for call in oven.json("audit", "--tool", "oven.burn")["calls"]]
    assert outcomes.count("ok") == 1


def test_a_read_that_wants_the_person_is_called_after_a_yes(oven: Cli):
    said_yes(oven, "modules", "enable", "oven")
    args = ("tools", "call", "oven.peek", "{}")
    assert refused(oven.run(*args, "--json"))["code"] == "presence.no_terminal"
    assert refused(oven.run(*args, "--dry-run", "--json"))["code"] == "call.presence"
    assert said_yes(oven, *args)["result"] == {"what": "bread"}


@pytest.mark.parametrize(
    ("tool", "given", "asked"),
    [
        ("agents.grant", {"name": "juno", "table": "main.*"}, "Let juno touch every table of main?"),
        ("kernel.enable", {"name": "watchers"}, "Switch the module watchers on, now and at every start?"),
        ("kernel.disable", {"name": "watchers"}, "Switch the module watchers off, now and at every start?"),
    ],
)
def test_a_tool_that_is_called_by_its_name_asks_as_its_command_does(
    served: Cli, juno: str, tool: str, given: dict[str, str], asked: str
):
    args = ("tools", "call", tool, json.dumps(given), "--json")
    assert refused(served.run(*args))["code"] == "presence.no_terminal"
    question, ran = answered(served, "n", *args)
    assert question == f"{asked} [y/N]: "
    assert refused(ran)["code"] == "presence.declined"
    assert (rights(served), standing(served, "watchers")[0]) == ([], "running")


def test_a_rehearsal_by_name_asks_nothing_and_gives_nothing(served: Cli, juno: str):
    given = json.dumps({"name": juno, "table": "main.skill"})
    told = served.json("tools", "call", "agents.grant", given, "--dry-run")["result"]
    assert told["agent"]["tables"] == ["main.skill"]
    assert rights(served) == []
    outcomes = [
        call["outcome"] for call in served.json("audit", "--tool", "agents.grant", "--limit", "1")["calls"]
    ]
    assert outcomes == ["rehearsed"]
