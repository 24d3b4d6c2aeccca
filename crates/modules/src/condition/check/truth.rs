//! Conditions whose value is the same for every event.

use std::cmp::Ordering;

use serde_json::Value;

use super::facts::{Facts, constant};
use crate::condition::node::{Kind, Node, Operator};
use crate::condition::operators::compare;

/// Returns the value of a condition, if it is the same for every event.
pub(super) fn truth(node: &Node) -> Option<bool> {
    match &node.kind {
        Kind::Constant(Value::Bool(value)) => Some(*value),
        Kind::Constant(Value::Null) => Some(false),
        Kind::Not(operand) => truth(operand).map(|value| !value),
        Kind::And(pair) => match (truth(&pair[0]), truth(&pair[1])) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => Facts::of(node).is_err().then_some(false),
        },
        Kind::Or(pair) => match (truth(&pair[0]), truth(&pair[1])) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        },
        Kind::Binary(Operator::In, pair) => {
            matches!(constant(&pair[1])?, Value::Array(items) if items.is_empty()).then_some(false)
        }
        Kind::Binary(operator, pair) => {
            let (one, other) = (constant(&pair[0])?, constant(&pair[1])?);
            let order = compare(one, other);
            Some(match operator {
                Operator::Equal => order.map_or(one == other, Ordering::is_eq),
                Operator::NotEqual => order.map_or(one != other, Ordering::is_ne),
                Operator::Less => order?.is_lt(),
                Operator::LessOrEqual => order?.is_le(),
                Operator::Greater => order?.is_gt(),
                Operator::GreaterOrEqual => order?.is_ge(),
                _ => return None,
            })
        }
        _ => None,
    }
}
