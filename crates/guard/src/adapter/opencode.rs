//! opencode. A plugin in the client calls the hook program with the arguments of its own hooks, and throws unless the answer says `proceed`.

use amplifier_core::Map;
use serde_json::{Value, json};

use super::PayloadError;
use super::claude::deny_change;
use super::form::{Meaning, PayloadForm, result_text};
use crate::answer::{Change, GuardAnswer, HookOutput, Loss, Reply};
use crate::client::Client;
use crate::event::{ClientEvent, Dialect, EventKind};

pub(super) const FORM: PayloadForm = PayloadForm {
    client: Client::Opencode,
    dialect: Dialect::Own,
    session: "sessionID",
    agent: "agent",
    parent: "parentID",
    tool: "tool",
    input: "args",
    result: "result",
    call: "callID",
    events: &[
        ("chat.message", Meaning::Prompt),
        ("tool.execute.before", Meaning::ToolPre),
        ("tool.execute.after", Meaning::ToolPost),
        ("session.created", Meaning::SessionStart),
        ("session.idle", Meaning::Complete),
        ("shell.env", Meaning::Other),
        ("tool.definition", Meaning::Other),
    ],
};

pub(super) fn parse(told: Option<&str>, payload: &Map) -> Result<ClientEvent, PayloadError> {
    let (Some(Value::Object(input)), Some(output)) = (payload.get("input"), payload.get("output")) else {
        return Err(FORM.missing("input"));
    };
    let mut fields = input.clone();
    // The plugin adds the name of its hook and the folder of the project.
    for key in ["hook_event_name", "cwd"] {
        fields.extend(payload.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    let name = fields.get("hook_event_name").and_then(Value::as_str).or(told).unwrap_or_default();
    match name {
        "tool.execute.after" => _ = fields.insert("result".to_owned(), output.clone()),
        "chat.message" => _ = fields.insert("prompt".to_owned(), prompt_text(output).into()),
        // The arguments of the call are in the output, where plugins change them.
        _ => fields.extend(output.get("args").map(|args| ("args".to_owned(), args.clone()))),
    }
    let mut event = FORM.parse(told, &fields)?;
    // A model is an object here.
    event.model = input.get("model").or_else(|| output.pointer("/message/model")).and_then(|model| {
        ["modelID", "id"].iter().find_map(|key| model.get(*key)).and_then(Value::as_str).map(str::to_owned)
    });
    event.agent = None;
    Ok(event)
}

fn prompt_text(output: &Value) -> String {
    let parts = output.get("parts").and_then(Value::as_array);
    let texts = parts.into_iter().flatten().filter_map(|part| part.get("text").and_then(Value::as_str));
    texts.collect::<Vec<_>>().join("\n")
}

pub(super) fn answer(event: &ClientEvent, answer: &GuardAnswer) -> Reply {
    let is_decided = event.is_gate() || matches!(event.kind, EventKind::ToolPost { .. });
    if let Some(reason) = answer.reason().filter(|_| is_decided) {
        let fields = json!({ "decision": "deny", "reason": reason });
        return Reply::new(HookOutput::denial(&fields, &reason));
    }
    let mut fields = Map::from_iter([("decision".to_owned(), json!("proceed"))]);
    match (&event.kind, &answer.change) {
        (EventKind::ToolPre(_), Some(Change::Input(input))) => _ = fields.insert("args".to_owned(), input.clone()),
        (EventKind::ToolPost { .. }, Some(Change::Result(result))) => {
            fields.insert("output".to_owned(), result_text(result).into());
        }
        (_, None) => {}
        (_, Some(_)) => {
            return deny_change("a hook changed the event, which this client cannot apply", |denied| {
                self::answer(event, denied)
            });
        }
    }
    let is_post = matches!(event.kind, EventKind::ToolPost { .. });
    // The client takes context only with a result.
    let is_deferred = event.is_gate() || matches!(event.kind, EventKind::SessionStart { .. });
    if let Some(context) = answer.joined_context().filter(|_| is_post) {
        fields.insert("context".to_owned(), context.into());
    }
    let deferred = if is_deferred { answer.context.clone() } else { Vec::new() };
    let reply = Reply { deferred, ..Reply::new(HookOutput::success(fields)) };
    reply
        .lose(Loss::LATER, answer.denial.is_some() && matches!(event.kind, EventKind::SessionStart { .. }))
        .lose(Loss::MESSAGE, answer.joined_messages().is_some())
}
