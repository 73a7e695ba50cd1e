"""Adopting: files named by their digest that lie in another folder become blobs of the vault."""

from __future__ import annotations

from pathlib import Path

from takeback import faults
from takeback_acts.files.packs import failures
from takeback_acts.files.packs.usage import UNLIMITED
from takeback_acts.files.packs.vault import Vault, cost

_DIGEST = "[0-9a-f]" * 64


def adopt(vault: Vault, folder: Path, owner: str) -> int:
    """Takes over the files `aa/<hex>`, without copying; answers how many. What else lies there goes too.

    A file keeps its old name until the vault has it durably. Their bytes are not read: as with every blob
    that happens when they are wanted. Blocks; raises `blobs.denied`, `blobs.io`, `blobs.no_space`.
    """
    if not folder.is_dir():
        return 0
    with failures.reported(folder):
        paths = sorted(folder.glob(f"[0-9a-f][0-9a-f]/{_DIGEST}"))
        vault.files.link(paths)
        faults.point("packs.linked")
        wanted = [vault.told(bytes.fromhex(path.name), path.stat().st_size, owner) for path in paths]
        for one in wanted:
            vault.usage.charge(owner, cost(one), UNLIMITED)
        for parcel in vault.hand(wanted, now=True):
            parcel.wait()
        faults.point("packs.adopted")
        _clear(folder)
    return len(paths)


def _clear(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()
            faults.point("packs.cleared")
    folder.rmdir()
