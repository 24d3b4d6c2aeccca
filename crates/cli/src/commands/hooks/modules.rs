//! `amplifier hooks modules`: the built-in modules and their options.

use std::io::Write;
use std::process::ExitCode;

use amplifier_modules::{MODULES, Module};
use anyhow::{Result, anyhow};
use clap::Args;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use serde::Serialize;
use serde_json::Value;

use crate::commands::audit::text::pad;
use crate::commands::output::stdout;

/// List the built-in modules, or the options of one
#[derive(Args, Debug)]
#[command(
    after_help = "A bundle switches a module on by name: `- module: hooks-cost`, with its options under `config`."
)]
pub(super) struct Modules {
    /// Name of a module
    #[arg(value_parser = ModuleName, hide_possible_values = true)]
    name: Option<String>,
    /// Print JSON, one module a line
    #[arg(long)]
    json: bool,
}

impl Modules {
    /// Prints all modules, or one of them with its options.
    ///
    /// # Errors
    /// If the name is unknown.
    pub(super) fn run(self) -> Result<ExitCode> {
        let module = self.name.map(|name| Module::named(&name).map_err(|problem| anyhow!(problem))).transpose()?;
        let mut out = stdout();
        match module {
            module if self.json => {
                for module in module.map_or(MODULES, std::slice::from_ref) {
                    writeln!(out, "{}", serde_json::to_string(&ModuleInfo::new(module))?)?;
                }
            }
            Some(module) => show(&mut out, module)?,
            None => list(&mut out)?,
        }
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    }
}

fn list(out: &mut impl Write) -> std::io::Result<()> {
    let widest = MODULES.iter().map(|module| module.name.len()).max().unwrap_or_default();
    for Module { name, summary, .. } in MODULES {
        writeln!(out, "{}  {summary}", pad(name, widest))?;
    }
    writeln!(out, "\n`amplifier hooks modules NAME` lists the options of a module.")
}

fn show(out: &mut impl Write, module: &Module) -> std::io::Result<()> {
    writeln!(out, "{}: {}\n\nOptions", module.name, module.summary)?;
    let options = options(&module.schema());
    let width = |text: fn(&ModuleOption) -> &str| options.iter().map(|option| text(option).len()).max().unwrap_or(0);
    let (names, kinds) = (width(|option| &option.name), width(|option| &option.kind));
    for option in &options {
        let default = match &option.default {
            _ if option.is_required => "required".to_owned(),
            Some(default) => format!("default: {default}"),
            None => String::new(),
        };
        let line = format!("  {}  {}  {default}", pad(&option.name, names), pad(&option.kind, kinds));
        writeln!(out, "{}\n      {}", line.trim_end(), option.meaning)?;
    }
    let kinds = module.kinds();
    if !kinds.is_empty() {
        writeln!(out, "\nKinds of data\n  {}", kinds.join("\n  "))?;
    }
    Ok(())
}

/// A module in `--json`.
#[derive(Serialize)]
struct ModuleInfo {
    name: &'static str,
    summary: &'static str,
    options: Vec<ModuleOption>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kinds: Vec<String>,
}

impl ModuleInfo {
    fn new(module: &Module) -> Self {
        Self { name: module.name, summary: module.summary, options: options(&module.schema()), kinds: module.kinds() }
    }
}

/// An option of a module, or another field that a JSON Schema describes.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct ModuleOption {
    /// The path from `config`: `rules[].tool` for a key of each item of `rules`.
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// `None` if nothing is set unless the bundle sets it.
    pub(crate) default: Option<Value>,
    #[serde(rename = "required")]
    pub(crate) is_required: bool,
    pub(crate) meaning: String,
}

/// The options that a JSON Schema describes. Those of objects within follow their object.
pub(crate) fn options(schema: &Value) -> Vec<ModuleOption> {
    let mut found = Vec::new();
    collect(schema, schema, "", &mut found);
    found
}

fn collect(root: &Value, object: &Value, path: &str, found: &mut Vec<ModuleOption>) {
    let is_required =
        |name: &str| object["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name));
    for (name, property) in object["properties"].as_object().into_iter().flatten() {
        let name_here = format!("{path}{name}");
        let default = property.get("default").filter(|default| !is_empty(default)).map(whole_number);
        found.push(ModuleOption {
            name: name_here.clone(),
            kind: kind(root, property),
            default,
            is_required: is_required(name),
            meaning: property["description"].as_str().unwrap_or_default().replace('\n', " "),
        });
        let inner = resolve(root, property);
        if inner["properties"].is_object() {
            collect(root, inner, &format!("{name_here}."), found);
        } else if inner.get("items").is_some() {
            collect(root, resolve(root, &inner["items"]), &format!("{name_here}[]."), found);
        }
    }
}

/// `true` for a default that means that nothing is set.
fn is_empty(default: &Value) -> bool {
    match default {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Returns the number without its fraction if that is zero, as in `300` for `300.0`.
fn whole_number(value: &Value) -> Value {
    let whole = value.as_f64().filter(|number| number.fract() == 0.0).map(|number| format!("{number:.0}"));
    whole.and_then(|digits| digits.parse::<i64>().ok()).map_or_else(|| value.clone(), Value::from)
}

/// Follows a reference, and leaves out the `null` of an optional value.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(pointer) = schema["$ref"].as_str().and_then(|link| link.strip_prefix('#')) {
        return root.pointer(pointer).map_or(schema, |target| resolve(root, target));
    }
    let is_null = |one: &&Value| one["type"] == "null";
    let mut others = schema["anyOf"].as_array().into_iter().flatten().filter(|one| !is_null(one));
    match (others.next(), others.next()) {
        (Some(only), None) => resolve(root, only),
        _ => schema,
    }
}

/// The type of an option in words: `number`, `list of string`, `allow, ask or deny`.
fn kind(root: &Value, schema: &Value) -> String {
    let schema = resolve(root, schema);
    let words =
        |values: Vec<&Value>| alternatives(values.into_iter().map(|one| one.as_str().unwrap_or_default().to_owned()));
    if let Some(values) = schema["enum"].as_array() {
        return words(values.iter().collect());
    }
    if let Some(values) = schema["oneOf"].as_array() {
        return words(values.iter().map(|one| &one["const"]).collect());
    }
    if let Some(several) = schema["anyOf"].as_array() {
        return alternatives(several.iter().filter(|one| one["type"] != "null").map(|one| kind(root, one)));
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    let name = match &schema["type"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        name => name.as_str(),
    };
    match name {
        Some("array") => format!("list of {}", kind(root, &schema["items"])),
        Some("object") if schema["additionalProperties"].is_object() => {
            format!("map of {}", kind(root, &schema["additionalProperties"]))
        }
        name => name.unwrap_or("any").to_owned(),
    }
}

fn alternatives(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    match words.as_slice() {
        [several @ .., last] if !several.is_empty() => format!("{} or {last}", several.join(", ")),
        words => words.concat(),
    }
}

/// Any text, as [`Module::named`] has the better suggestion; shells complete the known names.
#[derive(Clone)]
struct ModuleName;

impl TypedValueParser for ModuleName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(MODULES.iter().map(|module| PossibleValue::new(module.name).help(module.summary))))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_within_objects_and_lists_follow_their_option() {
        let schema = json!({
            "properties": {
                "rules": { "type": "array", "items": { "$ref": "#/$defs/Rule" }, "default": [], "description": "The rules." },
                "limit": { "anyOf": [{ "$ref": "#/$defs/Limit" }, { "type": "null" }], "default": null },
                "command": { "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] },
                "headers": { "type": "object", "additionalProperties": { "type": "string" }, "default": {} },
                "timeout": { "type": ["number", "null"], "default": 2.0 },
            },
            "$defs": {
                "Rule": { "type": "object", "properties": { "tool": { "type": "string" } }, "required": ["tool"] },
                "Limit": { "type": "object", "properties": { "action": { "oneOf": [{ "const": "ask" }, { "const": "deny" }], "default": "ask" } } },
            },
        });
        let found: Vec<_> = options(&schema)
            .into_iter()
            .map(|option| {
                (option.name, option.kind, option.default.map(|default| default.to_string()), option.is_required)
            })
            .collect();
        let row = |name: &str, kind: &str, default: Option<&str>, is_required| {
            (name.to_owned(), kind.to_owned(), default.map(str::to_owned), is_required)
        };
        let expected = [
            row("command", "string or list of string", None, false),
            row("headers", "map of string", None, false),
            row("limit", "object", None, false),
            row("limit.action", "ask or deny", Some("\"ask\""), false),
            row("rules", "list of object", None, false),
            row("rules[].tool", "string", None, true),
            row("timeout", "number", Some("2"), false),
        ];
        let mut found = found;
        found.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(found, expected);
    }
}
