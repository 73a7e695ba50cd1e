"""`python -m takeback_doors.cli` is `takeback`."""

import sys

from takeback_doors.cli.main import main

# The home's lock shows who owns it by this name.
sys.argv[0] = "takeback"
main()
