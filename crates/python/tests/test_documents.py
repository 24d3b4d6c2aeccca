"""The programs in our own documents run."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "crates/python/README.md", *ROOT.glob("crates/python/examples/*.py")]


@pytest.mark.parametrize("document", ["README.md", "docs/start/embed-in-python.md", "docs/reference/python.md", "crates/python/README.md"])
def test_programs_print_what_they_promise(document: str, tmp_path: pathlib.Path) -> None:
    # What one prints stands below it, unless it is the usual.
    pattern = r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?"
    programs = re.findall(pattern, (ROOT / document).read_text(), re.DOTALL)
    assert programs
    for program, printed in programs:
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, printed or "no rm\n", "")


def test_every_guard_of_a_sample_denies_if_it_fails() -> None:
    registration = re.compile(r"\b(?:register|on)\(\s*(?:\"(?:tool:pre|prompt:submit)\"|\w+\.TOOL_PRE)[^\n]*\)")
    found = [(path.name, line) for path in DOCUMENTS for line in registration.findall(path.read_text())]
    assert ("README.md", 'register("tool:pre", on_error="deny")') in found
    assert [one for one in found if 'on_error="deny"' not in one[1]] == []
