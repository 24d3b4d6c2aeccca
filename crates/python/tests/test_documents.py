"""The programs in our own documents run."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]


@pytest.mark.parametrize("document", ["README.md", "docs/python.md", "crates/python/README.md"])
def test_programs_print_what_they_promise(document: str) -> None:
    programs = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    assert programs
    for program in programs:
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "no rm\n", "")
