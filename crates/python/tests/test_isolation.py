"""What hooks get: the caller's own values, in a dict for each of them."""

from __future__ import annotations

import asyncio
import datetime
import math
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from amplifier_core.hooks import ChangedInPlaceError, HookRegistry
from amplifier_core.models import HookResult
from amplifier_core.session import ScriptedProvider, Session, Tool

EVENT = "some:event"


def emit(registry: HookRegistry, data: dict[str, Any] | None = None) -> HookResult:
    return asyncio.run(registry.emit(EVENT, data if data is not None else {}))


def test_values_reach_handlers_as_they_are() -> None:
    values = {"tuple": (1, 2), "when": datetime.datetime.now(), "raw": b"x", "big": 10**40, "nan": math.nan, "object": object()}
    registry = HookRegistry()
    registry.set_default_fields(default=(3, 4))
    seen: dict[str, Any] = {}
    registry.register(EVENT, lambda event, data: seen.update(data))
    result = emit(registry, values)
    assert result.data is not None
    for key, value in values.items():
        assert seen[key] is value
        assert result.data[key] is value
    assert seen["default"] == (3, 4)


def test_setting_keys_in_place_changes_nothing_for_anyone() -> None:
    registry = HookRegistry()
    kept: list[dict[str, Any]] = []

    def meddler(event: str, data: dict[str, Any]) -> None:
        kept.append(data)
        data["meddled"] = True
        del data["n"]

    registry.register(EVENT, meddler)
    registry.register(EVENT, meddler)
    own = {"n": 1}
    result = emit(registry, own)
    assert own == {"n": 1}
    assert result.data and result.data["n"] == 1 and "meddled" not in result.data
    assert kept[0] is not kept[1]


def test_a_hook_that_goes_on_changing_what_it_gave_changes_nothing() -> None:
    registry = HookRegistry()

    def modifies(event: str, data: dict[str, Any]) -> HookResult:
        answer = HookResult(action="modify", data=data)
        kept.append(data)
        return answer

    def later(event: str, data: dict[str, Any]) -> None:
        kept[0]["late"] = True

    kept: list[dict[str, Any]] = []
    registry.register(EVENT, modifies)
    registry.register(EVENT, later)
    result = emit(registry)
    assert result.data is not None and "late" not in result.data


def test_strict_mode_names_the_hook_that_changes_nested_values() -> None:
    registry = HookRegistry(strict=True)

    def innocent(event: str, data: dict[str, Any]) -> None: ...

    async def meddler(event: str, data: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        data["tool_input"]["command"] = "rm"

    registry.register(EVENT, innocent)
    registry.register(EVENT, meddler)
    data = {"tool_input": {"command": "ls"}, "nan": math.nan, "lock": threading.Lock()}
    with pytest.raises(ChangedInPlaceError, match="hook `meddler` changed `tool_input` in place") as caught:
        emit(registry, data)
    assert (caught.value.hook, caught.value.fields) == ("meddler", ["tool_input"])


class Opaque:
    """Equal to nothing but itself, and a copy is not."""


@pytest.mark.parametrize(
    ("value", "meddle"),
    [
        ({"other": Opaque(), "paths": ["a"]}, lambda value: value["paths"].append("b")),
        ({"lock": threading.Lock(), "path": "a"}, lambda value: value.pop("path")),
        ({"nan": math.nan, "path": "a"}, lambda value: value.update(nan=1.0)),
        ([1], lambda value: value.__setitem__(0, True)),
        (([1],), lambda value: value[0].clear()),
        ({"a", "b"}, lambda value: value.remove("b")),
        (bytearray(b"a"), lambda value: value.extend(b"b")),
    ],
)
def test_strict_mode_looks_into_containers_whatever_they_hold(value: Any, meddle: Callable[[Any], object]) -> None:
    registry = HookRegistry(strict=True)
    registry.register(EVENT, lambda event, data: None)
    assert emit(registry, {"nested": value}).action == "continue"
    registry.register(EVENT, lambda event, data: meddle(data["nested"]) and None, name="meddler")
    with pytest.raises(ChangedInPlaceError, match="hook `meddler` changed `nested` in place"):
        emit(registry, {"nested": value})


def test_strict_mode_watches_values_that_hold_themselves() -> None:
    registry = HookRegistry(strict=True)
    loop: dict[str, Any] = {"n": 1}
    loop["self"] = loop
    assert emit(registry, {"loop": loop}).action == "continue"
    registry.register(EVENT, lambda event, data: data["loop"]["self"].update(n=2), name="meddler")
    with pytest.raises(ChangedInPlaceError, match="`loop`"):
        emit(registry, {"loop": loop})


def test_strict_mode_names_the_hook_at_an_event_that_another_one_emits() -> None:
    registry = HookRegistry(strict=True)

    async def outer(event: str, data: dict[str, Any]) -> None:
        await registry.emit("my:step", {"items": data["items"]})

    registry.register(EVENT, outer)
    registry.register("my:step", lambda event, data: data["items"].append(1), name="meddler")
    with pytest.raises(ChangedInPlaceError, match="hook `meddler` changed `items` in place"):
        emit(registry, {"items": []})

    async def main() -> None:
        tool = Tool("work", lambda input: registry.emit("my:step", {"items": []}))
        async with Session(ScriptedProvider([]), hooks=registry, tools=[tool]) as session:
            with pytest.raises(ChangedInPlaceError, match="hook `meddler` changed `items` in place"):
                await session.execute_tool("work")

    asyncio.run(main())


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no groups of tasks")
def test_strict_mode_looks_into_groups_of_tasks() -> None:
    registry = HookRegistry(strict=True)

    async def outer(event: str, data: dict[str, Any]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(registry.emit("my:step", {"items": []}))

    registry.register(EVENT, outer)
    registry.register("my:step", lambda event, data: data["items"].append(1), name="meddler")
    with pytest.raises(Exception) as raised:
        emit(registry)
    assert "ExceptionGroup" in repr(raised.value) and "meddler" in repr(raised.value)
