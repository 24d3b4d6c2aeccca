//! Binary operators that use the budget.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::error::Span;
use super::evaluate::{EvalResult, Evaluation, Operand, fail, truth};
use super::node::Operator;
use super::operators::{calculate, compare, compare_numbers, describe};

impl<'a> Evaluation<'a> {
    pub(super) fn binary(
        &mut self,
        operator: Operator,
        one: Operand<'a>,
        other: &Value,
        span: Span,
    ) -> EvalResult<Operand<'a>> {
        let holds = match operator {
            Operator::Equal => self.equal(&one, other, span)?,
            Operator::NotEqual => !self.equal(&one, other, span)?,
            Operator::In => self.is_in(&one, other, span)?,
            // A missing value is neither less nor greater than any other.
            Operator::Less => self.order(operator, &one, other, span)?.is_some_and(Ordering::is_lt),
            Operator::LessOrEqual => self.order(operator, &one, other, span)?.is_some_and(Ordering::is_le),
            Operator::Greater => self.order(operator, &one, other, span)?.is_some_and(Ordering::is_gt),
            Operator::GreaterOrEqual => self.order(operator, &one, other, span)?.is_some_and(Ordering::is_ge),
            Operator::Add => return self.add(one, other, span),
            Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => {
                let (Value::Number(one), Value::Number(other)) = (&*one, other) else {
                    return mismatch(operator, &one, other, span);
                };
                return calculate(operator, one, other).map(Cow::Owned).or_else(|message| fail(span, message));
            }
        };
        Ok(truth(holds))
    }

    fn add(&mut self, one: Operand<'a>, other: &Value, span: Span) -> EvalResult<Operand<'a>> {
        if let (Value::Number(one), Value::Number(other)) = (&*one, other) {
            return calculate(Operator::Add, one, other).map(Cow::Owned).or_else(|message| fail(span, message));
        }
        if !matches!((&*one, other), (Value::String(_), Value::String(_)) | (Value::Array(_), Value::Array(_))) {
            return mismatch(Operator::Add, &one, other, span);
        }
        self.spend_copy(other, span)?;
        let mut sum = self.own(one, span)?;
        match (&mut sum, other) {
            (Value::String(sum), Value::String(other)) => sum.push_str(other),
            (Value::Array(sum), Value::Array(other)) => sum.extend_from_slice(other),
            _ => {}
        }
        Ok(Cow::Owned(sum))
    }

    fn order(&mut self, operator: Operator, one: &Value, other: &Value, span: Span) -> EvalResult<Option<Ordering>> {
        if one.is_null() || other.is_null() {
            return Ok(None);
        }
        self.spend_read(one.as_str().unwrap_or_default(), span)?;
        match compare(one, other) {
            Some(order) => Ok(Some(order)),
            None => mismatch(operator, one, other, span),
        }
    }

    fn is_in(&mut self, item: &Value, list: &Value, span: Span) -> EvalResult<bool> {
        match (item, list) {
            (_, Value::Array(items)) => {
                for other in items {
                    if self.equal(item, other, span)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            (Value::String(key), Value::Object(fields)) => Ok(fields.contains_key(key)),
            (_, Value::Null) | (Value::Null | Value::Bool(_) | Value::Number(_), Value::Object(_)) => Ok(false),
            _ => mismatch(Operator::In, item, list, span),
        }
    }

    /// Returns `true` if two values are equal; `1` equals `1.0`, and values of different kinds differ.
    fn equal(&mut self, one: &Value, other: &Value, span: Span) -> EvalResult<bool> {
        self.spend(1, span)?;
        match (one, other) {
            (Value::Number(one), Value::Number(other)) => Ok(compare_numbers(one, other) == Some(Ordering::Equal)),
            (Value::String(one), Value::String(other)) => {
                self.spend_read(one, span)?;
                Ok(one == other)
            }
            (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
                for (one, other) in one.iter().zip(other) {
                    if !self.equal(one, other, span)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Object(one), Value::Object(other)) if one.len() == other.len() => {
                for (key, one) in one {
                    let Some(other) = other.get(key) else { return Ok(false) };
                    if !self.equal(one, other, span)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Null, Value::Null) => Ok(true),
            (Value::Bool(one), Value::Bool(other)) => Ok(one == other),
            _ => Ok(false),
        }
    }
}

fn mismatch<T>(operator: Operator, one: &Value, other: &Value, span: Span) -> EvalResult<T> {
    let symbol = operator.symbol();
    fail(span, format!("`{symbol}` does not work with {} and {}", describe(one), describe(other)))
}
