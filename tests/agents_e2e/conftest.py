"""The suite needs agents from npm, which `scripts/test-agents` installs; else it is no part of a run."""

import os

collect_ignore_glob = [] if "TAKEBACK_AGENTS" in os.environ else ["test_*.py"]
