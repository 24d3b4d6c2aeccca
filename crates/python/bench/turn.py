"""Times a turn of a session of modules with 40 tool calls, with the `amplifier_core` of this interpreter. Prints the best wall and CPU time in
milliseconds. With `observe`, the policy of the workspace is around the session."""

from __future__ import annotations

import asyncio
import logging
import pathlib
import sys
import time
from typing import Any

from amplifier_core import AmplifierSession

MODULES = pathlib.Path(__file__).resolve().parents[1] / "tests" / "modules"
CALLS = 40
TURNS = 9


def plan() -> dict[str, Any]:
    step: list[Any] = [[("write_note", {"text": "a note"})] for _ in range(CALLS)]
    script = [*step, "Done."] * TURNS
    return {
        "session": {"orchestrator": {"module": "loop-plain", "config": {"steps": CALLS + 1}}, "context": {"module": "context-plain"}},
        "providers": [{"module": "provider-scripted", "config": {"script": script}}],
        "tools": [{"module": "tool-notes"}],
        "hooks": [{"module": "hooks-marks"}],
    }


async def main() -> None:
    logging.disable()
    # The loaders of both packages find them there.
    sys.path.insert(0, str(MODULES))
    async with AmplifierSession(plan()) as session:
        if sys.argv[1:] == ["observe"]:
            from amplifier_core import observe

            await observe(session)
        walls, cpus = [], []
        for _ in range(TURNS):
            await session.coordinator.get("context").clear()
            wall, cpu = time.perf_counter(), time.process_time()
            assert await session.execute("Keep notes") == "Done."
            walls.append(time.perf_counter() - wall)
            cpus.append(time.process_time() - cpu)
        print(min(walls) * 1e3, min(cpus) * 1e3, flush=True)


asyncio.run(main())
