"""The gate by itself: with no daemon, with one that dies or hangs, and where nothing can be kept."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.cli.running import Cli
from tests.hooks.desk import GATE, AgentShell, is_before, recorded, repository, run_gate, tree, works_of

_QUIET = (0, b"", b"")


class Office:
    """A home that a daemon may serve or not, and an agent in a repository."""

    def __init__(self, folder: Path) -> None:
        self.cli = Cli(folder)
        self.root = repository(folder / "repo")
        self.events = recorded("claude", self.root)
        self.spool = self.cli.home.data / "spool"
        (folder / "agent").mkdir()
        self.agent = AgentShell(folder / "agent", self.cli.environ)

    def command(self, script=GATE):
        socket = self.cli.home.runtime / "gate.sock"
        return [
            sys.executable,
            "-I",
            "-S",
            str(script),
            "claude",
            str(socket),
            str(self.spool),
            str(self.cli.root / "home"),
        ]

    def bring(self, event):
        assert self.agent.run(shlex.join(self.command()), json.dumps(event).encode()) == _QUIET

    def spooled(self):
        return sorted(self.spool.glob("*.json"))

    def acts(self):
        return self.cli.json("log")["acts"]


@pytest.fixture
def office():
    folder = Path(tempfile.mkdtemp(prefix="tb-")).resolve()
    found = Office(folder)
    yield found
    found.agent.end()
    found.cli.stop()
    shutil.rmtree(folder)


def test_a_whole_session_without_a_daemon_at_first_is_taken_back(office):
    before = tree(office.root)
    works = iter(works_of("claude", office.root))
    for event in office.events:
        office.bring(event)
        if is_before(event):
            next(works)()
    assert len(office.acts()) == 3
    assert office.spooled() == []
    office.cli.json("rewind", "--agent", "claude")
    assert tree(office.root) == before


def test_an_edit_that_is_only_spooled_is_taken_back_later(office):
    before = tree(office.root)
    _no_daemon_starts(office)
    begin, end = office.events[2:4]
    office.bring(begin)
    (office.root / "a.txt").write_text("two\n")
    office.bring(end)
    assert len(office.spooled()) == 2
    (waiting,) = [
        one for one in office.cli.run("doctor", "--json").json["checks"] if one["name"] == "hook spool"
    ]
    assert (waiting["ok"], waiting["detail"][:8]) == (False, "2 events")
    _daemons_start_again(office)
    office.cli.serve()
    office.bring(office.events[-1])
    (act,) = office.acts()
    assert act["summary"] == f"Edited {office.root / 'a.txt'}"
    assert office.spooled() == []
    office.cli.json("undo", act["id"])
    assert tree(office.root) == before


def test_a_spooled_absence_never_deletes_what_was_there_before(office):
    _no_daemon_starts(office)
    begin = office.events[2]
    begin["tool_input"]["file_path"] = str(office.root / "new.txt")
    office.bring(begin)
    (entry,) = office.spooled()
    # The spool says that nothing lay there; the file is older than that all the same.
    (office.root / "new.txt").write_text("of a person")
    told = json.loads(entry.read_text())
    told["at"] = time.time_ns() + 10**12
    entry.write_text(json.dumps(told))
    _daemons_start_again(office)
    office.cli.serve()
    office.bring(office.events[-1])
    assert [act["state"] for act in office.acts()] in ([], ["final"])
    assert (office.root / "new.txt").exists()


def test_a_command_waits_for_the_daemon_it_starts(office):
    before = tree(office.root)
    begin, end = office.events[4:6]
    office.bring(begin)
    (office.root / "b.txt").write_text("hi\n")
    office.bring(end)
    (act,) = office.acts()
    office.cli.json("undo", act["id"])
    assert tree(office.root) == before


def test_a_damaged_spool_is_told_and_harms_nobody(office):
    office.spool.mkdir(parents=True)
    (office.spool / "00000000000000000001-1.json").write_text('{"agent": "claude"')
    (office.spool / "00000000000000000002-1.json").write_text(
        json.dumps({"agent": "nobody", "at": 1, "images": [], "event": "{}"})
    )
    office.cli.serve()
    office.bring(office.events[0])
    assert office.spooled() == []
    doctor = office.cli.run("doctor", "--json")
    (check,) = [one for one in doctor.json["checks"] if one["name"] == "captured by hooks"]
    assert "is damaged" in check["detail"]


def test_a_daemon_killed_in_the_middle_of_an_edit_loses_nothing(office):
    before = tree(office.root)
    daemon = office.cli.serve()
    begin, end = office.events[2:4]
    office.bring(begin)
    daemon.end(signal.SIGKILL)
    (office.root / "a.txt").write_text("two\n")
    office.cli.serve()
    office.bring(end)
    (act,) = office.acts()
    office.cli.json("undo", act["id"])
    assert tree(office.root) == before


def test_a_daemon_killed_in_the_middle_of_a_command_loses_nothing(office):
    before = tree(office.root)
    daemon = office.cli.serve()
    begin, end = office.events[4:6]
    office.bring(begin)
    daemon.end(signal.SIGKILL)
    (office.root / "b.txt").write_text("hi\n")
    office.bring(end)
    office.bring(office.events[-1])
    (act,) = office.acts()
    office.cli.json("undo", act["id"])
    assert tree(office.root) == before


def test_a_daemon_that_hangs_holds_no_agent_up_for_long(office, tmp_path):
    daemon = office.cli.serve()
    hasty = tmp_path / "gate.py"
    hasty.write_text(GATE.read_text().replace("_SECONDS = 20.0", "_SECONDS = 0.3"))
    assert "_SECONDS = 0.3" in hasty.read_text()
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        ran = run_gate(office.command(hasty), json.dumps(office.events[2]).encode())
        assert (ran.returncode, ran.stdout, ran.stderr) == _QUIET
    finally:
        os.kill(daemon.pid, signal.SIGCONT)


def test_a_home_that_cannot_be_written_is_no_matter_to_the_agent(office):
    blocked = office.cli.root / "file"
    blocked.write_text("in the way")
    home = str(blocked / "home")
    command = [*office.command()[:5], f"{home}/runtime/gate.sock", f"{home}/data/spool", home]
    for event in office.events:
        ran = run_gate(command, json.dumps(event).encode())
        assert (ran.returncode, ran.stdout, ran.stderr) == _QUIET
    doctor = office.cli.run("doctor", env={"TAKEBACK_HOME": home})
    assert doctor.code != 0
    assert "file" in doctor.out + doctor.err


def test_a_spool_that_is_no_folder_is_no_matter_to_the_agent(office):
    office.spool.parent.mkdir(parents=True)
    office.spool.write_text("in the way")
    office.bring(office.events[2])


@pytest.mark.parametrize("arguments", [[], ["claude"], ["claude", "/nowhere/s", "/dev/null/spool"]])
def test_a_gate_that_is_called_wrongly_says_nothing(arguments):
    ran = run_gate([sys.executable, "-I", "-S", str(GATE), *arguments], b"{}")
    assert (ran.returncode, ran.stdout, ran.stderr) == _QUIET


def test_an_agent_that_closes_the_pipe_is_survived(office):
    office.cli.serve()
    gate = subprocess.Popen(office.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert gate.stdin is not None
    assert gate.stdout is not None
    gate.stdin.close()
    gate.stdout.close()
    assert gate.wait(60) == 0


def test_the_gate_imports_nothing_that_must_be_looked_for():
    script = (
        "import sys; before = set(sys.modules); "
        "import posix, _signal, _socket; print(sorted(set(sys.modules) - before))"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "['_socket']"
    lines = [line.split() for line in GATE.read_text().splitlines() if line.startswith(("import ", "from "))]
    assert {line[1] for line in lines} == {"posix", "sys", "_signal", "_socket"}


def _no_daemon_starts(office):
    """As when the daemon can't come up; somebody holds the lock under which gates start one."""
    import fcntl

    office.spool.mkdir(parents=True)
    office.held = os.open(office.spool / "starting", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(office.held, fcntl.LOCK_EX)


def _daemons_start_again(office):
    os.close(office.held)
