"""The rules that every language shares."""

from __future__ import annotations

from typing import Any

import pytest

import conformance
import simulated

CASES = conformance.cases()


def test_there_are_enough_cases_and_each_has_its_own_name() -> None:
    names = {case["name"] for case in CASES}
    assert len(names) == len(CASES) >= 150


def test_every_case_cites_a_section_of_the_specification() -> None:
    sections = conformance.sections()
    assert [case["name"] for case in CASES if case["section"] not in sections] == []


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case_holds(case: dict[str, Any]) -> None:
    assert simulated.run(conformance.run(case)) == [], f"section {case['section']}: {case['rule']}"


def test_a_wrong_expectation_is_noticed() -> None:
    case = {
        "name": "wrong",
        "section": "4",
        "rule": "none",
        "hooks": [{"name": "a", "answer": {"action": "deny", "reason": "no"}}],
        "steps": [{"emit": "tool:pre", "data": {}, "expect": {"decision": "continue", "ran": [], "by": "b"}}],
    }
    assert len(simulated.run(conformance.run(case))) == 3
    case["steps"] = [{"emit": "tool:pre", "expect": {"decison": "continue"}}]
    with pytest.raises(AssertionError, match="decison"):
        simulated.run(conformance.run(case))
