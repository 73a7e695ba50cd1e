"""An agent with a shell is not the person: what it starts acts as that agent, in its own session."""

import json
import shlex
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.cli.running import Cli
from tests.hooks.desk import GATE, AgentShell, is_before, recorded, repository, tree, works_of


class Pair:
    """Two agents at work in one repository, each with a shell of its own."""

    def __init__(self, folder: Path) -> None:
        self.cli = Cli(folder)
        self.root = repository(folder / "repo")
        self.shells = {}
        for name in ("claude", "gemini"):
            (folder / name).mkdir()
            self.shells[name] = AgentShell(folder / name, self.cli.environ)
        self.cli.serve()

    def works(self, agent, session, number=1):
        """An agent's first tools of a session, by its own gate."""
        works = iter(works_of(agent, self.root))
        home = self.cli.home
        gate = ["-I", "-S", str(GATE), agent, str(home.runtime / "gate.sock"), str(home.data / "spool")]
        command = shlex.join([self.cli.command()[0], *gate])
        for event in recorded(agent, self.root, session)[1 : 2 + 2 * number]:
            self.shells[agent].run(command, json.dumps(event).encode())
            if is_before(event):
                next(works)()

    def asks(self, agent, *words):
        """What an agent's shell gets from a command of takeback's."""
        code, out, _ = self.shells[agent].run(shlex.join(self.cli.command(*words, "--json")))
        return code, json.loads(out)


@pytest.fixture
def pair():
    folder = Path(tempfile.mkdtemp(prefix="tb-")).resolve()
    found = Pair(folder)
    yield found
    for shell in found.shells.values():
        shell.end()
    found.cli.stop()
    shutil.rmtree(folder)


def test_an_agent_takes_back_its_own_sessions_acts(pair):
    before = tree(pair.root)
    pair.works("claude", "mine", 3)
    code, log = pair.asks("claude", "log")
    assert (code, len(log["acts"])) == (0, 3)
    code, undone = pair.asks("claude", "undo", "--last")
    assert code == 0, undone
    code, rewound = pair.asks("claude", "rewind", "--session", "mine")
    assert code == 0, rewound
    assert tree(pair.root) == before
    undos = [act for act in pair.cli.json("log")["acts"] if act["role"] == "undo"]
    assert {act["actor"] for act in undos} == {"cli:agent:claude"}


def test_it_sees_and_takes_back_nobody_elses(pair):
    pair.works("gemini", "theirs")
    (theirs,) = pair.cli.json("log")["acts"]
    pair.works("claude", "mine")
    code, log = pair.asks("claude", "log")
    assert [act["session"] for act in log["acts"]] in ([], ["mine"])
    for words in (["undo", theirs["id"]], ["show", theirs["id"]], ["undo", theirs["id"], "--dry-run"]):
        code, answer = pair.asks("claude", *words)
        assert (code, answer["error"]["code"]) == (5, "undo.unknown_act"), answer
    pair.asks("claude", "rewind", "--agent", "gemini")
    assert pair.cli.json("show", theirs["id"])["act"]["state"] == "done"


def test_it_takes_back_nothing_of_an_earlier_session_of_its_own(pair):
    pair.works("claude", "earlier")
    (earlier,) = pair.cli.json("log")["acts"]
    (pair.root / "a.txt").write_text("one\n")
    pair.works("claude", "later")
    code, answer = pair.asks("claude", "undo", earlier["id"])
    assert (code, answer["error"]["code"]) == (5, "undo.unknown_act")


@pytest.mark.parametrize(
    "words",
    [
        ["agents", "add", "evil"],
        ["agents", "grant", "claude", "--root", "/"],
        ["connect", "claude", "--project"],
        ["disconnect", "claude", "--project"],
        ["modules", "disable", "hook"],
        ["gc"],
        ["audit"],
    ],
    ids=" ".join,
)
def test_what_is_for_the_person_alone_is_refused(pair, words):
    pair.works("claude", "mine")
    code, answer = pair.asks("claude", *words)
    assert code != 0, answer
    assert pair.cli.json("agents")["agents"] == []


def test_it_cannot_follow_what_others_do(pair):
    pair.works("claude", "mine")
    code, _, err = pair.shells["claude"].run(shlex.join(pair.cli.command("log", "--follow")))
    assert code == 4
    assert b"for the person alone" in err


def test_the_person_is_still_the_person(pair):
    pair.works("claude", "mine")
    assert len(pair.cli.json("log")["acts"]) == 1
    assert pair.cli.json("agents")["agents"] == []


def test_an_agents_process_is_known_after_a_restart(pair):
    pair.works("claude", "mine")
    pair.cli.daemons[-1].end()
    pair.cli.serve()
    code, _ = pair.asks("claude", "agents", "add", "evil")
    assert code != 0


def test_a_process_that_has_the_number_of_a_dead_agent_is_not_it(pair):
    pair.works("claude", "mine")
    pair.shells["claude"].end()
    pair.shells["claude"] = AgentShell(pair.cli.root / "claude", pair.cli.environ)
    code, log = pair.asks("claude", "agents")
    assert code == 0
    assert log["agents"] == []
