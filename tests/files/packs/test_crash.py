"""Killed between any two steps, the store still has every blob that it said was durable and nobody let go."""

import os
import subprocess
import sys
from pathlib import Path

from takeback_acts.files.packs.vault import Vault
from tests.files.packs import crasher

SCRIPT = Path(crasher.__file__)
PLACES = {
    "packs.append",
    "packs.appended",
    "packs.synced",
    "packs.segment.created",
    "packs.segment.named",
    "packs.file.written",
    "packs.file.named",
    "packs.sealed",
    "packs.apart.copied",
    "packs.apart.named",
    "packs.apart.durable",
    "packs.apart.removed",
    "packs.dropped",
    "packs.rewrite.written",
    "packs.rewrite.indexed",
    "packs.rewrite.named",
    "packs.unlinked",
}


def _said(base):
    """What the process had been told is durable and had not let go when it died, by number."""
    kept: dict[int, str] = {}
    for line in (base / "said").read_text().splitlines() if (base / "said").exists() else ():
        word, *rest = line.split()
        if word == "kept":
            kept[int(rest[0])] = rest[1]
        elif word == "left":
            kept.pop(int(rest[0]), None)
    return kept


def _on_disk(folder):
    paths = [*folder.glob("*.pack"), *folder.glob("large/*/*")]
    return sum(path.stat().st_size for path in paths)


def _look(base):
    kept = _said(base)
    for _ in range(2):
        vault = Vault(base / "packs", crasher.SETTINGS, lambda: crasher.NOW)
        vault.open()
        try:
            for number, digest in kept.items():
                assert vault.reader.read(digest) == crasher.blob(number), (base, number)
            found = vault.check()
            assert (found.damaged, found.missing) == ([], []), base
            assert list((base / "packs" / "incoming").iterdir()) == []
            vault.sweep(kept.values(), crasher.NOW + 10**10, 0, dry_run=False, share=1.0)
            assert vault.stats().blobs == len(kept)
            assert vault.stats().bytes == _on_disk(base / "packs"), base
        finally:
            vault.close()
    return len(kept)


def test_a_process_killed_at_any_place_loses_nothing_it_was_promised(tmp_path):
    source = os.pathsep.join(path for path in sys.path if path)
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), "15"],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    assert set((tmp_path / "places").read_text().splitlines()) == PLACES
    bases = [path for path in tmp_path.iterdir() if path.is_dir()]
    counts = [_look(base) for base in bases]
    assert len(bases) > 30
    assert min(counts) == 0
    assert max(counts) > 15
