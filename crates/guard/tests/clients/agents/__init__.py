"""The coding agents that the scenarios drive."""

from .agent import Agent, Workspace
from .claude import Claude, ClaudeOnFailure
from .codex import Codex
from .copilot import Copilot
from .gemini import Gemini
from .opencode import OpenCode

AGENTS: list[Agent] = [Claude(), ClaudeOnFailure(), Codex(), Gemini(), Copilot(), OpenCode()]

__all__ = ["AGENTS", "Agent", "Workspace"]
