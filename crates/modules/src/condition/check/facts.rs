//! The values that fields can have while a condition is true.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::condition::node::{Function, Kind, Node, Operator};

/// The possible values of fields, by path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts(BTreeMap<String, Vec<Value>>);

/// Values that exclude each other, as JSON.
pub(super) struct Conflict {
    pub(super) path: String,
    pub(super) values: [String; 2],
}

impl Facts {
    /// Returns the possible values of a field; `None` if any value is possible.
    pub(crate) fn values(&self, path: &str) -> Option<&[Value]> {
        self.0.get(path).map(Vec::as_slice)
    }

    /// Returns what is known while a condition is true, too. If it never is, that adds nothing.
    pub(super) fn when(&self, condition: &Node) -> Self {
        Self::of(condition).and_then(|own| self.clone().and(&own)).unwrap_or_else(|_| self.clone())
    }

    /// Returns the facts of both.
    pub(super) fn and(mut self, other: &Self) -> Result<Self, Conflict> {
        for (path, values) in &other.0 {
            let Some(before) = self.0.get(path) else {
                self.0.insert(path.clone(), values.clone());
                continue;
            };
            let both: Vec<Value> = before.iter().filter(|value| values.contains(value)).cloned().collect();
            if both.is_empty() {
                let first = |values: &[Value]| values.first().map(ToString::to_string).unwrap_or_default();
                return Err(Conflict { path: path.clone(), values: [first(before), first(values)] });
            }
            self.0.insert(path.clone(), both);
        }
        Ok(self)
    }

    /// Returns the facts that hold if one of two sides is true.
    fn or(self, other: &Self) -> Self {
        let of_both = self.0.into_iter().filter_map(|(path, mut values)| {
            let others = other.0.get(&path)?;
            values.extend(others.iter().filter(|value| !values.contains(value)).cloned().collect::<Vec<_>>());
            Some((path, values))
        });
        Self(of_both.collect())
    }

    /// Returns the facts of a condition that is true.
    pub(super) fn of(node: &Node) -> Result<Self, Conflict> {
        Ok(match &node.kind {
            Kind::And(pair) => Self::of(&pair[0])?.and(&Self::of(&pair[1])?)?,
            Kind::Or(pair) => match (Self::of(&pair[0]), Self::of(&pair[1])) {
                (Ok(one), Ok(other)) => one.or(&other),
                // A side that is never true does not count.
                (Ok(only), Err(_)) | (Err(_), Ok(only)) => only,
                (Err(conflict), Err(_)) => return Err(conflict),
            },
            Kind::Binary(Operator::Equal, pair) => match (path(&pair[0]), constant(&pair[1])) {
                (Some(path), Some(value)) => Self::one(path, vec![value.clone()]),
                _ => match (path(&pair[1]), constant(&pair[0])) {
                    (Some(path), Some(value)) => Self::one(path, vec![value.clone()]),
                    _ => Self::default(),
                },
            },
            Kind::Binary(Operator::In, pair) => match (path(&pair[0]), constant(&pair[1])) {
                (Some(path), Some(Value::Array(values))) => Self::one(path, values.clone()),
                _ => Self::default(),
            },
            _ => Self::default(),
        })
    }

    fn one(path: String, values: Vec<Value>) -> Self {
        Self(BTreeMap::from([(path, values)]))
    }
}

pub(super) fn constant(node: &Node) -> Option<&Value> {
    match &node.kind {
        Kind::Constant(value) => Some(value),
        _ => None,
    }
}

/// Returns the path of a value that is the same everywhere in one evaluation.
pub(super) fn path(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Event => Some("event".to_owned()),
        Kind::Field(name) => Some(name.clone()),
        Kind::Select(operand, field) => Some(format!("{}.{field}", path(operand)?)),
        Kind::Call(Function::Weekday, _) => Some("weekday()".to_owned()),
        Kind::Call(Function::Hour, _) => Some("hour()".to_owned()),
        _ => None,
    }
}
