"""Asking a person: the protocol, and approvals on a terminal and from a script."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
import threading
from collections.abc import Awaitable
from typing import Literal, Protocol, TextIO, runtime_checkable

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
    """Nobody answered in time. An approval system raises it when it stops waiting by itself."""


ApprovalTimeout = ApprovalTimeoutError


@runtime_checkable
class ApprovalSystem(Protocol):
    """Puts a question to a person and gives back the label of the option that was chosen. It may be async or not.

    The kernel owns what each option does, the time limit and the memory of lasting answers. A system that has a method
    ``ask(request)`` is called with the whole :class:`ApprovalRequest` instead: the hook, the event, the data that will run. If it has
    both, the parameter of ``ask`` must be called ``request`` for that: one of another kind is left alone.
    """

    def request_approval(
        self, prompt: str, options: list[str], timeout: float, default: Literal["allow", "deny"]
    ) -> str | Awaitable[str]: ...


class ApprovalAnswer(str):
    """The label of an option, with the person who chose it: ``by`` is a pair of a name and a place (``"terminal"``), and is recorded."""

    by: tuple[str, str] | None

    def __new__(cls, label: str, by: tuple[str, str] | None = None) -> ApprovalAnswer:
        answer = super().__new__(cls, label)
        answer.by = by
        return answer


class ScriptedApprovals:
    """A person who answers as the script says, one entry a question; the last one repeats. For tests.

    An entry is the label to answer with, an exception to raise, or a number of seconds to wait before the entry that follows
    it. ``None`` never answers. ``requests`` holds what a coordinator asked.
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
        """Answers the next question."""
        self.requests.append(request)
        return await self._answer()

    async def request_approval(self, prompt: str, options: list[str], timeout: float, default: Literal["allow", "deny"]) -> str:
        """Answers the next question, by the documented method. A coordinator uses the other one, which says more."""
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


#: How much earlier than the kernel the terminal stops waiting, in seconds: it still says itself what becomes of the question.
_MARGIN = 0.05


class _Turn:
    """Whose turn it is on a loop: a lock belongs to one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.lock = asyncio.Lock()
        #: How many are open, or wait to be.
        self.questions = 0


class TerminalApprovals:
    """Asks on the terminal. What is typed is the number of an option, or its label in any case.

    What was typed before a question was shown does not answer it; where the input is no terminal, each line is the next answer.
    One question at a time is open. One whose time is up makes room for the next; one that could not be shown in its time fails. Where
    nobody sits at a terminal the question fails, too, and what fails is denied.
    """

    def __init__(self, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._turn: _Turn | None = None
        # Two threads may ask at the same time.
        self._asking = threading.Lock()
        self._typed = b""

    async def ask(self, request: ApprovalRequest) -> str:
        """Asks until one of the options is typed, or the time of the question is up."""
        reason = f" ({visible(request.reason)})" if request.reason else ""
        hook = visible(request.hook)
        question = f"{_drawn(request)}\n{hook} at {request.event}{reason}\n{visible(request.prompt, lines=True)}"
        label = await self._ask(question, f"a question of hook {hook}", request.options, request.timeout, request.default)
        return ApprovalAnswer(label, _user())

    async def request_approval(self, prompt: str, options: list[str], timeout: float, default: Literal["allow", "deny"]) -> str:
        """Does the same by the documented method. A coordinator uses the other one, which says who asks."""
        return await self._ask(visible(prompt, lines=True), "a question", options, timeout, default)

    async def _ask(self, question: str, what: str, options: list[str], timeout: float, default: str) -> str:
        stdin = self._stdin or sys.stdin
        stdout = self._stdout or sys.stderr
        if self._stdin is None and not (stdin and stdin.isatty()):
            raise RuntimeError("there is no terminal to ask on")
        turn = self._turn_on(asyncio.get_running_loop())
        shown = False

        async def in_turn() -> str:
            nonlocal shown
            # One question at a time: what is typed is the answer to the last one shown.
            async with turn.lock:
                shown = True
                return await self._show(question, options, stdin, stdout)

        try:
            # The kernel would wait on for a late answer, and the next question for its turn.
            return await asyncio.wait_for(in_turn(), timeout - min(_MARGIN, timeout / 4))
        except asyncio.TimeoutError:
            if shown:
                decision = "allowed" if default == "allow" else "denied"
                stdout.write(f"\n{decision} by default: nobody answered in time\n")
                stdout.flush()
                raise ApprovalTimeoutError from None
            # Nobody has seen it, so nothing is allowed by default.
            stdout.write(f"\ndenied: {what} ran out of time before it could be shown\n")
            stdout.flush()
            raise RuntimeError("its time was up before it could be shown") from None
        finally:
            with self._asking:
                turn.questions -= 1

    def _turn_on(self, loop: asyncio.AbstractEventLoop) -> _Turn:
        with self._asking:
            turn = self._turn
            if turn is None or turn.loop is not loop:
                if turn is not None and turn.questions and turn.loop.is_running():
                    raise RuntimeError("a question of another event loop is open on this terminal")
                turn = self._turn = _Turn(loop)
            turn.questions += 1
            return turn

    async def _show(self, question: str, options: list[str], stdin: TextIO, stdout: TextIO) -> str:
        offered = "  ".join(f"[{number}] {label}" for number, label in enumerate(options, 1))
        stdout.write(f"\n{question}\n")
        stdout.flush()
        # Before the options: what is typed once they are there is an answer.
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
        """Forgets what was typed so far, if this is a terminal: whoever typed it had not seen the question."""
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
        """Reads a line without blocking the loop, where the loop can watch the stream; without a line break at its end, it is over."""
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


#: What stands before a line of a preview, by its kind.
_SIGNS = {"plain": "", "context": " ", "added": "+", "removed": "-", "gap": "", "note": "\\ "}


def _drawn(request: ApprovalRequest) -> str:
    """What will run, and what to know about it. Its lines are further in than everything else, so that none can pass for a warning."""
    preview = request.preview
    head = "  ".join(visible(preview[part]) for part in ("title", "target", "summary") if preview.get(part))
    warnings = ([request.warning] if request.warning else []) + preview["warnings"]
    lines = [head] + [f"! {visible(warning)}" for warning in warnings]
    lines += [f"  {_SIGNS[row['kind']]}{visible(row['text'])}" for row in preview["body"]]
    lines += [f"  {visible(field['name'])}: {visible(field['value'])}" for field in preview["fields"]]
    return "\n".join(lines)


def _user() -> tuple[str, str] | None:
    """Whoever sits at the terminal, if the system says who that is."""
    try:
        return getpass.getuser(), "terminal"
    except (ImportError, KeyError, OSError):
        return None


def _done(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
