"""One of several processes that want the same store; run by test_race.py. The odd ones are killed."""

import fcntl
import os
import signal
import sys
from pathlib import Path

from takeback_acts.files.packs.keeping import Lease
from takeback_acts.files.packs.settings import PackSettings
from takeback_acts.files.packs.vault import Vault


def turn(top, number, last):
    vault = Vault(top / "packs", PackSettings(small=300, segment=4000), lambda: 1_700_000_000)
    vault.open()
    for step in range(20):
        with Lease(vault, "cli:person") as lease:
            # The same bytes as the others keep, and some that nobody names.
            lease.keep(b"unnamed %d %d" % (number, step) * 10)
            digest = lease.keep(b"shared %d" % (step % 7) * (50 if step % 3 else 10))
            lease.settle()
            with (top / "rows").open("a") as rows:
                print(digest, file=rows)
        if step % 5 == 4:
            vault.catalog.pins.begin()
            vault.sweep((top / "rows").read_text().split(), 1_700_000_010, 0, dry_run=False, share=0.9)
            vault.catalog.pins.end()
    if last:
        os.kill(os.getpid(), signal.SIGKILL)
    vault.close()


def main():
    top, number = Path(sys.argv[1]), int(sys.argv[2])
    for round_number in range(3):
        with (top / "turn").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            turn(top, number, last=number % 2 == 1 and round_number == 2)


if __name__ == "__main__":
    main()
