"""One table in one run: a bare loop, a registry in plain Python with the same rules, and this package.

Every row is the best of many short rounds that take turns, so that what disturbs the machine disturbs all of them, and some rounds are
not disturbed. The handlers of all are the same but for the class of their answers: those of the loops build native results.

The bare loop hands one dict to every handler. The other loop does the least that the rules ask for: a dict for each handler, so that
none sees what another sets in place, a field more for the time, and a result. It is the floor for any registry that keeps the rules.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult

import reference

EVENT = "tool:pre"
ROUNDS = 9
#: Rounds of what takes less than a few microseconds: each is about a millisecond, shorter than the turn that other processes are given.
SHORT_ROUNDS = 80
#: The guide, as the tests have it, and those of its hooks that let most calls pass.
GUIDE = next((pathlib.Path(__file__).parent.parent / "tests" / "seeds").glob("002_*.txt"))
GUIDE_HOOKS = ("audit_hook", "security_hook", "production_guard_hook")
HERE = os.path.dirname(os.path.abspath(__file__))

PAYLOADS: dict[str, dict[str, Any]] = {
    "5 keys": {"session_id": "s", "tool_name": "Write", "tool_input": {"file_path": "src/main.rs"}, "tool_call_id": "c", "turn": 1},
    "1 KB": {"session_id": "s", "tool_name": "Write", "tool_input": {"file_path": "src/main.rs", "content": "x" * 1000}, "tool_call_id": "c", "turn": 1},
    "100 KB": {"session_id": "s", "tool_name": "Write", "tool_input": {"file_path": "src/main.rs", "lines": ["x" * 100] * 1000}, "tool_call_id": "c", "turn": 1},
    "100 keys": {"tool_name": "Write", "tool_input": {"file_path": "src/main.rs"}, **{f"key {n}": "v" * 90 for n in range(100)}},
}


def quiet(result: Any) -> Callable[[], Any]:
    def make() -> Any:
        async def hook(event: str, data: dict[str, Any]) -> None: ...

        return hook

    return make


def guard(result: Any) -> Callable[[], Any]:
    def make() -> Any:
        async def hook(event: str, data: dict[str, Any]) -> Any:
            tool = data.get("tool_name", "")
            if tool in ("rm", "format"):
                return result(action="deny", reason=f"{tool} is blocked")
            return result(action="continue")

        return hook

    return make


def auditor(result: Any) -> Callable[[], Any]:
    """A handler of the documentation's kind: looks at the input, and keeps a line."""

    def make() -> Any:
        lines: list[str] = []

        async def hook(event: str, data: dict[str, Any]) -> Any:
            tool = data.get("tool_name", "unknown")
            path = data.get("tool_input", {}).get("file_path", "")
            if path.endswith((".env", ".key", ".pem")):
                return result(action="deny", reason=f"Access denied: {path} contains sensitive data")
            if any(sensitive in path for sensitive in ("/etc/", "/.ssh/", "/root/")):
                return result(action="deny", reason=f"Access denied: {path} is in a protected directory")
            lines.append(f"Tool {tool} used by {data.get('session', {}).get('user_id', 'anonymous')} at {data.get('turn')}")
            if len(lines) > 100:
                lines.clear()
            return result(action="continue")

        return hook

    return make


def modifier(result: Any) -> Callable[[], Any]:
    def make() -> Any:
        async def hook(event: str, data: dict[str, Any]) -> Any:
            return result(action="modify", data={**data, "validated": True})

        return hook

    return make


def guide(result: Any) -> Callable[[], Any]:
    """Three hooks of the guide, word for word, one after another: what is logged, what is kept from sensitive places, what is asked for."""
    texts = [re.search(rf"^async def {name}.*?(?=^```)", GUIDE.read_text(), re.DOTALL | re.MULTILINE) for name in GUIDE_HOOKS]
    names: dict[str, Any] = {"Any": Any, "HookResult": result, "logger": logging.getLogger("guide")}
    for text in texts:
        assert text
        exec(text[0], names)
    return itertools.cycle([names[name] for name in GUIDE_HOOKS]).__next__


def responder(result: Any) -> Callable[[], Any]:
    def make() -> Any:
        async def hook(event: str, data: dict[str, Any]) -> Any:
            return result(action="continue", data={"tool": "weather", "confidence": 0.9})

        return hook

    return make


def sleeper(result: Any) -> Callable[[], Any]:
    def make() -> Any:
        async def hook(event: str, data: dict[str, Any]) -> Any:
            await asyncio.sleep(0)
            return result(action="continue")

        return hook

    return make


async def bare(handlers: list[Any], event: str, data: dict[str, Any]) -> None:
    for handler in handlers:
        await handler(event, data)


async def isolating(handlers: list[Any], event: str, data: dict[str, Any]) -> HookResult:
    current = data.copy()
    current["timestamp"] = "2025-01-01T00:00:00.000000Z"
    for handler in handlers:
        await handler(event, current.copy())
    return HookResult(data=current)


async def timed(call: Callable[[], Awaitable[Any]], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        await call()
    return (time.perf_counter() - start) / times * 1e6


async def compare(name: str, kind: Callable[[Any], Callable[[], Any]], handlers: int, payload: str, collect: bool = False) -> float:
    data = PAYLOADS[payload]
    plain, ours, make, make_plain = reference.Registry(), HookRegistry(), kind(HookResult), kind(reference.Result)
    floor = [make() for _ in range(handlers)]
    for handler in floor:
        plain.register(EVENT, make_plain())
        ours.register(EVENT, handler)
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: bare(floor, EVENT, data),
        lambda: isolating(floor, EVENT, data),
        (lambda: plain.emit_and_collect(EVENT, data)) if collect else (lambda: plain.emit(EVENT, data)),
        (lambda: ours.emit_and_collect(EVENT, data)) if collect else (lambda: ours.emit(EVENT, data)),
    ]
    times = max(10, 600 // (handlers + 1))
    best = [float("inf")] * len(calls)
    for _ in range(SHORT_ROUNDS):
        for number, call in enumerate(calls):
            best[number] = min(best[number], await timed(call, times))
    loop, isolated, python, native = best
    ratios = f"{native / loop:>9.2f}x{native / isolated:>9.2f}x{python / native:>9.2f}x"
    print(f"{name:<22}{handlers:>5}{payload:>9}{loop:>11.2f}{isolated:>11.2f}{python:>11.2f}{native:>11.2f}{ratios}")
    return native


def building(name: str, make: Callable[[], Any]) -> float:
    rounds = []
    for _ in range(SHORT_ROUNDS):
        start = time.perf_counter()
        for _ in range(2_000):
            make()
        rounds.append((time.perf_counter() - start) / 2_000 * 1e6)
    print(f"{name:<60}{min(rounds):>9.3f} µs")
    return min(rounds)


def registering(size: int) -> float:
    async def hook(event: str, data: dict[str, Any]) -> None: ...

    registry = HookRegistry()
    for number in range(size):
        registry.register(EVENT, hook, priority=number % 7, name=f"h{number}")
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(100):
            registry.register(EVENT, hook, name="one")()
        rounds.append((time.perf_counter() - start) / 100 * 1e6)
    print(f"register and unregister beside {size:>6} others{min(rounds):>26.2f} µs")
    return min(rounds)


def beside(python: str, ours: dict[int, float]) -> None:
    """The same API in another package, in a process of its own: two packages of one name cannot be imported together."""
    print(f"{'look and answer, answers of amplifier-core':<43}{'n':>5}{'bare loop':>11}{'its emit':>11}{'ours':>11}{'to bare':>10}")
    for handlers, native in ours.items():
        ended = subprocess.run([python, os.path.join(HERE, "peer.py"), str(handlers)], capture_output=True, text=True)
        loop, *registry = [float(line) for line in ended.stdout.split()] or [float("nan")]
        said = f"{registry[0]:.1f}" if registry else f"exit {ended.returncode}"
        print(f"{'':<43}{handlers:>5}{loop:>11.2f}{said:>11}{native:>11.2f}{native / loop:>9.2f}x")


def turns(peer: str) -> None:
    """A turn with 40 tool calls, in a session of modules; the packages alternate."""
    runs: dict[str, list[str]] = {"amplifier-core": [peer], "ours": [sys.executable], "ours, observed": [sys.executable]}
    best: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as home:
        for _ in range(3):
            for name, command in runs.items():
                command = [*command, os.path.join(HERE, "turn.py"), *(["observe"] if "observed" in name else [])]
                ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "AMPLIFIER_HOME": home})
                times = [float(time) for time in ended.stdout.split()] or [float("nan")] * 2
                best[name] = [min(pair) for pair in zip(times, best.get(name, times), strict=True)]
    for name, (wall, cpu) in best.items():
        print(f"{'a turn with 40 tool calls':<43}{name:>16}{wall:>11.1f} ms{cpu:>9.1f} ms CPU{wall / best['amplifier-core'][0]:>9.2f}x")


def starting(code: str) -> float:
    rounds = []
    for _ in range(21):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-c", code], check=True)
        rounds.append((time.perf_counter() - start) * 1e3)
    return statistics.median(rounds)


def memory(code: str) -> float:
    probe = f"{code}\nprint(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    return int(subprocess.run([sys.executable, "-I", "-c", probe], check=True, capture_output=True).stdout.split()[1]) / 1024


async def main() -> None:
    print(f"Python {sys.version.split()[0]}; microseconds an emission, best of {SHORT_ROUNDS} rounds")
    print("own dicts: a loop that gives each handler its own dict, the least that the rules ask for\n")
    columns = f"{'bare loop':>11}{'own dicts':>11}{'in Python':>11}{'ours':>11}{'to bare':>10}{'to own':>10}{'faster':>10}"
    print(f"{'handlers':<22}{'n':>5}{'data':>9}{columns}")
    for handlers in (0, 1, 3, 10, 100):
        await compare("say nothing", quiet, handlers, "5 keys")
    answering = {handlers: await compare("look and answer", guard, handlers, "5 keys") for handlers in (1, 3, 10, 100)}
    for payload in PAYLOADS:
        if payload != "5 keys":
            await compare("say nothing", quiet, 3, payload)
            await compare("look and answer", guard, 3, payload)
    for payload in PAYLOADS:
        await compare("audit (documentation)", auditor, 3, payload)
    for payload in PAYLOADS:
        await compare("the guide's, silent log", guide, 3, payload)
    logging.getLogger("guide").setLevel(logging.INFO)
    logging.getLogger("guide").addHandler(logging.StreamHandler(open(os.devnull, "w")))
    for payload in PAYLOADS:
        await compare("the guide's, with a log", guide, 3, payload)
    await compare("wait once", sleeper, 3, "5 keys")
    await compare("modify", modifier, 3, "5 keys")
    await compare("emit_and_collect", responder, 3, "5 keys", collect=True)
    print()
    building('HookResult(action="continue")', lambda: HookResult(action="continue"))
    building('HookResult(action="deny", reason="no")', lambda: HookResult(action="deny", reason="no"))
    building("the same in plain Python", lambda: reference.Result(action="deny", reason="no"))
    print()
    few, many = registering(10), registering(10_000)
    print(f"{'10,000 against 10':<58}{many / few:>9.2f}x")
    print()
    code = "from amplifier_core.hooks import HookRegistry; from amplifier_core.models import HookResult"
    if len(sys.argv) > 1:
        beside(sys.argv[1], answering)
        print()
        turns(sys.argv[1])
        print()
    interpreter, imported = starting("pass"), starting(code)
    print(f"start of a bare interpreter {interpreter:.1f} ms, with this package {imported:.1f} ms: {imported / interpreter:.2f}x")
    print(f"memory of a bare interpreter {memory('pass'):.1f} MiB, with this package {memory(code):.1f} MiB")


if __name__ == "__main__":
    sys.path.insert(0, HERE)
    asyncio.run(main())
