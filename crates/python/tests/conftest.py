"""What all tests have around them."""

from __future__ import annotations

import pathlib

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The folder of the user's configuration: never that of whoever runs the tests."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("AMPLIFIER_HOME", str(folder))
    return folder
