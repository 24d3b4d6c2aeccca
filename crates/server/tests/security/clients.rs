//! The types of the clients, written from the description of the API.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use amplifier_server::description;
use serde_json::Value;

const NOTE: &str =
    "Generated from schema/openapi.json: UPDATE_SCHEMAS=1 cargo test -p amplifier-server --test all up_to_date";

#[derive(Clone, Copy, PartialEq)]
enum Language {
    /// The console: typedefs in comments.
    JsDoc,
    TypeScript,
    Python,
}

use Language::{JsDoc, Python, TypeScript};

/// A property of an object: its schema, and `true` if it is always there.
type Fields<'a> = BTreeMap<&'a str, (&'a Value, bool)>;

struct Types<'a> {
    schemas: &'a Value,
    language: Language,
    text: String,
}

#[test]
fn the_types_of_the_clients_are_up_to_date() {
    let description = description();
    let schemas = &description["components"]["schemas"];
    let files = [
        (JsDoc, "crates/server/src/console/types.js"),
        (TypeScript, "clients/typescript/types.ts"),
        (Python, "clients/python/amplifier_types.py"),
    ];
    for (language, file) in files {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
        let text = Types { schemas, language, text: String::new() }.written();
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let is_same = std::fs::read_to_string(&path).is_ok_and(|written| written == text);
        assert!(is_same, "{file} differs: UPDATE_SCHEMAS=1 cargo test -p amplifier-server --test all up_to_date");
    }
}

impl<'a> Types<'a> {
    fn written(mut self) -> String {
        let schemas: BTreeMap<String, &Value> =
            self.schemas.as_object().unwrap().iter().map(|(name, schema)| (name.clone(), schema)).collect();
        self.text = match self.language {
            JsDoc => format!("// {NOTE}\n\n"),
            TypeScript => format!("// {NOTE}\n"),
            Python => format!(
                "\"\"\"The forms of the API.\"\"\"\n\n# {NOTE}\n\nfrom __future__ import annotations\n\nfrom typing import Any, Dict, List, Literal, TypedDict, Union\n"
            ),
        };
        // Python reads aliases when it imports the file, so they follow the classes.
        let (objects, others): (Vec<_>, Vec<_>) =
            schemas.iter().partition(|(_, schema)| schema.get("properties").is_some() || schema.get("allOf").is_some());
        for (name, schema) in objects {
            self.object(name, schema);
        }
        for (name, schema) in others {
            self.alias(name, schema);
        }
        if self.language == JsDoc {
            self.text.push_str("\nexport {};\n");
        }
        self.text
    }

    fn object(&mut self, name: &str, schema: &'a Value) {
        let (about, fields, language) = (about(schema), self.fields(schema), self.language);
        match language {
            JsDoc => writeln!(self.text, "/**\n * {about}\n * @typedef {{object}} {name}").unwrap(),
            TypeScript => writeln!(self.text, "\n/** {about} */\nexport interface {name} {{").unwrap(),
            Python => return self.class(name, &about, &fields),
        }
        for (field, (schema, is_required)) in fields {
            let (about, kind) = (self::about(schema), self.kind(schema));
            match (language, is_required) {
                (JsDoc, true) => writeln!(self.text, " * @property {{{kind}}} {field} {about}"),
                (JsDoc, false) => writeln!(self.text, " * @property {{{kind}}} [{field}] {about}"),
                (_, true) => writeln!(self.text, "    /** {about} */\n    {field}: {kind};"),
                (_, false) => writeln!(self.text, "    /** {about} */\n    {field}?: {kind};"),
            }
            .unwrap();
        }
        self.text.push_str(if language == JsDoc { " */\n" } else { "}\n" });
    }

    /// Optional fields are in a second class: Python 3.10 has no other form.
    fn class(&mut self, name: &str, about: &str, fields: &Fields<'_>) {
        let (always, sometimes): (Vec<_>, Vec<_>) = fields.iter().partition(|(_, (_, is_required))| *is_required);
        let mut base = "TypedDict".to_owned();
        if !always.is_empty() && !sometimes.is_empty() {
            base = format!("_{name}");
            writeln!(self.text, "\n\nclass {base}(TypedDict):").unwrap();
            self.members(&always);
        }
        let (total, members) = if sometimes.is_empty() { ("", always) } else { (", total=False", sometimes) };
        writeln!(self.text, "\n\nclass {name}({base}{total}):\n    \"\"\"{about}\"\"\"\n").unwrap();
        self.members(&members);
    }

    fn members(&mut self, members: &[(&&str, &(&Value, bool))]) {
        for (field, (schema, _)) in members {
            let (about, kind) = (about(schema), self.kind(schema));
            if !about.is_empty() {
                writeln!(self.text, "    #: {about}").unwrap();
            }
            writeln!(self.text, "    {field}: {kind}").unwrap();
        }
    }

    fn alias(&mut self, name: &str, schema: &'a Value) {
        let about = about(schema);
        // Objects inside an alias are classes of their own in Python, named after their tag.
        let variants =
            schema["oneOf"].as_array().into_iter().flatten().filter(|variant| variant.get("properties").is_some());
        let mut classes = Vec::new();
        let is_python = self.language == Python;
        for variant in variants.filter(|_| is_python) {
            let tag = variant["properties"]["type"]["enum"][0].as_str().unwrap();
            let (first, rest) = tag.split_at(1);
            let class = format!("{name}{}{}", first.to_uppercase(), rest.replace('_', ""));
            self.class(&class, &self::about(variant), &self.fields(variant));
            classes.push(class);
        }
        let kind = if classes.is_empty() { self.kind(schema) } else { format!("Union[{}]", classes.join(", ")) };
        match self.language {
            JsDoc => writeln!(self.text, "/** @typedef {{{kind}}} {name} {about} */"),
            TypeScript => writeln!(self.text, "\n/** {about} */\nexport type {name} = {kind};"),
            Python => writeln!(self.text, "\n\n#: {about}\n{name} = {kind}"),
        }
        .unwrap();
    }

    fn fields(&self, schema: &'a Value) -> Fields<'a> {
        if let Some(name) = schema["$ref"].as_str() {
            return self.fields(&self.schemas[name.rsplit('/').next().unwrap()]);
        }
        let parts = schema["allOf"].as_array().into_iter().flatten().flat_map(|part| self.fields(part));
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let own = schema["properties"].as_object().into_iter().flatten();
        parts.chain(own.map(|(name, schema)| (name.as_str(), (schema, required.contains(&name.as_str()))))).collect()
    }

    /// The type of a value, in the syntax of the language.
    fn kind(&self, schema: &Value) -> String {
        let is_python = self.language == Python;
        if let Some(name) = schema["$ref"].as_str() {
            return name.rsplit('/').next().unwrap().to_owned();
        }
        if let Some(values) = schema["enum"].as_array() {
            let values: Vec<String> = values.iter().map(|value| value.to_string().replace('"', self.quote())).collect();
            return if is_python { format!("Literal[{}]", values.join(", ")) } else { values.join(" | ") };
        }
        if let Some(kinds) = schema["oneOf"].as_array() {
            return self.union(kinds.iter().map(|kind| self.kind(kind)).collect());
        }
        match &schema["type"] {
            Value::Array(kinds) => {
                let one = |kind: &Value| {
                    let mut schema = schema.clone();
                    schema["type"] = kind.clone();
                    self.kind(&schema)
                };
                self.union(kinds.iter().map(one).collect())
            }
            Value::String(kind) => match (kind.as_str(), self.language) {
                ("string", Python) => "str".into(),
                ("integer", Python) => "int".into(),
                ("number", Python) => "float".into(),
                ("boolean", Python) => "bool".into(),
                ("null", Python) => "None".into(),
                ("integer", _) => "number".into(),
                ("array", Python) => format!("List[{}]", self.kind(&schema["items"])),
                ("array", _) => match self.kind(&schema["items"]) {
                    one if one.contains(' ') && !one.starts_with('{') => format!("({one})[]"),
                    one => format!("{one}[]"),
                },
                ("object", _) if schema.get("properties").is_some() => {
                    let fields = self.fields(schema).into_iter().map(|(name, (schema, is_required))| {
                        format!("{name}{}: {}", if is_required { "" } else { "?" }, self.kind(schema))
                    });
                    format!("{{ {} }}", fields.collect::<Vec<_>>().join("; "))
                }
                ("object", Python) => "Dict[str, Any]".into(),
                ("object", _) => format!("{{ [key: string]: {} }}", self.anything()),
                (kind, _) => kind.into(),
            },
            _ => self.anything().into(),
        }
    }

    fn union(&self, kinds: Vec<String>) -> String {
        if self.language == Python { format!("Union[{}]", kinds.join(", ")) } else { kinds.join(" | ") }
    }

    fn anything(&self) -> &'static str {
        match self.language {
            JsDoc => "any",
            TypeScript => "unknown",
            Python => "Any",
        }
    }

    fn quote(&self) -> &'static str {
        if self.language == JsDoc { "'" } else { "\"" }
    }
}

/// The description in one line; that of a union may be inside.
fn about(schema: &Value) -> String {
    let inside = || schema["oneOf"].as_array()?.iter().find_map(|kind| kind["description"].as_str());
    let text = schema["description"].as_str().or_else(inside).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("*/", "* /")
}
