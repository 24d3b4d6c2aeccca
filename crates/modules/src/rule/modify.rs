//! Changes parts of an event's data by JSON Pointer.

use amplifier_core::{EventData, HookError, HookResult};
use serde_json::{Map, Value};

use super::error::RuleError;
use super::options::ModifyOptions;
use super::pointer::Pointer;
use crate::condition::Scope;
use crate::template::Template;

/// The checked `modify` option of a rule.
#[derive(Debug)]
pub(super) struct Modification {
    set: Vec<(Pointer, ValueTemplate)>,
    remove: Vec<Pointer>,
    redact: Vec<Pointer>,
}

/// A JSON value whose texts may be templates.
#[derive(Debug)]
enum ValueTemplate {
    Value(Value),
    Template(Template),
    List(Vec<ValueTemplate>),
    Object(Vec<(String, ValueTemplate)>),
}

impl Modification {
    pub(super) fn new(options: &ModifyOptions) -> Result<Self, RuleError> {
        let set = options.set.iter().map(|(pointer, value)| {
            let field = format!("modify.set.{pointer}");
            Ok((Pointer::new(&field, pointer)?, ValueTemplate::new(&field, value)?))
        });
        let pointers = |field: &str, pointers: &[String]| {
            pointers.iter().map(|pointer| Pointer::new(field, pointer)).collect::<Result<Vec<_>, _>>()
        };
        let modification = Self {
            set: set.collect::<Result<_, RuleError>>()?,
            remove: pointers("modify.remove", &options.remove)?,
            redact: pointers("modify.redact", options.redact.as_ref().map_or(&[], |redact| redact.as_slice()))?,
        };
        if modification.set.is_empty() && modification.remove.is_empty() && modification.redact.is_empty() {
            return Err(RuleError::field("modify", "changes nothing: expected `set`, `remove` or `redact`"));
        }
        Ok(modification)
    }

    pub(super) fn templates(&self) -> Vec<&Template> {
        self.set.iter().flat_map(|(_, value_template)| value_template.templates()).collect()
    }

    /// Returns the change for an event, or `None` if the data needs none. All templates see the data from before the change.
    pub(super) fn answer(&self, event: &str, data: &EventData, scope: &Scope) -> Result<Option<HookResult>, HookError> {
        let mut changed = Changes { data, fields: Vec::new() };
        for (pointer, value_template) in &self.set {
            let value = value_template.value(event, data, scope)?;
            *pointer.make(changed.field(&pointer.field))? = value;
        }
        for pointer in &self.remove {
            pointer.remove(changed.slot(&pointer.field));
        }
        for pointer in &self.redact {
            if let Some(value) = changed.slot(&pointer.field).as_mut().and_then(|value| pointer.find(value)) {
                redact(pointer, value, scope);
            }
        }
        Ok(changed.into_answer())
    }
}

/// Redacts a value under its field name: the name `password` makes any text a secret.
fn redact(pointer: &Pointer, value: &mut Value, scope: &Scope) {
    let name = pointer.path.last().unwrap_or(&pointer.field);
    let mut named = Value::Object(Map::from_iter([(name.clone(), value.take())]));
    scope.redact(&mut named);
    if let Value::Object(fields) = named {
        *value = fields.into_iter().next().map(|(_, value)| value).unwrap_or_default();
    }
}

impl ValueTemplate {
    fn templates(&self) -> Vec<&Template> {
        match self {
            Self::Value(_) => Vec::new(),
            Self::Template(template) => vec![template],
            Self::List(items) => items.iter().flat_map(Self::templates).collect(),
            Self::Object(fields) => fields.iter().flat_map(|(_, value)| value.templates()).collect(),
        }
    }

    fn new(field: &str, value: &Value) -> Result<Self, RuleError> {
        Ok(match value {
            Value::String(text) if text.contains("{{") => {
                Self::Template(Template::compile(text).map_err(RuleError::expression(field))?)
            }
            Value::Array(items) => {
                Self::List(items.iter().map(|item| Self::new(field, item)).collect::<Result<_, _>>()?)
            }
            Value::Object(fields) => {
                let entries = fields.iter().map(|(key, value)| Ok((key.clone(), Self::new(field, value)?)));
                Self::Object(entries.collect::<Result<_, RuleError>>()?)
            }
            other => Self::Value(other.clone()),
        })
    }

    fn value(&self, event: &str, data: &EventData, scope: &Scope) -> Result<Value, HookError> {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::Template(template) => template.value(event, data, scope),
            Self::List(items) => items.iter().map(|item| item.value(event, data, scope)).collect(),
            Self::Object(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, value_template)| Ok((key.clone(), value_template.value(event, data, scope)?)));
                entries.collect::<Result<Map<_, _>, _>>().map(Value::Object)
            }
        }
    }
}

/// New values of changed top-level fields; `None` is a removed field.
struct Changes<'a> {
    data: &'a EventData,
    fields: Vec<(String, Option<Value>)>,
}

impl Changes<'_> {
    fn slot(&mut self, field: &str) -> &mut Option<Value> {
        let at = self.fields.iter().position(|(name, _)| name == field).unwrap_or_else(|| {
            self.fields.push((field.to_owned(), self.data.get(field).cloned()));
            self.fields.len() - 1
        });
        &mut self.fields[at].1
    }

    fn field(&mut self, field: &str) -> &mut Value {
        self.slot(field).get_or_insert_default()
    }

    fn into_answer(mut self) -> Option<HookResult> {
        self.fields.retain(|(field, value)| self.data.get(field) != value.as_ref());
        if self.fields.len() == 1
            && let Some((field, Some(value))) = self.fields.pop_if(|(_, value)| value.is_some())
        {
            return Some(HookResult::set(field, value));
        }
        if self.fields.is_empty() {
            return None;
        }
        let mut data = self.data.clone();
        for (field, value) in self.fields {
            match value {
                Some(value) => data.insert(field, value),
                None => data.remove(&field),
            }
        }
        Some(HookResult::modify(data))
    }
}
