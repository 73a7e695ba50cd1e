"""Groups of commands that list when no command is named."""

from __future__ import annotations

import click


class ListingGroup(click.Group):
    """A group whose `list` runs where no command of it is named: `takeback modules --json`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `list` in front of options, or of nothing; not for the Tab key, which wants all commands."""
        named = args and (not args[0].startswith("-") or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named or ctx.resilient_parsing else ["list", *args])
