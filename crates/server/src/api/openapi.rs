//! The API description, as OpenAPI and as a page.

use std::sync::Arc;

use axum::response::IntoResponse;
use axum::{Extension, http::header::CONTENT_TYPE};
use maud::{Markup, html};
use serde_json::{Map, Value, json};
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Description;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::pages::page;
use crate::App;
use crate::access::guard::KEY;
use crate::access::{Public, Role};
use crate::api_types::{ErrorDetails, ErrorResponse};

/// The role of each route. The extractors of the handlers enforce it; the security matrix compares both.
const ROLES: &[(&str, &str, Option<Role>)] = &[
    ("get", "/", None),
    ("get", "/console/{path}", None),
    ("get", "/enter", None),
    ("get", "/answer", None),
    ("post", "/answer", None),
    ("get", "/health", None),
    ("get", "/metrics", Some(Role::Viewer)),
    ("get", "/proof", None),
    ("get", "/api", None),
    ("get", "/api/openapi.json", None),
    ("get", "/api/me", Some(Role::Viewer)),
    ("post", "/api/leave", Some(Role::Viewer)),
    ("post", "/api/links", Some(Role::Admin)),
    ("get", "/api/browsers", Some(Role::Admin)),
    ("delete", "/api/browsers/{name}", Some(Role::Admin)),
    ("get", "/api/sessions", Some(Role::Viewer)),
    ("post", "/api/sessions", Some(Role::Admin)),
    ("get", "/api/sessions/{id}", Some(Role::Viewer)),
    ("get", "/api/sessions/{id}/timeline", Some(Role::Viewer)),
    ("get", "/api/sessions/{id}/hooks", Some(Role::Viewer)),
    ("post", "/api/sessions/{id}/prompt", Some(Role::Admin)),
    ("post", "/api/sessions/{id}/interrupt", Some(Role::Approver)),
    ("post", "/api/sessions/{id}/end", Some(Role::Admin)),
    ("get", "/api/search", Some(Role::Viewer)),
    ("get", "/api/activity", Some(Role::Viewer)),
    ("get", "/api/audit/records", Some(Role::Viewer)),
    ("get", "/api/stream", Some(Role::Viewer)),
    ("get", "/api/approvals", Some(Role::Viewer)),
    ("get", "/api/approvals/{id}", Some(Role::Viewer)),
    ("post", "/api/approvals/{id}/answer", Some(Role::Approver)),
    ("get", "/api/approvals/history", Some(Role::Viewer)),
    ("get", "/api/push", Some(Role::Viewer)),
    ("post", "/api/push", Some(Role::Viewer)),
    ("delete", "/api/push/{id}", Some(Role::Viewer)),
    ("get", "/api/rules", Some(Role::Viewer)),
    ("post", "/api/rules", Some(Role::Approver)),
    ("delete", "/api/rules/{id}", Some(Role::Approver)),
    ("get", "/api/hooks", Some(Role::Viewer)),
    ("post", "/api/hooks/reload", Some(Role::Admin)),
    ("post", "/api/hooks/test", Some(Role::Admin)),
    ("post", "/api/hooks/try", Some(Role::Admin)),
    ("get", "/api/audit", Some(Role::Viewer)),
    ("post", "/api/audit/verify", Some(Role::Viewer)),
    ("get", "/api/audit/proof/{seq}", Some(Role::Viewer)),
];

#[derive(OpenApi)]
#[openapi(components(schemas(ErrorResponse, ErrorDetails)))]
struct BaseDescription;

/// Returns the description without routes.
pub(super) fn base() -> Description {
    BaseDescription::openapi()
}

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(document)).routes(routes!(readable))
}

/// Completes the description with the role, the authentication and the common errors of every route.
pub(super) fn with_roles(described: &Description) -> Value {
    let mut all = json!(described);
    all["info"] = json!({
        "title": "Amplifier server",
        "description": "Approval requests, sessions and the audit log, over HTTP and WebSocket. JSON in and out; errors have the form `ErrorResponse`.",
        "version": env!("CARGO_PKG_VERSION"),
    });
    // Records are sent as stored, so no type of the stream contains them.
    if let Some(messages) = all["components"]["schemas"]["StreamMessage"]["oneOf"].as_array_mut() {
        messages.push(json!({
            "type": "object",
            "description": "New records of the audit log.",
            "required": ["records", "cursor", "type"],
            "properties": {
                "cursor": { "type": "integer", "format": "int64", "description": "The number of the next record.", "minimum": 0 },
                "records": { "type": "array", "items": { "$ref": "#/components/schemas/LogRecord" }, "description": "The records, the oldest first." },
                "type": { "type": "string", "enum": ["records"] },
            },
        }));
    }
    all["components"]["securitySchemes"] = json!({
        "token": { "type": "http", "scheme": "bearer", "description": "The owner's token, or one made with `amplifier serve token add`." },
        "cookie": {
            "type": "apiKey", "in": "cookie", "name": "amplifier_7878",
            "description": "Set by a one-time link. The name ends in the port, and begins with `__Host-` under TLS.",
        },
        "key": {
            "type": "apiKey", "in": "header", "name": KEY,
            "description": "Given to the page by the same link, and required with the cookie. For a WebSocket, the page offers the protocols \
                            `amplifier` and `key.KEY`.",
        },
    });
    for (path, operations) in all["paths"].as_object_mut().into_iter().flatten() {
        for (method, operation) in operations.as_object_mut().into_iter().flatten() {
            let known = ROLES.iter().find(|(known, at, _)| known == method && at == path);
            complete(operation, known.map(|(_, _, role)| *role));
        }
    }
    all
}

/// Adds the role, the authentication and the common errors of a route.
fn complete(operation: &mut Value, role: Option<Option<Role>>) {
    let is_open = role == Some(None);
    operation["x-role"] = json!(match role {
        Some(None) => "none",
        Some(Some(role)) => role.as_str(),
        None => "unknown",
    });
    operation["security"] = if is_open { json!([]) } else { json!([{ "token": [] }, { "cookie": [], "key": [] }]) };
    let mut failures = vec![
        ("403", "Sent by the page of another server, or the role is too low."),
        ("421", "Unknown host name (`Host`)."),
    ];
    if !is_open {
        failures.extend([("401", "Invalid token, or invalid cookie and key."), ("429", "Too many requests.")]);
    }
    let parameters = operation["parameters"].as_array();
    if parameters.is_some_and(|parameters| parameters.iter().any(|parameter| parameter["in"] == "query")) {
        failures.push(("400", "A query parameter is unknown or invalid."));
    }
    if operation.get("requestBody").is_some() {
        failures.extend([
            ("413", "The body is larger than 1 MiB."),
            ("415", "The body is not JSON by its `Content-Type`."),
            ("422", "Invalid body."),
        ]);
    }
    let known = operation["responses"].as_object_mut();
    let Some(known) = known else { return };
    for (status, description) in failures {
        known.entry(status).or_insert_with(|| {
            let form = json!({ "$ref": "#/components/schemas/ErrorResponse" });
            json!({ "description": description, "content": { "application/json": { "schema": form } } })
        });
    }
}

#[derive(Debug)]
pub(super) struct RenderedDescription {
    text: String,
    page: String,
}

impl RenderedDescription {
    pub(super) fn new(description: &Value) -> Self {
        Self { text: description.to_string(), page: rendered(description).into_string() }
    }
}

/// Returns the API description
#[utoipa::path(get, path = "/api/openapi.json", tag = "server", responses((status = 200, description = "As OpenAPI 3.1.", content_type = "application/json", body = Value)))]
async fn document(_: Public, Extension(described): Extension<Arc<RenderedDescription>>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], described.text.clone())
}

/// Returns the API description as a page
#[utoipa::path(get, path = "/api", tag = "server", responses((status = 200, description = "A page.", content_type = "text/html", body = String)))]
async fn readable(_: Public, Extension(described): Extension<Arc<RenderedDescription>>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], described.page.clone())
}

fn rendered(description: &Value) -> Markup {
    let empty = Map::new();
    let object = |value: &Value| value.as_object().unwrap_or(&empty).clone();
    let operations: Vec<(String, String, Value)> = object(&description["paths"])
        .into_iter()
        .flat_map(|(path, all)| object(&all).into_iter().map(move |(method, about)| (path.clone(), method, about)))
        .collect();
    let mut tags: Vec<&str> = operations.iter().map(|(_, _, about)| tag(about)).collect();
    tags.sort_unstable();
    tags.dedup();
    page(
        "API",
        html! {
            h1 { (text(&description["info"]["title"])) " " (text(&description["info"]["version"])) }
            p { (text(&description["info"]["description"])) }
            p { "For programs: " a href="/api/openapi.json" { "openapi.json" } ". Console: " a href="/" { "here" } "." }
            @for wanted in tags {
                h2 { (wanted) }
                @for (path, method, about) in operations.iter().filter(|(_, _, about)| tag(about) == wanted) {
                    (operation(path, method, about))
                }
            }
            h2 { "Forms" }
            @for (name, schema) in object(&description["components"]["schemas"]) { (form(&name, &schema)) }
        },
    )
}

fn tag(operation: &Value) -> &str {
    operation["tags"][0].as_str().unwrap_or("other")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn operation(path: &str, method: &str, about: &Value) -> Markup {
    let parameters = about["parameters"].as_array().cloned().unwrap_or_default();
    let responses = about["responses"].as_object().cloned().unwrap_or_default();
    let body = about["requestBody"]["content"].as_object().and_then(|kinds| kinds.values().next().cloned());
    html! {
        details {
            summary {
                span.role { (text(&about["x-role"])) }
                code { (method.to_uppercase()) " " (path) } " "
                span.about { (text(&about["summary"])) }
            }
            p { (text(&about["description"])) }
            @if !parameters.is_empty() {
                table {
                    @for parameter in &parameters {
                        tr {
                            td { code { (text(&parameter["name"])) } }
                            td { (text(&parameter["in"])) }
                            td { (kind(&parameter["schema"])) }
                            td { (text(&parameter["description"])) }
                        }
                    }
                }
            }
            @if let Some(body) = body { p { "Body: " (kind(&body["schema"])) } }
            table {
                @for (status, response) in &responses {
                    tr {
                        td { code { (status) } }
                        td { (text(&response["description"])) }
                        td {
                            @for (_, content) in response["content"].as_object().into_iter().flatten() { (kind(&content["schema"])) }
                        }
                    }
                }
            }
        }
    }
}

fn form(name: &str, schema: &Value) -> Markup {
    let needed =
        |field: &str| schema["required"].as_array().is_some_and(|needed| needed.iter().any(|name| name == field));
    html! {
        details id=(format!("form-{name}")) {
            summary { code { (name) } " " span.about { (text(&schema["description"])) } }
            table {
                @for (field, about) in schema["properties"].as_object().into_iter().flatten() {
                    tr {
                        td { code { (field) @if !needed(field) { "?" } } }
                        td { (kind(about)) }
                        td { (text(&about["description"])) }
                    }
                }
                @for word in schema["enum"].as_array().into_iter().flatten() {
                    tr { td { code { (text(word)) } } }
                }
            }
        }
    }
}

/// Renders a type, with links to its schema.
fn kind(schema: &Value) -> Markup {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return html! { a href=(format!("#form-{name}")) { (name) } };
    }
    let choices = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    if let Some(choices) = choices {
        let choices = choices.iter().enumerate();
        return html! { @for (at, choice) in choices { @if at > 0 { " or " } (kind(choice)) } };
    }
    if schema["type"] == "array" {
        return html! { "list of " (kind(&schema["items"])) };
    }
    let name = match &schema["type"] {
        Value::Array(names) => names.iter().map(text).collect::<Vec<_>>().join(" or "),
        name => text(name).to_owned(),
    };
    html! { (name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_described_is_shown_as_text() {
        let hostile = "<script>alert(1)</script>\" onload=\"x";
        let description = json!({
            "info": { "title": hostile, "version": hostile, "description": hostile },
            "paths": { hostile: { "get": {
                "tags": [hostile], "summary": hostile, "description": hostile, "x-role": hostile,
                "parameters": [{ "name": hostile, "in": hostile, "schema": { "type": hostile } }],
                "responses": { hostile: { "description": hostile } },
            } } },
            "components": { "schemas": { hostile: { "description": hostile, "enum": [hostile], "properties": { hostile: { "$ref": hostile } } } } },
        });
        let page = rendered(&description).into_string();
        assert!(page.contains("&lt;script&gt;") && !page.contains("<script") && !page.contains("\" onload"), "{page}");
    }
}
