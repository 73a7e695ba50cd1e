"""`python -m benchmarks [NAME...]`: measure, print the ratios, and fail when a limit is missed."""

from __future__ import annotations

import gc
import sys
from importlib import import_module

import anyio

NAMES = (
    "calls",
    "records",
    "writes",
    "restores",
    "blobs",
    "loopback",
    "growth",
    "client",
    "gate",
    "memory",
    "rows",
    "journal",
)

_AS_THE_DAEMON = {"use_uvloop": True}


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all; answers the exit code."""
    missed = 0
    for name in names or NAMES:
        module = import_module(f"benchmarks.{name}")
        gc.freeze()  # as the daemon does, too
        for figure in anyio.run(module.figures, backend_options=_AS_THE_DAEMON):
            print(figure.line(), flush=True)
            missed += not figure.kept
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
