"""Keeps and sweeps in processes that die at a chosen place; run by test_crash.py, which reads what they said.

Each place is tried in a fork of its own with its own folder. What a fork was told to be durable, and what it
was about to let go, it writes down before it goes on.
"""

import os
import signal
import sys
from pathlib import Path

from takeback import faults
from takeback_acts.files.packs.keeping import Lease
from takeback_acts.files.packs.settings import PackSettings
from takeback_acts.files.packs.vault import Vault

SETTINGS = PackSettings(small=1000, segment=2500, records=8)
NOW = 1_700_000_000


def blob(number):
    """The bytes that go by a number; every seventh is a large one."""
    return b"%08d" % number * (200 if number % 7 == 3 else 40)


class Story:
    def __init__(self, base):
        self.folder = base / "packs"
        self.said = base / "said"

    def say(self, *words):
        with self.said.open("a") as file:
            print(*words, file=file)

    def keep(self, vault, numbers):
        with Lease(vault, "mcp:agent:juno") as lease:
            digests = lease.keep_all([blob(number) for number in numbers])
            lease.settle()
            for number, digest in zip(numbers, digests, strict=True):
                self.say("kept", number, digest)

    def sweep(self, vault, numbers, live):
        for number in numbers:
            self.say("left", number)
        vault.sweep(live, NOW + 10, 0, dry_run=False, share=0.7)
        self.say("swept")

    def tell(self):
        """Two lives of a vault, with everything in them that is done to a disk."""
        for life in range(2):
            vault = Vault(self.folder, SETTINGS, lambda: NOW)
            vault.open()
            first = 30 * life
            for number in range(first, first + 4):
                self.keep(vault, [number])
            self.keep(vault, range(first + 4, first + 24))
            left = [n for n in range(first + 24) if n % 5 and n >= first - 10]
            said = [line.split() for line in self.said.read_text().splitlines()]
            kept = {int(words[1]): words[2] for words in said if words[0] == "kept"}
            self.sweep(vault, left, [kept[number] for number in kept.keys() - set(left)])
            self.keep(vault, range(first + 10, first + 14))
            vault.close()


def in_fork(base, hook):
    child = os.fork()
    if child == 0:
        try:
            faults.install(hook)
            Story(base).tell()
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def counting(path):
    def note(name):
        with path.open("a") as file:
            print(name, file=file)

    return note


def dying(number):
    passed = []

    def die(name):
        passed.append(name)
        if len(passed) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return die


def main():
    top = Path(sys.argv[1])
    every = int(sys.argv[2])
    (top / "0").mkdir()
    assert in_fork(top / "0", counting(top / "places")) == 0
    places = (top / "places").read_text().splitlines()
    # Each kind of place from its first occasion on, and of the frequent ones not every later one.
    seen: dict[str, int] = {}
    for number, name in enumerate(places, start=1):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 2 and number % every:
            continue
        (top / str(number)).mkdir()
        in_fork(top / str(number), dying(number))


if __name__ == "__main__":
    main()
