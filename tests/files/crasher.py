"""Does one act in a process that dies at a chosen place; run by test_crash.py with the job as JSON in argv.

Each place is tried in a fork of its own with its own folders, so that the imports are paid once. Prints how
many places there are.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from takeback import faults
from takeback.context import Scope
from takeback.kernel import Kernel
from takeback_acts.files.module import FilesModule
from takeback_core.undo.module import UndoModule


async def act(base, job, hook):
    root = base / "root"
    async with _kernel(base) as kernel:
        agent = kernel.enter("mcp:agent:juno", session="s1", turn="t1", scope=Scope(roots=(str(root),)))
        for tool, args in job["first"]:
            await (command(agent, root, args) if tool == "sh" else agent.call(tool, args))
        if not job["restart"]:
            faults.install(hook)
            await agent.call(*job["act"])
    if job["restart"]:
        faults.install(hook)
        async with _kernel(base) as kernel:
            await kernel.enter("cli:person").call(*job["act"])


def _kernel(base):
    return Kernel(base / "home", settings={}, modules=[UndoModule, FilesModule])


async def command(agent, root, script):
    opening = {"roots": [str(root)], "cwd": str(root), "command": ["sh"]}
    window = (await agent.call("files.begin_command", opening)).window
    subprocess.run(["sh", "-c", script], cwd=root, check=True)
    await agent.call("files.end_command", {"window": window, "exit_code": 0})


def in_fork(base, job, hook):
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(act(base, job, hook))
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def count(base, job):
    """How many places a run without a crash passes; written down by the fork that ran."""
    found = base / "places"

    def note(name):
        if name.startswith(tuple(job["places"])):
            with found.open("a") as file:
                file.write(name + "\n")

    assert in_fork(base, job, note) == 0
    return len(found.read_text().splitlines())


def die_at(number, job):
    passed = []

    def die(name):
        if name.startswith(tuple(job["places"])):
            passed.append(name)
            if len(passed) == number:
                os.kill(os.getpid(), signal.SIGKILL)

    return die


def main():
    bases, job = json.loads(sys.argv[1]), json.loads(sys.argv[2])
    total = count(Path(bases[0]), job)
    for number, base in enumerate(bases[1 : total + 1], start=1):
        in_fork(Path(base), job, die_at(number, job))
    print(total)


main()
