"""Names that the package does not have: the error says what to use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import amplifier_core


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("RustSession", "use `Session`, of `amplifier_core.session`"),
        ("ApprovalSystem", "import it from `amplifier_core.approval`"),
        ("ToolResul", "did you mean `ToolResult`, of `amplifier_core`?"),
        ("TOOL_PRE", "import it from `amplifier_core.events`"),
        ("HookRegstry", "did you mean `HookRegistry`, of `amplifier_core`?"),
    ],
)
def test_an_import_of_a_missing_name_says_what_to_use(name: str, hint: str) -> None:
    with pytest.raises(ImportError) as raised:
        exec(f"from amplifier_core import {name}")
    assert str(raised.value) == f"cannot find `{name}` in `amplifier_core`: {hint}"


def test_a_missing_name_is_no_attribute() -> None:
    assert not hasattr(amplifier_core, "RustSession")
    with pytest.raises(AttributeError, match="use `Session`"):
        amplifier_core.RustSession  # type: ignore[attr-defined]


def test_an_import_of_a_missing_module_stays_one() -> None:
    program = "from amplifier_core import events, approval, validation\nimport amplifier_core.nothing"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.stderr.endswith("ModuleNotFoundError: No module named 'amplifier_core.nothing'\n")
