SKILL = "CREATE TABLE skill (id INTEGER PRIMARY KEY, name TEXT NOT NULL, level INTEGER)"


def test_what_an_act_did_is_taken_back_and_done_again(engine):
    engine.schema(SKILL, "INSERT INTO skill VALUES (1, 'go', 3), (2, 'rust', 2)")
    before = engine.dump()
    first = engine.act("INSERT INTO skill VALUES (3, 'c', 1)", "UPDATE skill SET level = 9 WHERE id = 1")
    second = engine.act("DELETE FROM skill WHERE id = 2", "UPDATE skill SET name = 'Go' WHERE id = 1")
    after = engine.dump()
    taken = engine.take_back(first, second)
    assert taken.clean
    assert engine.dump() == before
    assert engine.take_back(engine.undone[-1]).clean
    assert engine.dump() == after
