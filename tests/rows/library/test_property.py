"""Random conversations over a small model, with somebody's edits in between, and random rewinds.

What is there in the end is what the messages that are left would have made alone. What a person did
survives, or stands in the way by name.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, event, text
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool

from takeback_acts.rows import JournalConflict, SyncJournal
from tests.rows.library.models import Base, Bullet, Certificate, Experience, Page, Skill

IDS = st.integers(1, 4)
WORDS = st.sampled_from(["a", "b", "c"])

# (what, id, other id, word): every one does something, or nothing where there is nothing to do it to.
OPS = st.tuples(
    st.sampled_from(
        [
            "add skill",
            "rename skill",
            "rank skill",
            "drop skill",
            "bulk rank",
            "bulk drop",
            "add job",
            "add line",
            "drop line",
            "drop job",
            "add paper",
            "number paper",
            "add page",
            "drop paper",
            "move page",
        ]
    ),
    IDS,
    IDS,
    WORDS,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.lists(st.lists(OPS, min_size=1, max_size=4), max_size=3)),
        st.tuples(st.just("hand"), OPS),
        st.tuples(st.just("back"), st.integers(1, 4)),
    ),
    min_size=2,
    max_size=14,
)


class Hands:
    """Does what a step says, by ORM, Core or raw SQL. A person's words are like no other's."""

    def __init__(self, session):
        self.session = session
        self.owner = "agent"

    def do(self, op, said):
        what, id, other, word = op
        getattr(self, f"_{what.replace(' ', '_')}")(id, other, f"{word}{said}")
        self.session.flush()

    def _add_skill(self, id, other, word):
        if self.session.get(Skill, id) is None:
            self.session.add(Skill(id=id, title=word))

    def _rename_skill(self, id, other, word):
        if (skill := self.session.get(Skill, id)) is not None:
            skill.title = word

    def _rank_skill(self, id, other, word):
        self.session.execute(
            text("UPDATE skill SET level = coalesce(level, 0) + 1 WHERE id = :id"), {"id": id}
        )
        self.session.expire_all()

    def _drop_skill(self, id, other, word):
        if (skill := self.session.get(Skill, id)) is not None:
            self.session.delete(skill)

    def _bulk_rank(self, id, other, word):
        self.session.query(Skill).filter(Skill.id >= id).update({"rank": Skill.rank + other})

    def _bulk_drop(self, id, other, word):
        self.session.query(Skill).filter(Skill.id.in_([id, other])).delete()

    def _add_job(self, id, other, word):
        if self.session.get(Experience, id) is None:
            self.session.add(Experience(id=id, title=word, bullets=[Bullet(text=word)]))

    def _add_line(self, id, other, word):
        if (job := self.session.get(Experience, id)) is not None:
            job.bullets.append(Bullet(text=word))

    def _drop_line(self, id, other, word):
        if (job := self.session.get(Experience, id)) is not None and job.bullets:
            job.bullets.pop(other % len(job.bullets))

    def _drop_job(self, id, other, word):
        if (job := self.session.get(Experience, id)) is not None:
            self.session.delete(job)

    def _add_paper(self, id, other, word):
        taken = self.session.query(Certificate).filter_by(number=word).count()
        if not taken and self.session.get(Certificate, id) is None:
            self.session.add(Certificate(id=id, number=word, year=2000 + other))

    def _number_paper(self, id, other, word):
        papers = [self.session.get(Certificate, each) for each in (id, other)]
        if None in papers or id == other:
            return
        one, two = papers
        numbers = one.number, two.number
        one.number = "in between"
        self.session.flush()
        two.number = numbers[0]
        self.session.flush()
        one.number = numbers[1]

    def _add_page(self, id, other, word):
        if self.session.get(Certificate, id) is not None:
            self.session.add(Page(certificate_id=id, text=word))

    def _drop_paper(self, id, other, word):
        if (paper := self.session.get(Certificate, id)) is not None:
            self.session.delete(paper)
            self.session.flush()
            self.session.expire_all()

    def _move_page(self, id, other, word):
        if self.session.get(Certificate, other) is not None:
            pages = self.session.query(Page).filter_by(certificate_id=id)
            pages.update({"certificate_id": other})


def _made(url, **options):
    engine = create_engine(url, **options)
    if "sqlite" in url:
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA foreign_keys = ON"))
    Base.metadata.create_all(engine)
    return engine


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def engine(request):
    """One database for all examples."""
    if request.param == "sqlite":
        engine = _made("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    else:
        postgres = request.getfixturevalue("postgres")
        engine = _made(postgres.url(postgres.fresh()))
    SyncJournal().install(engine)
    yield engine
    engine.dispose()


class Talk:
    """A conversation: each message with what there was before it, and each edit by hand with what it set."""

    def __init__(self, engine):
        self.journal = SyncJournal()
        self.engine = engine
        self.point = 0
        self.past = []
        with Session(engine) as session:
            for table in reversed(Base.metadata.sorted_tables):
                session.execute(table.delete())
            session.execute(text("DELETE FROM takeback_journal"))
            for id in (1, 2, 3):
                session.add(Skill(id=id, title=f"s{id}"))
                session.add(Experience(id=id, title=f"e{id}", bullets=[Bullet(text=f"b{id}")]))
                session.add(Certificate(id=id, number=f"c{id}", year=2000))
                session.flush()
                session.add(Page(certificate_id=id, text=f"p{id}"))
            session.commit()

    def rows(self):
        """All rows by table and key."""
        with Session(self.engine) as session:
            return {
                (table.name, row["id"]): dict(row)
                for table in Base.metadata.sorted_tables
                for row in session.execute(table.select()).mappings()
            }

    def say(self, calls):
        self.point += 1
        self.past.append(("said", self.point, self.rows()))
        for call in calls:
            with Session(self.engine) as session:
                with self.journal.act(session, group=1, point=self.point) as act:
                    for op in call:
                        Hands(session).do(op, "")
                session.commit()
            made = {(row.table, row.key["id"]) for row in act.changes if row.operation == "insert"}
            held = {
                (row.table, row.key["id"], name, repr(value))
                for row in act.changes
                for name, value in [*(row.before or {}).items(), *(row.after or {}).items()]
            }
            self.past.append(("made", made, held))

    def hand(self, op):
        before = self.rows()
        with Session(self.engine) as session:
            Hands(session).do(op, " by hand")
            session.commit()
        after = self.rows()
        for place in before.keys() | after.keys():
            if before.get(place) != after.get(place):
                self.past.append(("set", place, before.get(place), after.get(place)))

    def back(self, count, skip):
        said = [place for place, event in enumerate(self.past) if event[0] == "said"]
        if not said:
            return
        start = said[-min(count, len(said))]
        _, point, then = self.past[start]
        since = self.past[start:]
        by_hand = [event for event in since if event[0] == "set"]
        before = self.rows()
        plan, error = self._rewound(point, skip)
        if error is None:
            self.past = [*self.past[:start], *by_hand]
            self._as_planned(plan, before)
            if not plan.skipped:
                again = _again(since)
                assert _but(self.rows(), again) == _but(_with(then, since), again)
            else:
                self._survived(before, by_hand)
                self.past.clear()
            return
        assert self.rows() == before
        touched = {place for _, place, _, _ in by_hand}
        for conflict in plan.conflicts:
            named = (conflict.table, conflict.key.get("id"))
            assert named in touched or (conflict.constraint and touched), conflict

    def _rewound(self, point, skip):
        with Session(self.engine) as session:
            plan = self.journal.preview(session, group=1, point=point, skip_conflicts=skip)
            session.rollback()
            try:
                done = self.journal.rewind(
                    session, group=1, point=point, digest=plan.digest, skip_conflicts=skip
                )
            except JournalConflict as error:
                session.commit()
                refused = error
            else:
                session.commit()
                assert plan.clean
                assert {row_of(row) for row in done.plan.rows} == {row_of(row) for row in plan.rows}
                return plan, None
        assert refused.plan.conflicts == plan.conflicts
        return plan, refused

    def _as_planned(self, plan, before):
        """What the preview said is what is there, no more and no less."""
        for row in plan.rows:
            place = (row.table, row.key["id"])
            assert (
                before.get(place) is None
                if row.before is None
                else row.before.items() <= before[place].items()
            )
            before[place] = None if row.after is None else (before.get(place) or {}) | row.after
        left = {place: row for place, row in before.items() if row is not None}
        assert _told(self.rows()) == _told(left)

    def _survived(self, before, by_hand):
        """Whatever a person wrote, and was there, is there."""
        now = self.rows()
        for _, place, then, after in by_hand:
            for column, value in (after or {}).items():
                if (then or {}).get(column) != value and before.get(place, {}).get(column) == value:
                    assert now.get(place, {}).get(column) == value


def row_of(row):
    return (row.table, row.key["id"], row.operation, repr(row.before), repr(row.after))


def _told(rows):
    """Prices are numbers to one and texts to another."""
    return {place: {name: str(value) for name, value in row.items()} for place, row in rows.items()}


def _again(since):
    """The places where a person set again what the agent had found or left there: whether they meant to take
    it back, or meant it, no value tells."""
    held, found = set(), set()
    for each in since:
        if each[0] == "made":
            held |= each[2]
        elif each[0] == "set" and each[3] is not None:
            table, id = each[1]
            found |= {
                (each[1], name) for name, value in each[3].items() if (table, id, name, repr(value)) in held
            }
    return found


def _but(rows, places):
    """The rows without some of their columns."""
    return {
        place: {name: value for name, value in row.items() if name == "id" or (place, name) not in places}
        for place, row in rows.items()
    }


def _with(rows, since):
    """The rows with what a person set since: only that.

    A row that they made and deleted is as if it had never been; one that the agent made and they deleted
    tells nothing of the row that was there before the agent came.
    """
    rows = {place: dict(row) for place, row in rows.items()}
    covered, agents = dict[Any, Any](), set[Any]()
    for each in since:
        if each[0] == "made":
            agents |= each[1]
        elif each[0] == "set":
            _, place, before, after = each
            if before is None:
                covered[place] = rows.get(place)
                rows[place] = after
                agents.discard(place)
            elif after is not None:
                # There may be none: it was the agent's, and the person has deleted it since.
                if rows.get(place) is not None:
                    rows[place] |= {name: value for name, value in after.items() if before[name] != value}
            elif place not in agents:
                rows[place] = covered.pop(place, None)
    return {place: row for place, row in rows.items() if row is not None}


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(steps=STEPS, last=st.one_of(st.none(), st.integers(1, 4)))
def test_what_is_left_is_what_the_messages_that_are_left_would_have_made(engine, steps, last):
    talk = Talk(engine)
    for what, given_ in steps:
        if what == "say":
            talk.say(given_)
        elif what == "hand":
            talk.hand(given_)
        else:
            talk.back(given_, skip=False)
    if last is not None:
        talk.back(last, skip=True)
