//! All mistakes in the `config` of a built-in module.

use amplifier_core::Map;
use serde_json::Value;

use super::position::entry_lines;
use super::{BundleError, Diagnostic, HookDefinition, HookKind, MistakeCode, weakened_guard};
use crate::builtin::Module;
use crate::condition::{matches_no_tool, tool_name_mistake};
use crate::environment::HookEnvironment;
use crate::tool_schema::ToolSchema;

/// Maximum number of mistakes that are reported.
const MISTAKES: usize = 32;

/// A part of a `config`: keys and indices from the outside.
type ConfigPath = Vec<PathStep>;

#[derive(Clone, Debug, PartialEq)]
enum PathStep {
    Key(String),
    Index(usize),
}

/// Returns the mistakes of a module's `config`, and settings without an effect.
pub(super) fn check(definition: &HookDefinition, host: &HookEnvironment, tools: &[ToolSchema]) -> Vec<Diagnostic> {
    let Ok(HookKind::Module(module)) = definition.entry.kind() else { return Vec::new() };
    let none = Map::new();
    let config = definition.entry.config.as_ref().unwrap_or(&none);
    let mut found: Vec<Diagnostic> = errors(definition, config, host).into_iter().map(Diagnostic::error).collect();
    found.extend(tool_names(definition, config, tools));
    found.extend(idle_settings(definition, module, config, host));
    found.extend(weakened_guard::check(definition, module, config, host));
    found
}

/// Finds each mistake, removes the part that it is about, and looks for the next one.
fn errors(definition: &HookDefinition, config: &Map, host: &HookEnvironment) -> Vec<BundleError> {
    let mut rest = Value::Object(config.clone());
    let mut removed: Vec<ConfigPath> = Vec::new();
    let mut found = Vec::new();
    while let Some(error) = with_config(definition, &rest).compile_error(host) {
        let message = original_indices(&error.message, &removed);
        found.push(located(definition, BundleError { message: message.clone(), ..error.clone() }));
        let mut paths = parts(&rest);
        // Stable: first the keys that the message names.
        paths.sort_by_key(
            |path| !matches!(path.last(), Some(PathStep::Key(key)) if error.message.contains(&format!("`{key}`"))),
        );
        let others = || paths.iter().filter_map(|path| Some((without(&rest, path)?, path.clone())));
        let is_progress = |(changed, path): &(Value, ConfigPath)| {
            if !may_be_about(&error.message, path) {
                return false;
            }
            let next = with_config(definition, changed).compile_error(host);
            let is_whole = matches!(path.last(), Some(PathStep::Index(_))) || path.len() == 1;
            // Without this key, another one would lack it.
            let is_needed = |next: &str| match path.last() {
                Some(PathStep::Key(key)) => {
                    ["needs a", "add"].iter().any(|word| next.contains(&format!("{word} `{key}`")))
                }
                _ => false,
            };
            next.is_none_or(|next| {
                let is_other = next.message != error.message && !is_needed(&next.message);
                is_other && (is_whole || !next.message.contains("missing"))
            })
        };
        let Some((changed, path)) = others().find(is_progress).filter(|_| found.len() < MISTAKES) else { break };
        rest = changed;
        removed.push(path);
    }
    found
}

/// Returns `false` if a message is about another item of the list.
fn may_be_about(message: &str, path: &[PathStep]) -> bool {
    path.windows(2).all(|steps| match steps {
        [PathStep::Key(list), PathStep::Index(at)] => {
            !message.contains(&format!("`{list}[")) || message.contains(&format!("`{list}[{at}]"))
        }
        _ => true,
    })
}

fn with_config(definition: &HookDefinition, config: &Value) -> HookDefinition {
    let mut definition = definition.clone();
    definition.entry.config = config.as_object().cloned();
    definition
}

/// Returns the paths of all parts of a value, the innermost first.
fn parts(value: &Value) -> Vec<ConfigPath> {
    fn collect(value: &Value, path: &mut ConfigPath, found: &mut Vec<ConfigPath>) {
        let mut visit = |step: PathStep, inner: &Value| {
            path.push(step);
            collect(inner, path, found);
            found.push(path.clone());
            path.pop();
        };
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, inner)| visit(PathStep::Key(key.clone()), inner)),
            Value::Array(items) => items.iter().enumerate().for_each(|(at, inner)| visit(PathStep::Index(at), inner)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(value, &mut Vec::new(), &mut found);
    found.truncate(512);
    found.sort_by_key(|path| std::cmp::Reverse(path.len()));
    found
}

/// Returns a value without one of its parts.
fn without(value: &Value, path: &[PathStep]) -> Option<Value> {
    let mut changed = value.clone();
    let (last, outer) = path.split_last()?;
    let mut place = &mut changed;
    for step in outer {
        place = match step {
            PathStep::Key(key) => place.get_mut(key)?,
            PathStep::Index(at) => place.get_mut(at)?,
        };
    }
    match (place, last) {
        (Value::Object(fields), PathStep::Key(key)) => drop(fields.remove(key)?),
        // An empty list would be another mistake; the whole list is removed instead.
        (Value::Array(items), PathStep::Index(at)) if *at < items.len() && items.len() > 1 => drop(items.remove(*at)),
        _ => return None,
    }
    Some(changed)
}

/// Writes the index of a list item as it is in the file, although earlier items were removed.
fn original_indices(message: &str, removed: &[ConfigPath]) -> String {
    let mut message = message.to_owned();
    for path in removed.iter().rev() {
        let [PathStep::Key(list), PathStep::Index(gone)] = path.as_slice() else { continue };
        let begin = format!("`{list}[");
        let Some((before, rest)) = message.split_once(&begin) else { continue };
        let Some((index, after)) = rest.split_once(']') else { continue };
        if let Some(index) = index.parse::<usize>().ok().filter(|index| index >= gone) {
            message = format!("{before}{begin}{}]{after}", index + 1);
        }
    }
    message
}

/// Moves an error to the part of the entry that its message names: a list item, a value or a key.
fn located(definition: &HookDefinition, error: BundleError) -> BundleError {
    let named: Vec<&str> = error.message.split('`').skip(1).step_by(2).collect();
    let named = named.strip_prefix(["config"].as_slice()).and_then(|rest| rest.get(1..)).unwrap_or(&named);
    let lines: Vec<(usize, &str)> = entry_lines(definition.location, &definition.source).skip(1).collect();
    let place = find_place(named, &lines);
    match place {
        Some((number, at, line)) => {
            let column = line.get(..at).unwrap_or_default().chars().count() + 1;
            error.moved(number, column, line)
        }
        None => error,
    }
}

/// Finds the line and the offset of the innermost part that a message names.
fn find_place<'a>(named: &[&str], lines: &[(usize, &'a str)]) -> Option<(usize, usize, &'a str)> {
    let (first, rest) = named.split_first()?;
    let inner =
        first.rsplit(']').next().filter(|inner| inner.len() < first.len()).map(|inner| inner.trim_start_matches('.'));
    let item =
        first.split_once('[').and_then(|(list, index)| Some((list, index.split(']').next()?.parse::<usize>().ok()?)));
    let keys = first.split('.').next_back().filter(|_| item.is_none()).into_iter().chain(inner);
    let names = || rest.iter().copied().chain(keys.clone()).filter(|name| !name.is_empty());
    let find = |lines: &[(usize, &'a str)]| {
        names().find_map(|name| lines.iter().find_map(|(number, line)| Some((*number, word_at(line, name)?, *line))))
    };
    let Some((list, index)) = item else { return find(lines) };
    let begin = lines.iter().position(|(_, line)| word_at(line, list).is_some())?;
    let indent = |line: &str| line.len() - line.trim_start().len();
    let items =
        || lines.iter().enumerate().skip(begin + 1).filter(|(_, (_, line))| line.trim_start().starts_with("- "));
    let outer = items().next().map(|(_, (_, line))| indent(line));
    let own: Vec<usize> = items().filter(|(_, (_, line))| Some(indent(line)) == outer).map(|(at, _)| at).collect();
    let Some(&from) = own.get(index) else {
        // A list in one line.
        return find(lines.get(begin..=begin)?)
            .or_else(|| lines.get(begin).map(|(number, line)| (*number, indent(line), *line)));
    };
    let to = own.get(index + 1).copied().unwrap_or(lines.len());
    find(lines.get(from..to)?).or_else(|| lines.get(from).map(|(number, line)| (*number, indent(line), *line)))
}

/// Returns the offset of a text that is no part of a longer word.
fn word_at(line: &str, name: &str) -> Option<usize> {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    line.match_indices(name).map(|(at, _)| at).find(|at| {
        !is_word(line.get(..*at).and_then(|before| before.chars().next_back()))
            && !is_word(line.get(at + name.len()..).and_then(|after| after.chars().next()))
    })
}

/// Checks the names of tools under `tools` and `tool`.
fn tool_names(definition: &HookDefinition, config: &Map, tools: &[ToolSchema]) -> Vec<Diagnostic> {
    let known: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let (mut found, root) = (Vec::new(), Value::Object(config.clone()));
    for path in parts(&root) {
        let keys: Vec<&str> = path
            .iter()
            .filter_map(|step| match step {
                PathStep::Key(key) => Some(key.as_str()),
                PathStep::Index(_) => None,
            })
            .collect();
        let Some(name) = lookup(&root, &path).and_then(Value::as_str) else { continue };
        if !matches!(keys.last(), Some(&"tools" | &"tool")) {
            continue;
        }
        let mistake = if name.contains(['*', '?', '[', '{']) {
            matches_no_tool(name, &known)
        } else {
            tool_name_mistake(name, &known)
        };
        if let Some((severity, message, help)) = mistake {
            let error = definition.problem_in("config", format!("`{}`: {message}", shown(&path)));
            let error = located(definition, error).coded(MistakeCode::UnknownTool).helped(Some(help));
            found.push(Diagnostic { severity, error });
        }
    }
    found
}

fn lookup<'a>(value: &'a Value, path: &[PathStep]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| match step {
        PathStep::Key(key) => value.get(key),
        PathStep::Index(at) => value.get(at),
    })
}

fn shown(path: &[PathStep]) -> String {
    let mut shown = String::new();
    for step in path {
        match step {
            PathStep::Key(key) if shown.is_empty() => shown.push_str(key),
            PathStep::Key(key) => shown.push_str(&format!(".{key}")),
            PathStep::Index(at) => shown.push_str(&format!("[{at}]")),
        }
    }
    shown
}

fn idle_settings(
    definition: &HookDefinition,
    module: &Module,
    config: &Map,
    host: &HookEnvironment,
) -> impl Iterator<Item = Diagnostic> {
    module.idle_settings(config, &host.scope).into_iter().map(|(message, help)| {
        let error = definition.problem_in("config", message);
        Diagnostic::warning(located(definition, error).coded(MistakeCode::NoEffect).helped(Some(help)))
    })
}
