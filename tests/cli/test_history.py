"""`takeback history` and `takeback diff`: what was done to a path, and what that changed."""

import json

from tests.cli.running import Cli
from tests.cli.terminal import Terminal


def write(cli: Cli, name: str, content: str) -> str:
    """Write a file through takeback; answers the act's id."""
    given = json.dumps({"path": str(cli.work / name), "content": content})
    act: str = cli.json("tools", "call", "files.write", given)["result"]["act"]
    return act


def test_the_history_of_a_path(served: Cli):
    first, second = write(served, "h.txt", "one\n"), write(served, "h.txt", "two\n")
    assert served.run("undo", second).code == 0
    ran = served.run("history", "h.txt")
    lines = ran.out.splitlines()
    assert lines[0].split() == ["When", "Who", "What", "State", "Id"]
    assert [line.split()[-1] in act for line, act in zip(lines[2:], (second, first), strict=True)] == [
        True
    ] * 2
    page = served.json("history", "h.txt", "--limit", "1")
    rest = served.json("history", "h.txt", "--cursor", page["next"])
    assert [act["act"] for act in rest["acts"]] == [second, first]
    assert served.run("history", "nothing-here").err.strip() == "No act on it is in the log."


def test_what_has_changed_and_what_an_act_changed(served: Cli):
    first = write(served, "d.txt", "one\n")
    write(served, "d.txt", "two\n")
    path = str(served.work / "d.txt")
    since = served.run("diff", "d.txt")
    assert since.out == f"--- {path}\n+++ {path}\n@@ -1,1 +1,1 @@\n-one\n+two\n"
    assert served.run("diff", "d.txt", first).out == f"--- /dev/null\n+++ {path}\n@@ -0,0 +1,1 @@\n+one\n"
    assert served.json("diff", "d.txt", first[:13])["act"] == first
    assert served.run("diff", "nothing-here").code == 5


def test_what_a_file_holds_does_not_steer_the_terminal(served: Cli):
    write(served, "esc.txt", "a\tb\n\x1b[2J\n")
    shown = Terminal(served, "diff", "esc.txt", piped=False).end().err
    assert "\x1b[2J" not in shown
    assert "\\x1b[2J" in shown
    assert "\ta" not in shown
