"""``HookResult``: its fields, what it refuses, and what can be done with it."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import datetime
import enum
import json
import math
import pickle
import threading
from typing import Any
from unittest.mock import Mock

import pytest

from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult

DEFAULTS = {
    "action": "continue",
    "data": None,
    "reason": None,
    "context_injection": None,
    "context_injection_role": "system",
    "ephemeral": False,
    "append_to_last_tool_result": False,
    "approval_prompt": None,
    "approval_options": None,
    "approval_timeout": 300.0,
    "approval_default": "deny",
    "suppress_output": False,
    "user_message": None,
    "user_message_level": "info",
}
OTHERS = {
    "action": "ask_user",
    "data": {"n": (1, 2)},
    "reason": "why",
    "context_injection": "text",
    "context_injection_role": "user",
    "ephemeral": True,
    "append_to_last_tool_result": True,
    "approval_prompt": "Go?",
    "approval_options": ["Yes", {"label": "Ship it", "effect": "allow_once"}],
    "approval_timeout": 5.0,
    "approval_default": "allow",
    "approval_fallback": True,
    "suppress_output": True,
    "user_message": "hello",
    "user_message_level": "error",
}


def test_fields_have_the_documented_defaults() -> None:
    assert HookResult().model_dump() == DEFAULTS


def test_every_field_is_set_by_keyword_and_by_attribute() -> None:
    made = HookResult(**OTHERS)
    assert made.model_dump() == OTHERS
    changed = HookResult()
    for field, value in OTHERS.items():
        setattr(changed, field, value)
    assert changed == made


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("action", "explode"),
        ("action", None),
        ("action", 1),
        ("data", []),
        ("data", "text"),
        ("reason", 5),
        ("context_injection", b"bytes"),
        ("context_injection_role", "tool"),
        ("ephemeral", "yes"),
        ("ephemeral", None),
        ("approval_options", "Allow"),
        ("approval_options", [1]),
        ("approval_options", [{"label": "x", "effect": "explode"}]),
        ("approval_timeout", -1),
        ("approval_timeout", math.nan),
        ("approval_timeout", math.inf),
        ("approval_timeout", "soon"),
        ("approval_timeout", True),
        ("approval_default", "maybe"),
        ("approval_fallback", "yes"),
        ("suppress_output", 1),
        ("user_message", 1),
        ("user_message_level", "fatal"),
    ],
)
def test_wrong_values_are_refused_everywhere(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"`{field}` must be"):
        HookResult(**{field: value})
    with pytest.raises(ValueError, match=f"`{field}` must be"):
        HookResult.model_validate({field: value})
    result = HookResult()
    with pytest.raises(ValueError, match=f"`{field}` must be"):
        setattr(result, field, value)
    assert result == HookResult()


@pytest.mark.parametrize("field", ["action", "context_injection_role", "approval_default", "user_message_level"])
def test_errors_name_the_word_that_was_found(field: str) -> None:
    with pytest.raises(ValueError, match=f"`{field}` must be .*; found `block`$"):
        HookResult(**{field: "block"})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`approval_options` must be None or a list .*; found `str`$"):
        HookResult(approval_options="Allow")  # type: ignore[arg-type]


def test_errors_do_not_repeat_what_may_be_secret() -> None:
    with pytest.raises(ValueError) as caught:
        HookResult(action="password123")  # type: ignore[arg-type]
    assert "password123" not in str(caught.value)


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(TypeError, match="acton"):
        HookResult(acton="deny")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="unknown field `acton`"):
        HookResult.model_validate({"acton": "deny"})
    with pytest.raises(ValueError, match="expected a dict or a HookResult, found `list`"):
        HookResult.model_validate([])  # type: ignore[arg-type]


def test_results_are_equal_by_their_fields() -> None:
    assert HookResult(**OTHERS) == HookResult(**OTHERS)
    assert HookResult(reason="a") != HookResult(reason="b")
    assert HookResult() != DEFAULTS
    with pytest.raises(TypeError):
        hash(HookResult())


def test_repr_shows_every_field() -> None:
    made = HookResult(**OTHERS)
    assert eval(repr(made)) == made


def test_copies_are_shallow_or_deep() -> None:
    made = HookResult(data={"nested": []})
    shallow, deep = copy.copy(made), copy.deepcopy(made)
    assert shallow == deep == made
    assert made.data and shallow.data and deep.data
    assert shallow.data["nested"] is made.data["nested"]
    assert deep.data["nested"] is not made.data["nested"]
    assert made.model_copy(update={"reason": "why"}) == HookResult(data={"nested": []}, reason="why")
    with pytest.raises(ValueError):
        made.model_copy(update={"action": "explode"})


def test_results_are_pickled() -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        made = HookResult(**OTHERS)
        assert pickle.loads(pickle.dumps(made, protocol)) == made


class Mine(HookResult):
    """A result with a method more."""

    def is_denial(self) -> bool:
        return self.action == "deny"


def test_results_are_subclassed() -> None:
    made = Mine(action="deny", reason="no")
    for other in (copy.copy(made), pickle.loads(pickle.dumps(made)), Mine.model_validate(made.model_dump())):
        assert isinstance(other, Mine)
        assert other.is_denial()


class Refusal(HookResult):
    """A denial, unless it is something else."""

    action: Any = "deny"
    reason = "never"
    severity = 3


class Mild(Refusal):
    reason = "not now"


def test_a_subclass_may_give_fields_other_defaults() -> None:
    made = Refusal()
    for other in (made, copy.copy(made), pickle.loads(pickle.dumps(made)), Refusal.model_validate({})):
        assert (type(other), other.action, other.reason, other.severity) == (Refusal, "deny", "never", 3)
        assert other.model_dump()["action"] == "deny"
    assert (Refusal(action="continue").action, Mild().reason, Mild().action) == ("continue", "not now", "deny")
    registry = HookRegistry()
    registry.register("tool:pre", lambda event, data: Mild())
    result = asyncio.run(registry.emit("tool:pre", {}))
    assert (result.action, result.reason) == ("deny", "not now")


def test_a_subclass_cannot_hide_a_field() -> None:
    with pytest.raises(TypeError, match="`Hiding.action` would hide the field"):
        type("Hiding", (HookResult,), {"action": property(lambda self: "deny")})
    with pytest.raises(ValueError, match="`action` must be"):
        type("Odd", (HookResult,), {"action": "refuse"})


def test_json_with_a_key_twice_is_not_read() -> None:
    with pytest.raises(ValueError, match="duplicate key"):
        HookResult.model_validate_json('{"action": "deny", "action": "continue"}')


def test_dumps_leave_out_what_is_asked() -> None:
    made = HookResult(action="deny", reason="no")
    assert made.model_dump(exclude_defaults=True) == {"action": "deny", "reason": "no"}
    assert "data" not in made.model_dump(exclude_none=True)
    assert made.model_dump(include={"reason"}) == {"reason": "no"}
    assert "reason" not in made.model_dump(exclude={"reason"})


def test_dumps_leave_out_what_was_not_set() -> None:
    given = {"action": "continue", "reason": "said"}
    made = HookResult(**given)
    copies = (made, copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made)), Mine(**given).model_copy())
    for result in (*copies, HookResult.model_validate(given), HookResult.model_validate(made), Mine.model_validate(made)):
        assert result.model_dump(exclude_unset=True) == given
        assert json.loads(result.model_dump_json(exclude_unset=True)) == given
    made.ephemeral = False
    assert made.model_dump(exclude_unset=True) == {**given, "ephemeral": False}
    assert made.model_dump(exclude_unset=True, exclude_defaults=True) == {"reason": "said"}
    assert made.model_copy(update={"data": None}).model_dump(exclude_unset=True) == {**given, "data": None, "ephemeral": False}


class Colour(enum.Enum):
    RED = "red"


def test_json_has_what_json_can_hold() -> None:
    when = datetime.datetime(2024, 1, 1, 10, tzinfo=datetime.timezone.utc)
    data = {
        "z": (1, 2),
        "a": {3: {"x"}},
        "when": when,
        "raw": b"\x00\xff",
        "big": 10**30,
        "nan": math.nan,
        "colour": Colour.RED,
        "text": "ü",
        "class": datetime.datetime,
        "mock": Mock(spec=int, name="mock"),
    }
    dumped = HookResult(data=data).model_dump_json()
    assert json.loads(dumped)["data"] == {
        "z": [1, 2],
        "a": {"3": ["x"]},
        "when": "2024-01-01T10:00:00+00:00",
        "raw": "AP8=",
        "big": 10**30,
        "nan": "nan",
        "colour": "red",
        "text": "ü",
        "class": "<class 'datetime.datetime'>",
        "mock": str(data["mock"]),
    }
    assert list(json.loads(dumped)["data"]) == list(data)
    made = HookResult(**OTHERS)
    assert HookResult.model_validate_json(made.model_dump_json()).model_dump(mode="json") == made.model_dump(mode="json")


def test_half_a_surrogate_pair_is_written_so_that_it_can_be_read() -> None:
    result = HookResult(action="deny", reason="\ud800 é")
    written = result.model_dump_json().encode()
    assert b"\\ud800 \\u00e9" in written
    assert HookResult.model_validate_json(written) == result


def test_data_that_holds_itself_can_be_dumped() -> None:
    data: dict[str, Any] = {"name": "root", "list": []}
    data["self"] = data
    data["list"].append(data["list"])
    for number in range(2):
        data[f"child {number}"] = {"parent": data, "same": data["list"]}
    shown = {"parent": "{...}", "same": ["[...]"]}
    expected = {"name": "root", "list": ["[...]"], "self": "{...}", "child 0": shown, "child 1": shown}
    assert json.loads(HookResult(data=data).model_dump_json())["data"] == expected


@dataclasses.dataclass
class Live:
    """Holds what cannot be copied, and itself."""

    lock: Any = dataclasses.field(default_factory=threading.Lock)
    me: Any = None


class Mute:
    def __str__(self) -> str:
        raise ValueError("no")


def test_what_cannot_be_copied_or_shown_becomes_text() -> None:
    live = Live()
    live.me = live
    dumped = HookResult(data={"live": live, "mute": Mute(), "key": {Mute(): 1}}).model_dump(mode="json")["data"]
    mute = f"<{Mute.__module__}.Mute>"
    assert dumped == {"live": {"lock": str(live.lock), "me": "{...}"}, "mute": mute, "key": {mute: 1}}
    registry = HookRegistry()
    registry.set_default_fields(live=live, mute=Mute())


def test_data_that_is_too_deep_is_not_cut_off() -> None:
    data: dict[str, Any] = {}
    for _ in range(200):
        data = {"in": data}
    with pytest.raises(ValueError, match="the data is more than 130 levels deep"):
        HookResult(data=data).model_dump_json()


def test_dumps_are_changed_without_changing_the_result() -> None:
    result = HookResult(data={"n": 1}, approval_options=["Allow"])
    dump = result.model_dump()
    dump["data"]["n"] = 2
    dump["approval_options"].append("Deny")
    assert (result.data, result.approval_options) == ({"n": 1}, ["Allow"])
    with pytest.raises(TypeError, match="names of fields"):
        result.model_dump(exclude={"data": {"n"}})


def test_copies_of_a_subclass_have_all_that_it_keeps() -> None:
    made = Mine(action="deny")
    made.more = ["kept"]  # type: ignore[attr-defined]
    for other in (copy.copy(made), made.model_copy(), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert other.more == ["kept"]
    assert copy.copy(made).more is made.more  # type: ignore[attr-defined]
    assert made.model_copy(deep=True).more is not made.more  # type: ignore[attr-defined]


def test_options_that_were_spoiled_later_make_an_answer_unreadable() -> None:
    import asyncio

    answer = HookResult(action="ask_user", approval_options=["Allow"])
    answer.approval_options.append(5)  # type: ignore[union-attr, arg-type]
    registry = HookRegistry()
    registry.register("some:event", lambda event, data: answer, name="asker", on_error="deny")

    async def main() -> HookResult:
        return await registry.emit("some:event", {})

    assert "`approval_options` must be" in (asyncio.run(main()).reason or "")


async def _flat(answer: Any) -> HookResult:
    registry = HookRegistry()
    registry.register("some:event", lambda event, data: answer)
    return await registry.emit("some:event", {"n": 1})


def test_dicts_and_nothing_are_answers() -> None:
    import asyncio

    assert asyncio.run(_flat({"action": "deny", "reason": "no"})) == HookResult(action="deny", reason="no")
    assert asyncio.run(_flat(None)).action == "continue"
    assert asyncio.run(_flat({"acton": "deny"})).action == "continue"
