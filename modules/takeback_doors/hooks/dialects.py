"""Dialects: what each coding agent calls its events, and what its tools do to files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["before", "after", "prompt", "start", "stop", "end", "other"]

# takeback's own tools record what they do themselves.
_OURS = ("mcp__takeback", "mcp_takeback", "takeback_", "takeback.", "mcp:takeback")


@dataclass(frozen=True, slots=True)
class Dialect:
    """One agent's words. All are compared without regard to case.

    `edits` are tools that name the paths they change, `harmless` those that change no file of a project.
    Every other tool may do anything, as `commands` do.
    """

    kinds: Mapping[str, Kind]
    commands: frozenset[str]
    edits: frozenset[str]
    harmless: frozenset[str]

    def kind(self, name: str) -> Kind:
        """What an event is about; `other` for one that is not known."""
        return self.kinds.get(name.lower(), "other")

    def work(self, tool: str, *, names_paths: bool, runs: bool) -> Literal["none", "edit", "command"]:
        """What a tool is about to do."""
        name = tool.lower()
        if name in self.harmless or name.startswith(_OURS):
            return "none"
        if name in self.edits and names_paths:
            return "edit"
        if not name and not runs:
            return "edit" if names_paths else "none"
        return "command"


def _kinds(**kinds: str) -> dict[str, Kind]:
    return {
        name.lower(): kind  # type: ignore[misc]
        for kind, names in kinds.items()
        for name in names.split()
    }


def _names(names: str) -> frozenset[str]:
    return frozenset(names.lower().split())


_CLAUDE = Dialect(
    kinds=_kinds(
        before="PreToolUse",
        after="PostToolUse PostToolUseFailure",
        prompt="UserPromptSubmit",
        start="SessionStart",
        stop="Stop StopFailure SubagentStop",
        end="SessionEnd",
    ),
    commands=_names("Bash PowerShell Monitor"),
    edits=_names("Write Edit MultiEdit NotebookEdit Update Create"),
    harmless=_names(
        "Read Glob Grep LS NotebookRead WebFetch WebSearch TodoRead TodoWrite Task Agent TaskCreate TaskGet"
        " TaskList TaskOutput TaskStop TaskUpdate AgentOutputTool BashOutput KillBash KillShell Skill"
        " SlashCommand ToolSearch AskUserQuestion EnterPlanMode ExitPlanMode ListMcpResourcesTool"
        " ReadMcpResourceTool LSP SendMessage StructuredOutput"
    ),
)
_CODEX = Dialect(
    kinds=_CLAUDE.kinds,
    commands=_names("Bash shell local_shell shell_command exec_command unified_exec write_stdin"),
    edits=_names("apply_patch Edit Write"),
    harmless=_names(
        "update_plan view_image web_search read_file list_dir grep_files request_user_input spawn_agent"
        " wait send_input close_agent resume_agent"
    ),
)
_GEMINI = Dialect(
    kinds=_kinds(
        before="BeforeTool",
        after="AfterTool",
        prompt="BeforeAgent",
        start="SessionStart",
        stop="AfterAgent",
        end="SessionEnd",
    ),
    commands=_names("run_shell_command"),
    edits=_names("write_file replace edit"),
    harmless=_names(
        "read_file read_many_files list_directory glob search_file_content grep_search google_web_search"
        " web_fetch write_todos ask_user activate_skill enter_plan_mode exit_plan_mode get_internal_docs"
        " codebase_investigator cli_help generalist tracker_create_task tracker_update_task"
    ),
)
_CURSOR = Dialect(
    kinds=_kinds(
        before="preToolUse beforeShellExecution",
        after="postToolUse postToolUseFailure afterShellExecution",
        prompt="beforeSubmitPrompt",
        start="sessionStart",
        stop="stop",
        end="sessionEnd",
    ),
    commands=_names("Shell Bash run_terminal_cmd"),
    edits=_names("Write Edit StrReplace MultiEdit Delete EditNotebook search_replace edit_file delete_file"),
    harmless=_names(
        "Read Grep Glob LS ReadLints SemanticSearch WebSearch WebFetch TodoWrite Task AskQuestion"
        " codebase_search read_file list_dir file_search grep_search web_search Await"
    ),
)
_OPENCODE = Dialect(
    kinds=_kinds(
        before="tool.execute.before",
        after="tool.execute.after",
        prompt="chat.message",
        start="session.created",
        stop="session.idle session.error",
        end="session.deleted",
    ),
    commands=_names("bash"),
    edits=_names("write edit multiedit patch apply_patch"),
    harmless=_names(
        "read glob grep list ls webfetch websearch codesearch todowrite todoread task skill question lsp"
        " plan_enter plan_exit invalid"
    ),
)
DIALECTS: Mapping[str, Dialect] = {
    "claude": _CLAUDE,
    "codex": _CODEX,
    "cursor": _CURSOR,
    "gemini": _GEMINI,
    "opencode": _OPENCODE,
}
