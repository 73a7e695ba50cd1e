"""Real coding agents from npm, each with an empty home of its own, told what to do by a script."""

import json
import os
import subprocess
from pathlib import Path

from tests.agents_e2e.model import Model

SECONDS = 120
AGENTS = ("claude", "codex", "gemini", "opencode")


def installed():
    """Where the agents' commands are, as the script that runs this suite says."""
    return Path(os.environ["TAKEBACK_AGENTS"]) / "node_modules" / ".bin"


class Agent:
    """One agent over a home of takeback's."""

    def __init__(self, name, folder, root, environ):
        self.name = name
        self.root = root
        self.home = folder / f"{name}-home"
        self.home.mkdir()
        self._environ = {
            "PATH": f"{installed()}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "TERM": "dumb",
            **{key: environ[key] for key in environ if key.startswith("TAKEBACK_")},
        }

    @property
    def environ(self):
        """With which `takeback connect` finds the agent's settings, too."""
        return self._environ

    def start(self, steps, prompt="Do it."):
        """Starts a run that makes these calls of tools; to be waited for by `end`."""
        model = Model(steps)
        model.__enter__()
        command, more = _RUNS[self.name](self, model.address)
        process = subprocess.Popen(
            [*command, prompt],
            cwd=self.root,
            env=self._environ | more,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return model, process

    def end(self, started):
        """Waits for a run; answers what it printed."""
        model, process = started
        try:
            out, _ = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
            model.__exit__()
        assert process.returncode == 0, out.decode(errors="replace")
        return out.decode(errors="replace")

    def run(self, steps, prompt="Do it."):
        """A whole run."""
        return self.end(self.start(steps, prompt))

    def write(self, name, text):
        """The step that writes a file with the agent's own tool."""
        path = str(self.root / name)
        return {
            "claude": ("Write", {"file_path": path, "content": text}),
            "codex": (
                "apply_patch",
                _patch(f"Add File: {name}", *(f"+{line}" for line in text.splitlines())),
            ),
            "gemini": ("write_file", {"file_path": path, "content": text}),
            "opencode": ("write", {"filePath": path, "content": text}),
        }[self.name]

    def edit(self, name, old, new):
        """The steps that read and edit a file with the agent's own tools."""
        path = str(self.root / name)
        return {
            "claude": [
                ("Read", {"file_path": path}),
                ("Edit", {"file_path": path, "old_string": old, "new_string": new}),
            ],
            "codex": [("apply_patch", _patch(f"Update File: {name}", "@@", f"-{old}", f"+{new}"))],
            "gemini": [
                (
                    "replace",
                    {"file_path": path, "instruction": "change it", "old_string": old, "new_string": new},
                )
            ],
            "opencode": [
                ("read", {"filePath": path}),
                ("edit", {"filePath": path, "oldString": old, "newString": new}),
            ],
        }[self.name]

    def shell(self, command):
        """The step that runs a command."""
        given = {"command": command, "description": "as asked"}
        if self.name == "codex":
            return "exec_command", {"cmd": command}
        return {"claude": "Bash", "gemini": "run_shell_command", "opencode": "bash"}[self.name], given


def _patch(header, *lines):
    return "\n".join(["*** Begin Patch", f"*** {header}", *lines, "*** End Patch", ""])


def _claude(agent, address):
    return ["claude", "--dangerously-skip-permissions", "-p"], {
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": "dummy",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
    }


def _codex(agent, address):
    settings = agent.home / ".codex" / "config.toml"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(
        'model = "gpt-5.5"\nmodel_provider = "x"\n'
        f'[model_providers.x]\nname = "x"\nbase_url = "{address}/v1"\n'
        'wire_api = "responses"\nenv_key = "X_KEY"\n'
    )
    # New hooks wait for a person's trust, which nobody can give here.
    flags = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return ["codex", "exec", *flags, "--dangerously-bypass-hook-trust"], {"X_KEY": "x"}


def _gemini(agent, address):
    settings = agent.home / ".gemini" / "settings.json"
    found = json.loads(settings.read_text()) if settings.exists() else {}
    found["security"] = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps(found, indent=2))
    return ["gemini", "-m", "gemini-2.5-flash", "--yolo", "-p"], {
        "GOOGLE_GEMINI_BASE_URL": address,
        "GEMINI_API_KEY": "x",
    }


def _opencode(agent, address):
    models: dict[str, object] = {"m": {}}
    options = {"baseURL": f"{address}/v1", "apiKey": "x"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": models}
    settings = {
        "provider": {"x": provider},
        "model": "x/m",
        "small_model": "x/m",
        "permission": {"edit": "allow", "bash": "allow"},
    }
    folder = agent.home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "opencode.json").write_text(json.dumps(settings))
    return ["opencode", "run"], {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}


_RUNS = {"claude": _claude, "codex": _codex, "gemini": _gemini, "opencode": _opencode}
