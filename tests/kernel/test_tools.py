"""Declaring tools: what a module's author can get wrong is said when the module is registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from takeback import Context, Module, TakebackError, tool
from takeback.tools import collect
from tests.kernel.samples import Done, Given

if TYPE_CHECKING:
    from takeback import Context as Elsewhere


class Loose(Done):
    pass


class Right(Module):
    @tool(effect="read", reach=("person",), name="import")
    async def bring_in(self, ctx: Context, args: Given) -> Done:
        """Bring something in,
        from wherever it is.

        Raises nothing.
        """
        return Done()


class TwoVerbs(Right):
    @tool(effect="read", reach=("person",), name="import")
    async def fetch(self, ctx: Context, args: Given) -> Done:
        """Fetch something."""
        return Done()


class NoEffect(Module):
    @tool(effect="reed", reach=("person",))  # type: ignore[arg-type]
    async def look(self, ctx: Context, args: Given) -> Done:
        """Look."""
        return Done()


class NoReach(Module):
    @tool(effect="read", reach="person")
    async def look(self, ctx: Context, args: Given) -> Done:
        """Look."""
        return Done()


class NoVerb(Module):
    @tool(effect="read", reach=("person",), name="Look up")
    async def look(self, ctx: Context, args: Given) -> Done:
        """Look."""
        return Done()


class NotAsync(Module):
    @tool(effect="read", reach=("person",))  # type: ignore[type-var]
    def look(self, ctx: Context, args: Given) -> Done:
        """Look."""
        return Done()


class NoModel(Module):
    @tool(effect="read", reach=("person",))
    async def look(self, ctx: Context, args: dict[str, Any]) -> Done:
        """Look."""
        return Done()


class NoArguments(Module):
    @tool(effect="read", reach=("person",))
    async def look(self, ctx: Context) -> Done:
        """Look."""
        return Done()


class NoAnswer(Module):
    @tool(effect="read", reach=("person",))  # type: ignore[type-var]
    async def look(self, ctx: Context, args: Given) -> None:
        """Look."""


class LooseModel(Module):
    @tool(effect="read", reach=("person",))
    async def look(self, ctx: Context, args: Loose) -> Done:
        """Look."""
        return Done()


class NoWords(Module):
    @tool(effect="read", reach=("person",))
    async def look(self, ctx: Context, args: Given) -> Done:
        return Done()


class OnlyForTheChecker(Module):
    @tool(effect="read", reach=("person",))
    async def look(self, ctx: Elsewhere, args: Given) -> Done:
        """Look."""
        return Done()


class NoSuchVerb(Right):
    PERSON_ONLY = frozenset({"export"})


class ForThePerson(Right):
    HUMAN_ONLY = frozenset({"import"})


def test_what_a_method_says_becomes_its_tool() -> None:
    (spec,) = collect(Right, "trade")
    assert (spec.name, spec.method, spec.input, spec.output) == ("trade.import", "bring_in", Given, Done)
    assert spec.summary == "Bring something in, from wherever it is."
    assert not spec.person_only


def test_a_verb_of_the_modules_list_is_the_persons_alone() -> None:
    (spec,) = collect(ForThePerson, "trade")
    assert spec.person_only


@pytest.mark.parametrize(
    ("owner", "words"),
    [
        (TwoVerbs, "two tools with the verb import"),
        (NoEffect, "NoEffect.look: effect must be read or write"),
        (NoReach, "reach must be some of added, agents, modules, person"),
        (NoVerb, "'Look up' is not a verb"),
        (NotAsync, "is not `async def`"),
        (NoModel, "the third parameter must be annotated with a pydantic model"),
        (NoArguments, "the third parameter must be annotated with a pydantic model"),
        (NoAnswer, "the return value must be annotated with a pydantic model"),
        (LooseModel, 'Loose must set extra="forbid"'),
        (NoWords, "NoWords.look has no docstring"),
        (OnlyForTheChecker, "OnlyForTheChecker.look: Elsewhere of its annotations is not there at run time"),
        (NoSuchVerb, "PERSON_ONLY or HUMAN_ONLY names export, which is no verb"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_wrong_declaration_is_named(owner: type[Module], words: str) -> None:
    with pytest.raises(TakebackError) as wrong:
        collect(owner, "trade")
    assert wrong.value.code == "tool.declaration"
    assert words in wrong.value.message
    assert wrong.value.message.startswith("module trade: ")
