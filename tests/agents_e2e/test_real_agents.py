"""Real agents with their own tools in a real repository, and everything they did taken back; hashes decide.

`scripts/test-agents` installs the agents and runs this; by itself the suite is not collected.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.agents_e2e.crew import AGENTS, Agent
from tests.cli.running import Cli

every_agent = pytest.mark.parametrize("name", AGENTS)


class Workplace:
    """A git repository, a daemon, and agents that were connected by `takeback connect`."""

    def __init__(self, folder):
        self.folder = folder
        self.cli = Cli(folder)
        self.root = folder / "repo"
        self.root.mkdir()
        self._git("init", "-q")
        (self.root / "a.txt").write_text("one\n")
        (self.root / "src").mkdir()
        (self.root / "src" / "main.py").write_text("print('hello')\n")
        (self.root / ".gitignore").write_text("build/\n")
        (self.root / "build").mkdir()
        (self.root / "build" / "out.bin").write_bytes(bytes(range(256)) * 64)
        self._git("add", ".")
        self._git("-c", "user.name=p", "-c", "user.email=p@example.org", "commit", "-qm", "first")

    def _git(self, *words):
        subprocess.run(["git", *words], cwd=self.root, check=True, capture_output=True)

    def agent(self, name, *, connected=True):
        agent = Agent(name, self.folder, self.root, self.cli.environ)
        if connected:
            ran = self.cli.run("connect", name, "--json", env=agent.environ | {"PATH": os.environ["PATH"]})
            assert ran.code == 0, ran
        return agent

    def state(self):
        """What must come back: every path with its kind, mode and bytes, git's own index and logs aside."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            name = str(path.relative_to(self.root))
            if not name.startswith(".git/"):
                data = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
                found[name] = (path.lstat().st_mode, data)
        return found

    def acts(self, agent):
        return self.cli.json("log", "--agent", agent)["acts"]


@pytest.fixture
def workplace():
    folder = Path(tempfile.mkdtemp(prefix="tb-")).resolve()
    found = Workplace(folder)
    yield found
    found.cli.stop()
    shutil.rmtree(folder)


def _steps(agent):
    return [
        *agent.edit("a.txt", "one", "two"),
        agent.shell("mkdir made && echo hi > made/b.txt && rm src/main.py && rm build/out.bin"),
        agent.write("new/deep/c.txt", "new\n"),
        agent.shell("mv made moved && printf x >> a.txt"),
    ]


@every_agent
def test_a_session_is_taken_back(workplace, name):
    agent = workplace.agent(name)
    before = workplace.state()
    agent.run(_steps(agent))
    assert workplace.state() != before
    acts = workplace.acts(name)
    assert len(acts) == 4, acts
    assert len({act["session"] for act in acts}) == 1
    doctor = workplace.cli.run("doctor", "--json").json
    (check,) = [check for check in doctor["checks"] if check["name"] == "captured by hooks"]
    assert check["ok"], check
    workplace.cli.json("rewind", "--session", acts[0]["session"])
    assert workplace.state() == before


@every_agent
def test_an_act_and_a_turn_are_taken_back(workplace, name):
    agent = workplace.agent(name)
    agent.run([agent.write("first.txt", "1\n")])
    first = workplace.state()
    agent.run([agent.write("second.txt", "2\n"), agent.shell("echo 3 > third.txt")])
    third, second, _ = workplace.acts(name)
    assert second["turn"] == third["turn"]
    workplace.cli.json("undo", third["id"])
    assert not (workplace.root / "third.txt").exists()
    assert (workplace.root / "second.txt").exists()
    workplace.cli.json("rewind", "--session", second["session"], "--turn", second["turn"])
    assert workplace.state() == first


@every_agent
def test_no_daemon_at_first_is_no_matter(workplace, name):
    agent = workplace.agent(name)
    before = workplace.state()
    workplace.cli.run("stop")
    agent.run(_steps(agent))
    workplace.cli.json("rewind", "--agent", name)
    assert workplace.state() == before


@every_agent
def test_an_agent_cannot_tell_whether_it_is_connected(workplace, name):
    free = workplace.agent(name, connected=False)
    said = free.run(_steps(free))
    subprocess.run(["git", "clean", "-fdxq"], cwd=workplace.root, check=True)
    subprocess.run(["git", "checkout", "-q", "."], cwd=workplace.root, check=True)
    (workplace.root / "build").mkdir()
    (workplace.root / "build" / "out.bin").write_bytes(b"x")
    shutil.rmtree(free.home)
    agent = workplace.agent(name)
    assert "takeback" not in said + agent.run(_steps(agent))


def test_two_agents_at_once_and_a_person_in_one_repository(workplace):
    claude, opencode = workplace.agent("claude"), workplace.agent("opencode")
    before = workplace.state()
    running = [
        claude.start(
            [claude.write(f"claude{n}.txt", f"{n}\n") for n in range(3)] + claude.edit("a.txt", "one", "two")
        ),
        opencode.start([opencode.write(f"opencode{n}.txt", f"{n}\n") for n in range(3)]),
    ]
    (workplace.root / "mine.txt").write_text("of the person\n")
    for agent, started in zip((claude, opencode), running, strict=True):
        agent.end(started)
    with_opencode = {f"opencode{n}.txt" for n in range(3)}
    workplace.cli.json("rewind", "--agent", "claude")
    now = workplace.state()
    assert set(now) - set(before) == {"mine.txt", *with_opencode}
    workplace.cli.json("rewind", "--agent", "opencode")
    now = workplace.state()
    assert now.pop("mine.txt")
    assert now == before


@every_agent
def test_an_agents_shell_takes_back_its_own_and_nothing_of_the_persons(workplace, name):
    agent = workplace.agent(name)
    before = workplace.state()
    takeback = " ".join(workplace.cli.command())
    agent.run(
        [
            agent.write("mine.txt", "x\n"),
            agent.shell(f"{takeback} undo --last --json > {workplace.folder}/undo.json"),
            agent.shell(f"{takeback} agents add evil --json > {workplace.folder}/evil.json"),
        ]
    )
    assert '"ok": true' in (workplace.folder / "undo.json").read_text()
    assert '"ok": false' in (workplace.folder / "evil.json").read_text()
    assert workplace.state() == before
    assert workplace.cli.json("agents")["agents"] == []
