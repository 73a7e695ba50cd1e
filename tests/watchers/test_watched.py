"""A watched root: which rule has a file, and what is remembered of those that were left alone."""

import logging

import pytest

from takeback import ConflictError, TakebackError
from takeback.home import Home
from takeback_acts.watchers.arrivals import Mark
from takeback_acts.watchers.rules import read
from takeback_acts.watchers.settings import RuleSettings
from takeback_acts.watchers.watched import Trouble, Watched

MARK = Mark(1, 10, 100)
FULL = TakebackError("files.full", "There is no room", "Make some.", retryable=True)
THERE = ConflictError("files.exists", "It is there already", "Choose another name.")


@pytest.fixture
def watched(tmp_path):
    given = RuleSettings(name="papers", root=str(tmp_path), pattern="*.pdf", action="move", target="pdf/")
    rules, _ = read([given], Home.at(tmp_path / "home"))
    root = Watched(str(tmp_path), rules, 2, logging.getLogger("takeback.watchers"))
    root.take_in({}, now=0)
    root.take_in({"a.pdf": MARK}, now=0)
    return root


def test_what_may_succeed_later_is_tried_again_then(watched):
    watched.fail("a.pdf", Trouble("papers", MARK, FULL), again=60)
    watched.take_in({"a.pdf": MARK}, now=61)
    assert watched.arrivals.complete(now=61) == []
    assert not watched.checks()[0].ok
    assert watched.arrivals.complete(now=62) == [("a.pdf", MARK)]
    watched.forget("a.pdf")
    assert watched.checks()[0].ok


def test_what_was_refused_is_left_until_it_changes_and_told_until_then(watched):
    watched.fail("a.pdf", Trouble("papers", MARK, THERE), again=60)
    watched.take_in({"a.pdf": MARK}, now=1000)
    assert watched.arrivals.complete(now=1000) == []
    (check,) = watched.checks()
    assert (check.ok, check.hint) == (False, THERE.hint)
    watched.take_in({"a.pdf": MARK._replace(size=11)}, now=1001)
    assert watched.checks()[0].ok
