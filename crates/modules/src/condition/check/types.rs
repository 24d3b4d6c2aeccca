//! Types of expressions, as far as they are known before any event.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::condition::operators::describe;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    Any,
    Null,
    Bool,
    Number,
    Text,
    List(Box<Type>),
    /// One of several kinds of objects; with none, any object.
    Object(Vec<ObjectType>),
}

/// A kind of objects.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ObjectType {
    /// The owner of the fields, in words: "the input of `Bash`".
    pub(super) owner: String,
    pub(super) fields: BTreeMap<String, Type>,
    /// `true` if it can have no other fields.
    pub(super) is_closed: bool,
}

impl ObjectType {
    /// An object of which no field is known.
    pub(super) fn open(owner: impl Into<String>) -> Self {
        Self { owner: owner.into(), fields: BTreeMap::new(), is_closed: false }
    }

    pub(super) fn new(owner: impl Into<String>, fields: &[(&str, Type)]) -> Self {
        let fields = fields.iter().map(|(name, kind)| ((*name).to_owned(), kind.clone())).collect();
        Self { owner: owner.into(), fields, is_closed: true }
    }

    /// Adds the field that the result of a failed tool has. With that, a result with known fields has no others.
    pub(super) fn with_error(mut self) -> Self {
        self.is_closed = !self.fields.is_empty();
        self.fields.insert("error".to_owned(), Type::Text);
        self
    }

    pub(super) fn from_schema(owner: &str, schema: &Value) -> Self {
        let properties = schema["properties"].as_object();
        let field = |(name, schema): (&String, &Value)| (name.clone(), Type::from_schema(&format!("`{name}`"), schema));
        Self {
            owner: owner.to_owned(),
            fields: properties.into_iter().flatten().map(field).collect(),
            is_closed: properties.is_some() && schema["additionalProperties"] == false,
        }
    }
}

impl Type {
    pub(super) fn from_schema(owner: &str, schema: &Value) -> Self {
        match schema["type"].as_str() {
            Some("string") => Self::Text,
            Some("integer" | "number") => Self::Number,
            Some("boolean") => Self::Bool,
            Some("array") => Self::List(Box::new(Self::from_schema(&format!("an item of {owner}"), &schema["items"]))),
            Some("object") => Self::Object(vec![ObjectType::from_schema(owner, schema)]),
            _ => Self::Any,
        }
    }

    pub(super) fn from_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::Text,
            Value::Array(items) => {
                let mut types = items.iter().map(Self::from_value);
                let first = types.next().unwrap_or(Self::Any);
                Self::List(Box::new(types.fold(first, Self::or)))
            }
            Value::Object(_) => Self::Object(Vec::new()),
        }
    }

    /// Returns the type of a value that has one of two types.
    pub(super) fn or(self, other: Self) -> Self {
        if self == other { self } else { Self::Any }
    }

    /// `true` if values of the types can be equal.
    pub(super) fn can_equal(&self, other: &Self) -> bool {
        let is_open = |kind: &Self| matches!(kind, Self::Any | Self::Null);
        is_open(self) || is_open(other) || std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Describes the type as failures of hooks do.
    pub(super) fn in_words(&self) -> &'static str {
        match self {
            Self::Any => "a value",
            Self::Null => "null",
            Self::Bool => describe(&Value::Bool(true)),
            Self::Number => describe(&Value::Number(0.into())),
            Self::Text => describe(&Value::String(String::new())),
            Self::List(_) => describe(&Value::Array(Vec::new())),
            Self::Object(_) => describe(&Value::Object(serde_json::Map::new())),
        }
    }
}
