"""The command line's own manners: help, usage errors, exit codes, and answers as JSON."""

import os
import socket
import stat
import subprocess
from pathlib import Path

import click
import pytest

from takeback import errors
from takeback_doors.cli import main, output
from tests.cli.running import Cli
from tests.cli.terminal import Terminal, said_yes

SNAPSHOT = Path(__file__).with_name("reference.txt")


def reference() -> str:
    """The help of every command, one after another."""
    return "\n".join(_helps(main.cli, click.Context(main.cli, info_name="takeback", terminal_width=80)))


def _helps(command: click.Command, ctx: click.Context) -> list[str]:
    found = [f"$ {ctx.command_path} --help", command.get_help(ctx), ""]
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            assert below is not None
            found += _helps(below, click.Context(below, parent=ctx, info_name=name, terminal_width=80))
    return found


def test_the_whole_command_line_is_as_it_was_promised():
    # A change here is a change of what scripts rely on. To accept one: python -m tests.cli.test_usage
    assert reference() == SNAPSHOT.read_text()


def test_every_command_but_those_that_stay_answers_as_json():
    told = {path for path, command in _commands(main.cli, "takeback") if not _has(command, "--json")}
    assert told == {"takeback serve", "takeback demo", "takeback gate", "takeback run"}


def _commands(group: click.Group, path: str) -> list[tuple[str, click.Command]]:
    ctx = click.Context(group)
    found: list[tuple[str, click.Command]] = []
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        if isinstance(command, click.Group):
            found += _commands(command, f"{path} {name}")
        else:
            found.append((f"{path} {name}", command))
    return found


def _has(command: click.Command, option: str) -> bool:
    return any(option in param.opts for param in command.params)


@pytest.mark.parametrize(
    "args",
    [
        ["nonsense"],
        ["log", "--nonsense"],
        ["log", "--limit", "0"],
        ["log", "--limit", "501"],
        ["log", "--state", "eaten"],
        ["undo"],
        ["undo", "01234567", "--last"],
        ["rewind"],
        ["rewind", "--since", "1h", "--force", "--skip-conflicts"],
        ["rewind", "--since", "yesterday-ish"],
        ["agents", "grant", "juno"],
        ["reach"],
        ["completion"],
        ["agents", "nonsense"],
        ["modules", "--nonsense"],
        ["settle", "01234567"],
        ["reach", "explain", "cli:person"],
        ["tools", "call", "kernel.status", "{"],
        ["log", "--follow", "--cursor", "x"],
    ],
)
def test_a_wrong_command_line_exits_2_and_starts_nothing(cli: Cli, args: list[str]):
    told = cli.run(*args)
    assert (told.code, told.out) == (2, "")
    assert told.err
    assert "Traceback" not in told.err
    ran = cli.run(*args, "--json")
    assert ran.code == 2
    assert ran.json["ok"] is False
    assert set(ran.json["error"]) >= {"code", "kind", "message", "hint"}
    assert ran.json["error"]["kind"] == "usage"
    assert not cli.home.lock.exists()


def test_help_is_no_error(cli: Cli):
    for args in (["--help"], ["log", "-h"], ["agents", "add", "--help"]):
        ran = cli.run(*args)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith("Usage: takeback")


def test_no_command_is_told_what_there_is(cli: Cli):
    ran = cli.run()
    assert (ran.code, ran.out) == (2, "")
    assert "rewind" in ran.err


def test_version(cli: Cli):
    assert set(cli.json("version")) == {"ok", "version", "python", "platform"}
    assert cli.run("version").out.startswith("takeback ")


@pytest.mark.parametrize(
    ("args", "code", "exit_code"),
    [
        (["agents", "revoke", "nobody"], "agent.unknown", 5),
        (["agents", "add", "Nobody"], "agent.name", 2),
        (["agents", "add", "x", "--root", "/nowhere/at/all"], "agent.root", 4),
        (["modules", "enable", "nothing"], "module.unknown", 5),
        (["modules", "disable", "cli"], "module.own_door", 4),
        (["tools", "call", "kernel.disable", '{"name": "cli"}'], "module.own_door", 4),
        (["reach", "explain", "Juno", "files.write"], "caller.malformed", 4),
        (["tools", "call", "no.such"], "tool.unknown", 5),
        (["tools", "call", "kernel.reach", '{"caller": 1}'], "args.invalid", 2),
    ],
)
def test_errors_of_the_daemon_keep_their_code_and_exit_code(
    served: Cli, args: list[str], code: str, exit_code: int
):
    ran = served.run(*args, "--json")
    assert (ran.code, ran.json["ok"], ran.json["error"]["code"]) == (exit_code, False, code)
    told = served.run(*args)
    assert (told.code, told.out) == (exit_code, "")
    assert told.err.startswith("Error: ")


def test_reading_commands_have_their_keys(served: Cli):
    assert set(served.json("log")) == {"ok", "acts", "next"}
    assert set(served.json("agents", "list")) == {"ok", "agents"}
    assert set(served.json("audit")) == {"ok", "calls", "next"}
    assert set(served.json("modules", "list")) == {"ok", "modules", "problems"}
    assert set(served.json("tools", "list")) == {"ok", "tools"}
    assert set(served.json("tools", "list", "--caller", "mcp:agent:juno")) == {"ok", "tools"}
    assert set(served.json("status")) == {"ok", "running", "socket", "pid", "status", "mcp", "mcp_problem"}
    assert set(served.json("audit")["calls"][0]) >= {"caller", "tool", "allowed", "reason", "outcome"}
    assert set(served.json("reach", "explain", "cli:person", "undo.run")) == {
        "ok",
        "allowed",
        "reason",
        "rule",
    }


@pytest.mark.parametrize("group", ["agents", "modules", "tools"])
def test_a_group_by_itself_lists(served: Cli, group: str):
    listed = served.run(group, "list")
    assert served.run(group) == listed
    assert set(served.json(group)) == set(served.json(group, "list"))
    assert "Commands:" in served.run(group, "--help").out


def test_completion_by_itself_is_told_how(cli: Cli):
    ran = cli.run("completion")
    assert (ran.code, ran.out) == (2, "")
    assert "[bash|zsh|fish]" in ran.err
    assert "\\n" not in ran.err + cli.run("completion", "csh").err


def test_modules_are_switched_off_and_on(served: Cli):
    assert said_yes(served, "modules", "disable", "files")["state"] == "off"
    assert served.run("tools", "call", "files.list", "--json").json["error"]["code"] == "module.off"
    assert served.json("gc")["files"] is None
    assert said_yes(served, "modules", "enable", "files")["state"] == "running"


def test_agents_come_and_go(served: Cli, tmp_path: Path):
    added = served.json("agents", "add", "juno", "--root", str(tmp_path))
    assert set(added) == {"ok", "agent", "token"}
    assert added["agent"]["roots"] == [str(tmp_path)]
    rotated = served.json("agents", "rotate", "juno")
    assert rotated["token"] != added["token"]
    (tmp_path / "more").mkdir()
    (served.work / "here").mkdir()
    more = said_yes(served, "agents", "grant", "juno", "--root", "here")
    assert str(served.work / "here") in more["agent"]["roots"], "a relative folder is the person's"
    less = served.json("agents", "withdraw", "juno", "--root", "here")
    assert less["agent"]["roots"] == [str(tmp_path)]
    assert served.json("agents", "revoke", "juno")["agent"]["revoked"]


def test_a_token_is_the_only_thing_on_stdout(served: Cli):
    ran = served.run("agents", "add", "solo")
    assert ran.code == 0
    assert len(ran.out.split()) == 1
    assert ran.out.strip() not in ran.err
    assert "/mcp" in ran.err
    # The token went elsewhere, so no line may end as if it followed.
    assert not [line for line in ran.err.splitlines() if line.endswith(":")]


def test_a_token_on_a_terminal_stands_below_its_name(served: Cli):
    terminal = Terminal(served, "agents", "add", "duo", piped=False)
    assert terminal.end().code == 0
    said, token, *_ = terminal.shown.splitlines()
    assert (said, len(token.split())) == ("The token of duo. It is not shown again:", 1)


def test_agents_are_listed_with_how_they_stand(cli: Cli):
    cli.json("agents", "add", "juno", "--root", str(cli.work))
    cli.json("agents", "add", "mine", "--assistant")
    cli.json("agents", "add", "gone")
    cli.json("agents", "revoke", "gone")
    rows = [line.split() for line in cli.run("agents").out.splitlines()]
    assert [(row[0], row[-1]) for row in rows[1:]] == [
        ("gone", "revoked"),
        ("juno", "active"),
        ("mine", "active"),
    ]
    assert rows[3][1] == "(assistant)"


def test_mcp_wants_a_token_of_the_persons_own(served: Cli, tmp_path: Path):
    assert served.run("mcp", "--json").json["error"]["code"] == "mcp.no_token"
    token = tmp_path / "token"
    token.write_text("x")
    token.chmod(0o644)
    ran = served.run("mcp", "--token-file", str(token), "--json")
    assert (ran.code, ran.json["error"]["code"]) == (4, "mcp.token_open")
    assert stat.S_IMODE(token.stat().st_mode) == 0o644
    missing = served.run("mcp", "--token-file", str(tmp_path / "no"), "--json")
    assert (missing.code, missing.json["error"]["code"]) == (2, "mcp.token_file")
    folder = served.run("mcp", "--token-file", str(tmp_path), "--json")
    assert (folder.code, folder.json["error"]["code"]) == (2, "mcp.token_file")
    os.mkfifo(tmp_path / "fifo", 0o600)
    fifo = served.run("mcp", "--token-file", str(tmp_path / "fifo"), "--json")
    assert (fifo.code, fifo.json["error"]["code"]) == (2, "mcp.token_file")


def test_mcp_without_its_module_says_why(served: Cli):
    said_yes(served, "modules", "disable", "mcp")
    ran = served.run("mcp", "--json", env={"TAKEBACK_TOKEN": "x"})
    assert (ran.code, ran.json["error"]["code"]) == (1, "mcp.off")
    assert "The module mcp is off" in ran.json["error"]["message"]
    added = served.run("agents", "add", "latecomer")
    assert "The module mcp is off" in added.err
    assert "The module mcp is off" in served.run("status").out
    assert served.json("status")["mcp"] is None
    said_yes(served, "modules", "enable", "mcp")
    assert served.json("status")["mcp_problem"] == ""


def test_a_taken_port_is_said_where_an_agent_is_added(cli: Cli):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        cli.environ["TAKEBACK_MCP__PORT"] = str(taken.getsockname()[1])
        added = cli.run("agents", "add", "juno")
        assert added.code == 0
        assert "Address already in use" in added.err
        assert "Authorization" not in added.err
        assert "Address already in use" in cli.json("status")["mcp_problem"]
        assert "Address already in use" in " ".join(cli.run("status").out.split())


def test_mcp_serves_the_home_that_it_is_told_and_starts_its_daemon(cli: Cli):
    told = str(cli.root / "home")
    elsewhere = {"TAKEBACK_HOME": str(cli.root / "other"), "TAKEBACK_TOKEN": "x"}
    assert cli.run("mcp", "--home", told, "--no-start", "--json", env=elsewhere).code == 1
    assert cli.json("status")["running"] is False
    ran = cli.run("mcp", "--home", told, env=elsewhere)
    assert ran.code == 4, "the daemon of that home knows no such token"
    assert cli.json("status")["running"] is True
    assert not (cli.root / "other").exists()


def test_status_is_for_people(served: Cli):
    shown = served.run("status").out
    assert "MiB" in shown
    assert shown.count(str(served.json("status")["pid"])) == 1


def test_the_audit_says_why(served: Cli):
    served.run("tools", "call", "files.restore", "{}")
    assert "is not open to person" in " ".join(served.run("audit", "--refused", "--limit", "1").out.split())


def test_mcp_refuses_a_wrong_token(served: Cli):
    ran = served.run("mcp", env={"TAKEBACK_TOKEN": "not-a-token"})
    assert ran.code == 4
    assert ran.out == ""
    assert "not-a-token" not in ran.err


def test_a_defect_of_ours_is_said_without_a_traceback(cli: Cli, capsys: pytest.CaptureFixture[str]):
    error = output.internal(ZeroDivisionError("secret of the person"))
    assert isinstance(error, errors.TakebackError)
    assert error.code == "cli.internal"
    assert output.report(error, as_json=False) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "ZeroDivisionError" in told.err
    assert "secret" not in told.err


def test_a_full_disk_under_stdout_is_a_plain_error(cli: Cli):
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            cli.command("version"), stdout=full, stderr=subprocess.PIPE, text=True, env=cli.environ
        )
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr


if __name__ == "__main__":
    SNAPSHOT.write_text(reference())
