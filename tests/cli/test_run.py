"""`takeback run`: the command is as it would be without, and what it changed can be taken back."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.running import SECONDS, Cli, kill


def _start(
    cli: Cli, *args: str, apart: bool = False, pass_fds: Sequence[int] = ()
) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        cli.command("run", *args),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=cli.environ,
        cwd=cli.work,
        start_new_session=apart,
        pass_fds=pass_fds,
    )


def _ready(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], SECONDS)[0]
    assert process.stdout.readline() == "ready\n"


def _clear(cli: Cli) -> None:
    for path in cli.work.iterdir():
        path.unlink()


@pytest.fixture
def work(served: Cli) -> Path:
    _clear(served)
    return served.work


def test_input_output_and_exit_code_are_the_commands_own(served: Cli, work: Path):
    ran = served.run("run", "--", "sh", "-c", "cat; echo said >&2; echo 1 > a; exit 7", stdin="given")
    assert (ran.code, ran.out) == (7, "given")
    said, words = ran.err.splitlines()
    assert said == "said"
    assert words.startswith("takeback: changed 1 path; take it back with `takeback undo ")
    assert served.run(*words.rpartition("`takeback ")[2].rstrip("`").split()).code == 0
    assert list(work.iterdir()) == []


def test_quiet_says_nothing_at_all(served: Cli, work: Path):
    ran = served.run("run", "--quiet", "--", "sh", "-c", "echo 1 > a")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_a_command_that_changes_nothing_says_so_and_leaves_no_act(served: Cli, work: Path):
    before = len(served.json("log")["acts"])
    assert served.run("run", "true").err == f"takeback: nothing changed in {served.work}\n"
    assert len(served.json("log")["acts"]) == before


def test_a_folder_that_is_left_out_is_said_to_be(cli: Cli):
    ran = cli.run("run", "--", "sh", "-c", "mkdir node_modules; touch node_modules/a")
    assert ran.err == f"takeback: nothing changed in {cli.work} (left out: node_modules)\n"
    assert cli.json("log")["acts"] == []


def test_options_behind_the_command_are_the_commands(served: Cli, work: Path):
    assert served.run("run", "echo", "--quiet", "--", "--help").out == "--quiet -- --help\n"


def test_the_session_and_the_person_are_in_the_log(served: Cli, work: Path):
    served.run("run", "--session", "build-7", "--", "touch", "a")
    (act,) = served.json("log", "--session", "build-7")["acts"]
    assert (act["actor"], act["actor_kind"], act["summary"]) == (
        "cli:person",
        "person",
        "Ran touch a: 1 path changed",
    )
    assert act["input"]["cwd"] == str(work.resolve())


def test_each_root_is_watched(served: Cli, work: Path, tmp_path: Path):
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
    script = f"touch {tmp_path}/one/a {tmp_path}/two/b {tmp_path}/three/c"
    ran = served.run("run", *_roots(tmp_path / "one", tmp_path / "two"), "--", "sh", "-c", script)
    assert "changed 2 paths" in ran.err


def _roots(*folders: Path) -> list[str]:
    return [word for folder in folders for word in ("--root", str(folder))]


@pytest.mark.parametrize(("name", "code"), [("nonesuch", 127), ("./plain", 126)])
def test_a_command_that_can_not_be_run_ends_as_in_a_shell(served: Cli, work: Path, name: str, code: int):
    (work / "plain").write_text("x")
    ran = served.run("run", "--", name)
    assert ran.code == code
    assert name in ran.err
    assert "takeback: " not in ran.err, "that nothing changed goes without saying"


def test_what_could_not_be_captured_is_named(served: Cli, work: Path):
    script = "touch a; for n in 1 2 3 4 5; do mkfifo pipe$n; done"
    ran = served.run("run", "--", "sh", "-c", script)
    first, *lost = ran.err.splitlines()
    assert "changed 6 paths" in first
    assert [line.removeprefix("takeback: not captured: ") for line in lost] == [
        *(f"pipe{n} (it is a pipe, a socket or a device)" for n in (1, 2, 3)),
        "2 more",
    ]
    named = "not captured: pipe1, pipe2, pipe3 and 2 more"
    assert named in " ".join(served.run("log", "--limit", "1").out.split())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_signal_that_ended_the_command_is_128_and_its_number(
    served: Cli, work: Path, number: signal.Signals
):
    assert served.run("run", "--", "sh", "-c", f"kill -{number.value} $$").code == 128 + number


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_sent_to_takeback_reaches_the_command(served: Cli, work: Path, number: signal.Signals):
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo got > got; exit 9' {name}; echo ready; while :; do read x; done"
    with _start(served, "--", "sh", "-c", script, apart=True) as process:
        _ready(process)
        process.send_signal(number)
        assert process.wait(SECONDS) == 9
        assert process.stderr is not None
        assert "changed 1 path" in process.stderr.read()


def test_it_stops_and_goes_on_together_with_the_command(served: Cli, work: Path):
    with _start(served, "--", "sh", "-c", "kill -STOP $$; echo ready; exit 4") as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        process.send_signal(signal.SIGCONT)
        _ready(process)
        assert process.wait(SECONDS) == 4


def test_ctrl_c_on_a_terminal_reaches_the_command_once(served: Cli, work: Path):
    master, slave = pty.openpty()
    script = "trap 'echo got >> got; exit 5' INT; test -t 0 && echo ready; while :; do read x; done"
    process = subprocess.Popen(
        served.command("run", "--", "sh", "-c", script),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=served.environ,
        cwd=work,
        start_new_session=True,
        preexec_fn=_takes_terminal,
    )
    os.close(slave)
    shown = _read_until(master, "ready")
    os.write(master, b"\x03")
    shown += _read_until(master, "undo")
    assert process.wait(SECONDS) == 5
    os.close(master)
    assert (work / "got").read_text() == "got\n"
    assert "changed 1 path" in shown


def _takes_terminal() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _read_until(master: int, words: str) -> str:
    shown = ""
    while words not in shown:
        assert select.select([master], [], [], SECONDS)[0], shown
        shown += os.read(master, 65536).decode()
    return shown


def test_files_that_were_left_open_for_it_are_open(served: Cli, work: Path):
    reading, writing = os.pipe()
    with _start(served, "--", "sh", "-c", f"echo through > /dev/fd/{writing}", pass_fds=[writing]) as process:
        os.close(writing)
        with open(reading) as pipe:
            assert pipe.read() == "through\n"
        assert process.wait(SECONDS) == 0


def test_without_a_daemon_it_does_not_run_unless_anyway(cli: Cli):
    ran = cli.run("run", "--no-start", "--", "touch", "a")
    assert (ran.code, list(cli.work.iterdir())) == (1, [])
    ran = cli.run("run", "--no-start", "--anyway", "--", "sh", "-c", "touch a; exit 3")
    assert (ran.code, [path.name for path in cli.work.iterdir()]) == (3, ["a"])
    assert ran.err == "takeback: not captured: No takeback daemon is running for this home\n"


def test_a_root_that_can_not_be_watched_is_refused_before_the_command(served: Cli, work: Path):
    ran = served.run("run", "--root", str(work / "nowhere"), "--", "touch", "a")
    assert (ran.code, list(work.iterdir())) == (5, [])
    assert served.run("run", "--root", "/", "--no-start").code == 2


def test_a_daemon_killed_under_the_command_loses_nothing(cli: Cli):
    daemon = cli.serve()
    (cli.work / "old").write_text("old")
    ran = cli.run("run", "--", "sh", "-c", f"echo 1 > a; rm old; kill -9 {daemon.pid}; echo 2 > b")
    assert ran.code == 0
    assert "changed 3 paths" in ran.err
    (act,) = cli.json("log")["acts"]
    assert act["input"]["interrupted"] is False
    cli.json("undo", "--last")
    assert [path.read_text() for path in cli.work.iterdir()] == ["old"]


def test_daemon_and_client_killed_leave_an_act_that_says_interrupted(cli: Cli):
    daemon = cli.serve()
    with _start(
        cli, "--session", "s9", "--", "sh", "-c", "echo 1 > a; echo ready; read x; echo 2 > b"
    ) as process:
        _ready(process)
        kill(daemon.pid)
        process.kill()
        assert process.stdin is not None
        process.wait(SECONDS)
        process.stdin.close()
        assert process.stdout is not None
        assert process.stdout.read() == ""
    # Whatever is run next waits until what was left open is in the log.
    cli.run("run", "--quiet", "--", "true")
    (act,) = cli.json("log")["acts"]
    assert (act["session"], act["input"]["interrupted"]) == ("s9", True)
    cli.json("undo", act["id"])
    assert not (cli.work / "a").exists()


def test_a_client_killed_alone_leaves_an_act_too(cli: Cli):
    with _start(cli, "--", "sh", "-c", "echo 1 > a; echo ready; read x") as process:
        _ready(process)
        process.kill()
    cli.run("run", "--quiet", "--", "touch", "b")
    mine, lost = cli.json("log")["acts"]
    assert (mine["input"]["interrupted"], lost["input"]["interrupted"]) == (False, True)
    assert [item["resource"].rpartition("/")[2] for item in lost["touched"]] == ["a"]
