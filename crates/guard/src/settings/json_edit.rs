//! Changes of a JSON file that keep every other byte: the order, spaces, numbers and line breaks of users are theirs.

use serde_json::Value;

use super::SettingsError;
use super::json_document::{Document, HOOKS, Item, Syntax};

/// Appends an entry to the list of an event.
pub(super) fn append(syntax: Syntax, text: &str, event: &str, entry: &Value) -> Result<String, SettingsError> {
    let document = Document::parse(syntax, text)?;
    let Some(hooks) = document.member(document.root, HOOKS)? else {
        let value = Value::Object([(event.to_owned(), Value::Array(vec![entry.clone()]))].into_iter().collect());
        return Ok(document.insert_member(document.root, HOOKS, &value, 1));
    };
    document.expect(hooks, b'{', "hooks", "an object")?;
    let Some(list) = document.member(hooks, event)? else {
        return Ok(document.insert_member(hooks, event, &Value::Array(vec![entry.clone()]), 2));
    };
    document.expect(list, b'[', event, "a list")?;
    Ok(document.insert(list, &document.render(entry, 3), 3))
}

/// Sets a field of the root, unless it exists.
pub(super) fn set_if_missing(syntax: Syntax, text: &str, key: &str, value: &Value) -> Result<String, SettingsError> {
    let document = Document::parse(syntax, text)?;
    match document.member(document.root, key)? {
        Some(_) => Ok(text.to_owned()),
        None => Ok(document.insert_member(document.root, key, value, 1)),
    }
}

/// Sets a field of an object in the root to `true`, unless it is.
pub(super) fn switch_on(syntax: Syntax, text: &str, object: &str, key: &'static str) -> Result<String, SettingsError> {
    let document = Document::parse(syntax, text)?;
    let Some(span) = document.member(document.root, object)? else {
        return set_if_missing(
            syntax,
            text,
            object,
            &Value::Object([(key.to_owned(), true.into())].into_iter().collect()),
        );
    };
    document.expect(span, b'{', object, "an object")?;
    match document.member(span, key)? {
        None => Ok(document.insert_member(span, key, &Value::from(true), 2)),
        Some(value) => match &document.plain[value.start..value.end] {
            "true" => Ok(text.to_owned()),
            _ => Err(SettingsError::Form(format!("{object}.{key}"), "true")),
        },
    }
}

/// Removes the handlers of all events for which `is_removed` returns `true`, then groups, lists and objects that became empty by this.
pub(super) fn remove(syntax: Syntax, text: &str, is_removed: impl Fn(&Value) -> bool) -> Result<String, SettingsError> {
    let mut text = text.to_owned();
    while let Some(next) = remove_one(syntax, &text, &is_removed)? {
        text = next;
    }
    Ok(text)
}

fn remove_one(
    syntax: Syntax,
    text: &str,
    is_removed: &impl Fn(&Value) -> bool,
) -> Result<Option<String>, SettingsError> {
    let document = Document::parse(syntax, text)?;
    let Some(hooks) = document.member(document.root, HOOKS)? else { return Ok(None) };
    if document.bytes()[hooks.start] != b'{' {
        return Ok(None);
    }
    let events = document.items(hooks);
    for event in &events {
        if document.bytes()[event.value.start] != b'[' {
            continue;
        }
        let entries = document.items(event.value);
        let is_ours = |item: &Item| {
            let text = &document.plain[item.value.start..item.value.end];
            serde_json::from_str(text).is_ok_and(|handler| is_removed(&handler))
        };
        let mut found = None;
        for entry in &entries {
            let handlers = document.handlers(entry.value)?;
            match handlers.as_ref().map(|(_, handlers)| (handlers.iter().find(|item| is_ours(item)), handlers.len())) {
                None if is_ours(entry) => {}
                Some((Some(_), 1)) => {}
                // Others in the group stay.
                Some((Some(handler), _)) => {
                    return Ok(handlers.as_ref().map(|(list, items)| document.cut(*list, items, handler.value)));
                }
                _ => continue,
            }
            found = Some(entry);
            break;
        }
        let Some(found) = found else { continue };
        return Ok(Some(match (entries.len(), events.len()) {
            // Comments of the user keep their place.
            (1, _) if document.has_comments(event.value) => document.cut(event.value, &entries, found.value),
            (1, 1) if !document.has_comments(hooks) => {
                document.cut(document.root, &document.items(document.root), hooks)
            }
            (1, _) => document.cut(hooks, &events, event.value),
            _ => document.cut(event.value, &entries, found.value),
        }));
    }
    Ok(None)
}
