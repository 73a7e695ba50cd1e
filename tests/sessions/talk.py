"""A conversation over notes: an app that acts turn by turn, and the person who goes back to a message."""

from __future__ import annotations

from typing import Any

from takeback import Context
from tests.undo.house import House

SESSION = "chat-1"


class Talk:
    """One conversation of an app that comes in as an agent."""

    def __init__(self, house: House, session: str = SESSION, agent: str = "juno") -> None:
        self.house = house
        self.session = session
        self.agent = agent
        self.person = house.person()

    def app(self, turn: str | None = None) -> Context:
        """The app, in a turn of the conversation."""
        return self.house.agent(self.agent, session=self.session, turn=turn)

    async def begin(self, title: str = "") -> None:
        """Have the conversation kept."""
        await self.app().sessions.open(session=self.session, title=title)

    async def say(self, turn: str, text: str, **notes: str | None) -> list[str]:
        """A message, and the run that it causes; answers the ids of the run's acts."""
        app = self.app(turn)
        await app.sessions.say(session=self.session, text=text, turn=turn)
        await app.sessions.begin(session=self.session, turn=turn)
        acts = [
            (await app.notes.put(key=key, value=value)).act
            if value is not None
            else (await app.notes.delete(key=key)).act
            for key, value in notes.items()
        ]
        await app.sessions.end(session=self.session, turn=turn)
        return acts

    async def messages(self) -> list[tuple[str, str, str]]:
        """The conversation as the app sees it: turn, text, state."""
        found = await self.app().sessions.messages(session=self.session)
        return [(one.turn, one.text, one.state) for one in found.messages]

    async def edit(self, turn: str, text: str, **how: Any) -> Any:
        """The person edits a message."""
        return await self.person.sessions.edit(session=self.session, turn=turn, text=text, **how)

    async def preview(self, turn: str, **how: Any) -> Any:
        """The person looks at what rolling back to a message would do."""
        return await self.person.sessions.preview(session=self.session, turn=turn, **how)
