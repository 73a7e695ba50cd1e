"""Many processes write, take back and rewind at once; no update is lost, and sums are what they were."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from tests.rows.proof.crowd import DELTAS, EngineHands
from tests.rows.proof.invariants import require_whole
from tests.rows.proof.persons import Person

_ROOT = Path(__file__).parents[3]
_OPERATIONS = 40


def _crowd(person: Person, many: int, seed: int, *, libraries: bool) -> Counter[str]:
    """Lets them loose, all at the same moment; how it went."""
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    crowd = []
    for number in range(many):
        told = {"person": asdict(person), "number": number, "seed": seed + number, "operations": _OPERATIONS}
        argument = json.dumps({**told, "library": libraries and number % 2 == 1})
        command = [sys.executable, "-m", "tests.rows.proof.crowd", argument]
        crowd.append(
            subprocess.Popen(
                command, cwd=_ROOT, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        )
    for one in crowd:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in crowd:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    went: Counter[str] = Counter()
    for one in crowd:
        said, _ = one.communicate()
        assert one.returncode == 0
        went += Counter(json.loads(said))
    return went


def test_a_crowd_loses_nothing(person):
    many = 8 if person.engine == "postgresql" else 4
    first, dump = person.rows(), person.dump()
    EngineHands(person, "first").close()  # makes the journal
    went = _crowd(person, many, 7, libraries=person.engine == "postgresql")
    assert went["done"] > many * _OPERATIONS / 2, went
    journal = person.journal()
    assert any(entry["kind"] == "undo" for entry in journal)
    require_whole(journal, first, person.rows(), deltas=DELTAS)
    assert person.sql("SELECT sum(balance) FROM account") == [(157,)]
    with closing(EngineHands(person, "last")) as last:
        taken = last.all_back()
    assert taken.clean, [effect for effect in taken.effects if effect.action in ("conflict", "gone")]
    assert person.dump() == dump
