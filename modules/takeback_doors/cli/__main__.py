"""`python -m takeback_doors.cli` is `takeback`."""

from takeback_doors.cli.main import main

main()
