//! The operators of CEL over JSON.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::node::Operator;

pub(super) fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Compares two numbers: whole ones exactly, others as doubles.
pub(super) fn compare_numbers(one: &Number, other: &Number) -> Option<Ordering> {
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

pub(super) fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare_numbers(one, other),
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        (Value::Bool(one), Value::Bool(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

/// Calculates with two numbers; whole ones give whole ones.
pub(super) fn calculate(operator: Operator, one: &Number, other: &Number) -> Result<Value, &'static str> {
    if let (Some(one), Some(other)) = (whole(one), whole(other)) {
        let result = match operator {
            Operator::Add => one.checked_add(other),
            Operator::Subtract => one.checked_sub(other),
            Operator::Multiply => one.checked_mul(other),
            Operator::Divide => one.checked_div(other),
            _ => one.checked_rem(other),
        };
        let divides = matches!(operator, Operator::Divide | Operator::Remainder);
        let Some(result) = result else {
            return Err(if divides { "division by zero" } else { TOO_LARGE });
        };
        return integer(result).ok_or(TOO_LARGE);
    }
    let (Some(one), Some(other)) = (one.as_f64(), other.as_f64()) else { return Err(TOO_LARGE) };
    let result = match operator {
        Operator::Add => one + other,
        Operator::Subtract => one - other,
        Operator::Multiply => one * other,
        Operator::Divide => one / other,
        _ => return Err("`%` needs whole numbers"),
    };
    Number::from_f64(result).map(Value::Number).ok_or("the result is not a number")
}

pub(super) fn negate(number: &Number) -> Result<Value, &'static str> {
    match whole(number) {
        Some(whole) => integer(-whole).ok_or(TOO_LARGE),
        None => number.as_f64().and_then(|number| Number::from_f64(-number)).map(Value::Number).ok_or(TOO_LARGE),
    }
}

const TOO_LARGE: &str = "the result is too large";

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn integer(value: i128) -> Option<Value> {
    i64::try_from(value).map(Value::from).or_else(|_| u64::try_from(value).map(Value::from)).ok()
}
