"""Results as fields of pydantic models."""

from __future__ import annotations

import pytest

from amplifier_core.models import HookResult

pydantic = pytest.importorskip("pydantic")


class Strict(HookResult):
    pass


def test_a_result_is_a_field_of_a_model() -> None:
    class Answer(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        result: HookResult
        strict: Strict = Strict(action="deny", reason="no")

    given = HookResult(action="continue", data={"n": (1,)})
    answer = Answer(result=given)
    assert answer.result is given
    assert answer.model_dump()["result"]["data"] == {"n": (1,)}
    assert Answer.model_validate_json(answer.model_dump_json()) == Answer(result=HookResult(action="continue", data={"n": [1]}))
    assert Answer.model_validate({"result": {"action": "deny", "reason": "no"}}).result == HookResult(action="deny", reason="no")
    assert type(Answer.model_validate({"result": {}, "strict": {"reason": "r"}}).strict) is Strict
    assert answer.model_dump(exclude_unset=True)["result"] == {"action": "continue", "data": {"n": (1,)}}


@pytest.mark.parametrize("wrong", [{"action": "explode"}, {"unknown": 1}, 5])
def test_an_invalid_result_is_an_error_of_the_model(wrong: object) -> None:
    adapter = pydantic.TypeAdapter(HookResult)
    with pytest.raises(pydantic.ValidationError):
        adapter.validate_python(wrong)


def test_the_schema_of_a_model_describes_results() -> None:
    class Answer(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        result: HookResult

    result = Answer.model_json_schema()["properties"]["result"]
    assert result["properties"]["reason"]["type"] == ["string", "null"]
    assert "$ref" not in str(result)
    assert set(HookResult.model_json_schema()["properties"]) >= set(HookResult().model_dump())


def test_the_fields_of_results_are_described() -> None:
    class Strict(HookResult):
        action = "deny"

    fields = HookResult.model_fields
    assert set(fields) == set(HookResult.model_json_schema()["properties"])
    assert {name: field.default for name, field in fields.items()} == {name: getattr(HookResult(), name) for name in fields}
    assert (Strict.model_fields["action"].default, fields["action"].default) == ("deny", "continue")
    for name, field in fields.items():
        pydantic.TypeAdapter(field.annotation).validate_python(field.default, strict=True)
        with pytest.raises(pydantic.ValidationError):
            pydantic.TypeAdapter(field.annotation).validate_python(object(), strict=True)
