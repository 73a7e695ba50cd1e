"""An agent at its desk: a repository, a kernel with the hooks' door, and events as a gate brings them."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import anyio

from takeback.kernel import Kernel
from takeback_acts.files.module import FilesModule
from takeback_core.undo.module import UndoModule
from takeback_doors import hooks
from takeback_doors.hooks.module import HooksModule

GATE = Path(hooks.__file__).parent / "gate" / "gate.py"
AGENTS = ("claude", "codex", "cursor", "gemini", "opencode")
SESSION = "session-1"
_RECORDED = Path(__file__).parent / "recorded"
_BEFORE = ("pretooluse", "beforetool", "tool.execute.before")
_AFTER = ("posttooluse", "aftertool", "tool.execute.after")


class Desk:
    """A repository with one file, and a running kernel."""

    def __init__(self, kernel: Kernel, root: Path) -> None:
        self.kernel = kernel
        self.root = root
        self.person = kernel.enter("cli:person")

    @property
    def socket(self) -> Path:
        return self.kernel.home.runtime / "gate.sock"

    @property
    def spool(self) -> Path:
        return self.kernel.home.data / "spool"

    async def bring(self, agent, event):
        """What a gate does with an event, in this process; answers what the daemon said."""
        data = event if isinstance(event, bytes) else json.dumps(event).encode()
        return await self.send(agent.encode() + b"\n" + data)

    async def send(self, data):
        async with await anyio.connect_unix(str(self.socket)) as stream:
            await stream.send(data)
            await stream.send_eof()
            try:
                return await stream.receive(1)
            except anyio.EndOfStream:
                return b""

    def command(self, agent):
        """The command line of a real gate."""
        home = self.kernel.home.data.parent
        return [sys.executable, "-I", "-S", str(GATE), agent, str(self.socket), str(self.spool), str(home)]

    async def gate(self, agent, event):
        """A real gate's process; it must end well and say nothing."""
        data = event if isinstance(event, bytes) else json.dumps(event).encode()
        ran = await anyio.run_process(self.command(agent), input=data, check=False)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")

    def events(self, agent, session=SESSION):
        """The recorded session of an agent, in this repository."""
        return recorded(agent, self.root, session)

    async def play(self, agent, events, bring=None):
        """Brings events in order; after each beginning its tool does its work."""
        works = iter(works_of(agent, self.root))
        for event in events:
            await (bring or self.bring)(agent, event)
            if is_before(event):
                next(works)()

    async def acts(self, **filters):
        return (await self.person.undo.list(**filters)).acts

    async def rewind(self, **what):
        return await self.person.undo.rewind(**what)

    async def lost(self):
        """Why things were not captured, oldest first."""
        status = await self.person.call("hook.status")
        return [loss.why for loss in reversed(status.not_captured)]


def recorded(agent, root, session=SESSION):
    """The events of a recorded session, with the repository and the session put in."""
    text = (_RECORDED / f"{agent}.json").read_text()
    return json.loads(text.replace("ROOT", str(root)).replace("SESSION", session))


def name_of(event):
    return str(event.get("hook_event_name") or event.get("event") or "").lower()


def is_before(event):
    return name_of(event) in _BEFORE


def is_after(event):
    return name_of(event) in _AFTER


def works_of(agent, root):
    """What the tools of the recorded session do, in their order."""

    def make():
        (root / "d").mkdir(exist_ok=True)
        (root / "d" / "c.txt").write_text("new\n")

    edit = lambda: (root / "a.txt").write_text("two\n")  # noqa: E731
    run = lambda: (root / "b.txt").write_text("hi\n")  # noqa: E731
    return [edit, run, make]


def repository(path):
    """A folder with a git work tree's mark and one file."""
    (path / ".git").mkdir(parents=True)
    (path / "a.txt").write_text("one\n")
    return path


def tree(path):
    """Every file's bytes and every folder, by name."""
    return {
        str(one.relative_to(path)): one.read_bytes() if one.is_file() else None
        for one in sorted(path.rglob("*"))
    }


def open_kernel(home, **settings):
    return Kernel(home, settings=settings, modules=[UndoModule, FilesModule, HooksModule])


def is_root():
    return os.geteuid() == 0


class AgentShell:
    """A process of an agent's own, which lives on between its tools; what it runs descends from it."""

    def __init__(self, folder, environ):
        self._folder = folder
        self._shell = subprocess.Popen(
            ["sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, cwd=folder, text=True
        )
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._orders, self._answers = self._shell.stdin, self._shell.stdout

    @property
    def pid(self):
        return self._shell.pid

    def run(self, command, data=b""):
        """Runs a command line in a shell of its own, as agents do; answers code, output and errors."""
        places = [self._folder / f".agent-{name}" for name in ("in", "out", "err")]
        given, out, err = places
        given.write_bytes(data)
        words = " ".join(shlex.quote(str(place)) for place in places)
        self._orders.write(f"set -- {words}; sh -c {shlex.quote(command)} <$1 >$2 2>$3; echo $?\n")
        self._orders.flush()
        code = int(self._answers.readline())
        found = code, out.read_bytes(), err.read_bytes()
        for place in places:
            place.unlink()
        return found

    def end(self):
        self._orders.close()
        self._shell.wait(60)
        self._answers.close()


def run_gate(command, data, **more):
    """A gate's process by hand, for homes that no kernel of this process serves."""
    return subprocess.run(command, input=data, capture_output=True, timeout=60, **more)
