"""Approval requests: the protocol, and approvals from a terminal and from a script."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
import threading
from collections.abc import Awaitable, Mapping
from typing import Any, Literal, Protocol, TextIO, runtime_checkable

from amplifier_core._native import ApprovalRequest, meant, visible

__all__ = [
    "ApprovalAnswer",
    "ApprovalRequest",
    "ApprovalSystem",
    "ApprovalTimeout",
    "ApprovalTimeoutError",
    "ScriptedApprovals",
    "TerminalApprovals",
]


class ApprovalTimeoutError(Exception):
    """No answer in time. An approval system raises this error if it stops waiting by itself."""


ApprovalTimeout = ApprovalTimeoutError


@runtime_checkable
class ApprovalSystem(Protocol):
    """Asks the user and returns the label of the chosen option, sync or async.

    The kernel controls the effects of the options, the time limit and remembered answers. A system with a method ``ask(request)``
    is called with the complete :class:`ApprovalRequest` instead, which includes the hook, the event and the data. If a system has
    both methods, ``ask`` is used only if its parameter is called ``request``.
    """

    def request_approval(
        self, prompt: str, options: list[str], timeout: float, default: Literal["allow", "deny"]
    ) -> str | Awaitable[str]: ...


class ApprovalAnswer(str):
    """The label of an option, and the user who chose it: ``by`` is a pair of a name and a channel (``"terminal"``), and is recorded.

    ``rule`` creates one of the request's ``offers``, with an option that always allows: ``{"operations": […], "scope": …}``.
    """

    by: tuple[str, str] | None
    rule: Mapping[str, Any] | None

    def __new__(
        cls, label: str, by: tuple[str, str] | None = None, rule: Mapping[str, Any] | None = None
    ) -> ApprovalAnswer:
        answer = super().__new__(cls, label)
        answer.by = by
        answer.rule = None if rule is None else {key: rule[key] for key in ("operations", "scope")}
        return answer


class ScriptedApprovals:
    """Scripted answers for tests, one entry per request; the last entry repeats.

    An entry is a label, an exception to raise, or a number of seconds to wait before the next entry. ``None`` never answers.
    ``requests`` contains the requests of a coordinator.
    """

    def __init__(self, *script: str | float | BaseException | None) -> None:
        self.requests: list[ApprovalRequest] = []
        self._asked = 0
        self._answers: list[tuple[float, str | BaseException | None]] = []
        delay = 0.0
        for entry in script:
            if isinstance(entry, (int, float)):
                delay += entry
            else:
                self._answers.append((delay, entry))
                delay = 0.0

    async def ask(self, request: ApprovalRequest) -> str:
        """Answers the next request."""
        self.requests.append(request)
        return await self._answer()

    async def request_approval(self, prompt: str, options: list[str], timeout: float, default: Literal["allow", "deny"]) -> str:
        """Answers the next request, by the documented method. A coordinator uses ``ask`` instead."""
        return await self._answer()

    async def _answer(self) -> str:
        if not self._answers:
            raise RuntimeError("the script is empty")
        self._asked += 1
        delay, answer = self._answers[min(self._asked, len(self._answers)) - 1]
        if delay:
            await asyncio.sleep(delay)
        if isinstance(answer, BaseException):
            raise answer
        if answer is None:
            await asyncio.Event().wait()
            raise ApprovalTimeoutError
        return answer


#: The terminal stops waiting this many seconds earlier than the kernel, so that it can still show the decision.
_MARGIN = 0.05


class _Turn:
    """The queue of prompts on a loop, because a lock belongs to one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.lock = asyncio.Lock()
        #: The number of open and waiting prompts.
        self.questions = 0


class TerminalApprovals:
    """Asks on the terminal. The user types the number of an option, or its label in any case.

    Text typed before a prompt was shown does not answer it; without a terminal as input, each line is the next answer. Only one prompt
    is open at a time. A prompt that times out makes room for the next, and a request that could not be shown in time fails. Without a
    terminal every request fails, and failed requests are denied.
    """

    def __init__(self, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._turn: _Turn | None = None
        # Two threads may ask at the same time.
        self._asking = threading.Lock()
        self._typed = b""

    async def ask(self, request: ApprovalRequest) -> str:
        """Asks until an option is typed or the time limit has passed."""
        reason = f" ({visible(request.reason)})" if request.reason else ""
        hook = visible(request.hook)
        question = f"{_drawn(request)}\n{hook} at {request.event}{reason}\n{visible(request.prompt, lines=True)}"
        label = await self._ask(question, f"approval request of hook {hook}", request.options, request.timeout, request.default)
        return ApprovalAnswer(label, _user())

    async def request_approval(self, prompt: str, options: list[str], timeout: float, default: Literal["allow", "deny"]) -> str:
        """Asks by the documented method. A coordinator uses ``ask`` instead, which also shows the hook."""
        return await self._ask(visible(prompt, lines=True), "approval request", options, timeout, default)

    async def _ask(self, question: str, what: str, options: list[str], timeout: float, default: str) -> str:
        stdin = self._stdin or sys.stdin
        stdout = self._stdout or sys.stderr
        if self._stdin is None and not (stdin and stdin.isatty()):
            raise RuntimeError("no terminal to ask on")
        turn = self._turn_on(asyncio.get_running_loop())
        shown = False

        async def in_turn() -> str:
            nonlocal shown
            # One prompt at a time: typed text answers the last prompt shown.
            async with turn.lock:
                shown = True
                return await self._show(question, options, stdin, stdout)

        try:
            # Without this, the kernel would wait for a late answer, and the next prompt for its turn.
            return await asyncio.wait_for(in_turn(), timeout - min(_MARGIN, timeout / 4))
        except asyncio.TimeoutError:
            if shown:
                decision = "allowed" if default == "allow" else "denied"
                stdout.write(f"\n{decision} by default: no answer in time\n")
                stdout.flush()
                raise ApprovalTimeoutError from None
            # The request was never shown, so the default does not apply.
            stdout.write(f"\ndenied: {what} timed out before it was shown\n")
            stdout.flush()
            raise RuntimeError("the request timed out before it was shown") from None
        finally:
            with self._asking:
                turn.questions -= 1

    def _turn_on(self, loop: asyncio.AbstractEventLoop) -> _Turn:
        with self._asking:
            turn = self._turn
            if turn is None or turn.loop is not loop:
                if turn is not None and turn.questions and turn.loop.is_running():
                    raise RuntimeError("another event loop has an open prompt on this terminal")
                turn = self._turn = _Turn(loop)
            turn.questions += 1
            return turn

    async def _show(self, question: str, options: list[str], stdin: TextIO, stdout: TextIO) -> str:
        offered = "  ".join(f"[{number}] {label}" for number, label in enumerate(options, 1))
        stdout.write(f"\n{question}\n")
        stdout.flush()
        # Before the options are shown: later input is an answer.
        self._discard_typed(stdin)
        while True:
            stdout.write(f"{visible(offered)}\n> ")
            stdout.flush()
            line = await self._read_line(stdin)
            if not line:
                raise RuntimeError("the terminal was closed")
            chosen = meant(options, line)
            if chosen is not None:
                return chosen

    def _discard_typed(self, stdin: TextIO) -> None:
        """Discards pending input of a terminal, because it was typed before the prompt was shown."""
        if not stdin.isatty():
            return
        self._typed = b""
        try:
            import termios

            file = stdin.fileno()
        except (ImportError, OSError, ValueError):
            return
        termios.tcflush(file, termios.TCIFLUSH)

    async def _read_line(self, stdin: TextIO) -> str:
        """Reads a line without blocking the loop, if the loop can watch the stream; a line without a line break means the end of input."""
        loop = asyncio.get_running_loop()
        try:
            file = stdin.fileno()
        except (OSError, ValueError):
            return stdin.readline()
        while b"\n" not in self._typed:
            ready: asyncio.Future[None] = loop.create_future()
            try:
                loop.add_reader(file, _done, ready)
            except (NotImplementedError, OSError):
                return stdin.readline()
            try:
                await ready
            finally:
                loop.remove_reader(file)
            piece = os.read(file, 4096)
            if not piece:
                return ""
            self._typed += piece
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode(errors="replace") + "\n"


#: The prefix of a preview line, by its kind.
_SIGNS = {"plain": "", "context": " ", "added": "+", "removed": "-", "gap": "", "note": "\\ "}


def _drawn(request: ApprovalRequest) -> str:
    """Returns the preview and the warnings. Preview lines are indented, so that they cannot imitate a warning."""
    preview = request.preview
    head = "  ".join(visible(preview[part]) for part in ("title", "target", "summary") if preview.get(part))
    warnings = ([request.warning] if request.warning else []) + preview["warnings"]
    lines = [head] + [f"! {visible(warning)}" for warning in warnings]
    lines += [f"  {_SIGNS[row['kind']]}{visible(row['text'])}" for row in preview["body"]]
    lines += [f"  {visible(field['name'])}: {visible(field['value'])}" for field in preview["fields"]]
    return "\n".join(lines)


def _has_terminal() -> bool:
    """Returns ``True`` if somebody can answer on the terminal."""
    return all(stream is not None and not stream.closed and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _user() -> tuple[str, str] | None:
    """Returns the user at the terminal, if the system reports one."""
    try:
        return getpass.getuser(), "terminal"
    except (ImportError, KeyError, OSError):
        return None


def _done(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
