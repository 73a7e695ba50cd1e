"""What a person can try when the demo is over."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

_TRY = {
    "takeback run -- COMMAND": "what it changes here is one act",
    "takeback undo --last": "and that one is taken back",
    "takeback agents add NAME --root DIR": "let an agent in, as README.md says",
}


def afterwards() -> Iterator[str]:
    """Lines with commands to go on with, and what lets the shell find them where it does not yet."""
    yield "What next? In a folder of yours, with a daemon that starts by itself:"
    yield ""
    if folder := _not_found():
        yield f'    export PATH={shlex.quote(folder)}:"$PATH"'
    width = max(map(len, _TRY))
    for command, words in _TRY.items():
        yield f"    {command:<{width}}  # {words}"


def _not_found() -> str:
    """The folder of this `takeback`, when it is not the one that a shell finds by its name."""
    ours = Path(sys.executable).with_name("takeback")
    found = shutil.which("takeback")
    if not ours.exists() or (found and os.path.samefile(found, ours)):
        return ""
    return str(ours.parent)
