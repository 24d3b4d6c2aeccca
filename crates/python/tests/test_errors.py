"""Errors can be copied and pickled, as those must that come from another process."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from amplifier_core._handlers import SignatureError
from amplifier_core.approval import ApprovalTimeoutError
from amplifier_core.hooks import ChangedInPlaceError
from amplifier_core.modules import ModuleError
from amplifier_core.session import SessionRefusedError


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
@pytest.mark.parametrize(
    "error",
    [
        SessionRefusedError("Denied by hook door: closed", "door", "closed"),
        ChangedInPlaceError("meddler", ["tool_input", "metadata"]),
        ModuleError("there is no module `x`"),
        SignatureError("guard", "tool:pre", "()"),
        ApprovalTimeoutError("nobody answered"),
    ],
)
def test_a_copy_of_an_error_says_the_same(error: Exception, way: Callable[[Any], Any]) -> None:
    error.seen_by = "a test"  # type: ignore[attr-defined]
    same = way(error)
    assert same is not error
    assert (type(same), str(same), vars(same)) == (type(error), str(error), vars(error))
