"""A session of Amplifier with a policy around it: one line adds rules, approvals and the audit log."""

import asyncio
import pathlib
import tempfile
from typing import Any

from amplifier_core import AmplifierSession, ModuleLoader, observe
from amplifier_core.audit import verify

#: Where the modules of the session are: a loop, a context, a provider with a script, and tools.
MODULES = pathlib.Path(__file__).parents[1] / "tests" / "modules"

CONFIG: dict[str, Any] = {
    "session": {"orchestrator": {"module": "loop-plain"}, "context": {"module": "context-plain"}},
    "providers": [{"module": "provider-scripted", "config": {"script": [[("write_note", {"text": "my password"})], "I see."]}}],
    "tools": [{"module": "tool-notes"}],
}

POLICY = """
hooks:
  - rule: no-passwords
    on: tool:pre
    when: has(tool_input.text) && tool_input.text.contains("password")
    deny: no passwords in notes
"""


async def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        pathlib.Path(home, "bundle.yaml").write_text(POLICY)
        async with AmplifierSession(CONFIG, ModuleLoader(search_paths=[MODULES])) as session:
            observation = await observe(session, home=home)
            await session.execute("Note my password")
            print(session.coordinator.get("context").messages[2]["content"])
        print(verify(observation.audit_folder).verdict)


asyncio.run(main())
