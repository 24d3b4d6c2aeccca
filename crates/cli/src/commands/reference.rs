//! The reference of all commands as Markdown, for `docs/reference/command-line.md`.

use std::fmt::Write;

use clap::{Arg, Command};

/// Returns a section for each command, in the order of `--help`. The sections of subcommands follow their command.
pub(super) fn markdown(command: &Command) -> String {
    let mut text = String::new();
    section(command, &mut text);
    text
}

fn section(command: &Command, text: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string).unwrap_or_default();
    _ = writeln!(text, "## {name}\n\n{}\n", sentence(about.trim()));
    let usage = command.clone().render_usage().to_string();
    _ = writeln!(text, "```text\n{}\n```\n", usage.trim_start_matches("Usage:").trim());
    let subcommands: Vec<&Command> =
        command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help").collect();
    if !subcommands.is_empty() {
        text.push_str("| command | purpose |\n|---|---|\n");
        for one in &subcommands {
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            let full = one.get_bin_name().unwrap_or_else(|| one.get_name());
            _ = writeln!(text, "| [`{full}`](#{}) | {} |", full.replace(' ', "-"), cell(&about));
        }
        text.push('\n');
    }
    let arguments: Vec<&Arg> = command.get_arguments().filter(|one| !one.is_hide_set() && !is_standard(one)).collect();
    if !arguments.is_empty() {
        text.push_str("| argument | meaning | variable | default |\n|---|---|---|---|\n");
        for one in arguments {
            _ = writeln!(text, "{}", row(one));
        }
        text.push('\n');
    }
    if let Some(more) = command.get_after_help() {
        _ = writeln!(text, "{}\n", more.to_string().trim());
    }
    for one in subcommands {
        section(one, text);
    }
}

/// `true` for `--help` and `--version`, which all commands have.
fn is_standard(argument: &Arg) -> bool {
    matches!(argument.get_id().as_str(), "help" | "version")
}

fn row(argument: &Arg) -> String {
    let value = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string).unwrap_or_default();
    let takes_value = argument.get_action().takes_values();
    let name = match (argument.get_long(), argument.get_short()) {
        (None, None) if argument.is_required_set() => format!("`{value}`"),
        (None, None) => format!("`[{value}]`"),
        (long, short) => {
            let short = short.map(|short| format!("-{short}"));
            let both: Vec<String> = short.into_iter().chain(long.map(|long| format!("--{long}"))).collect();
            if takes_value { format!("`{} {value}`", both.join(", ")) } else { format!("`{}`", both.join(", ")) }
        }
    };
    let mut meaning =
        argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string).unwrap_or_default();
    if takes_value && !argument.is_hide_possible_values_set() {
        let values = argument.get_possible_values();
        let values: Vec<String> = values
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(|value| match value.get_help() {
                Some(help) => format!("`{}`: {help}", value.get_name()),
                None => format!("`{}`", value.get_name()),
            })
            .collect();
        if !values.is_empty() {
            meaning = format!("{meaning} ({})", values.join("; "));
        }
    }
    let variable = argument.get_env().map(|name| format!("`{}`", name.to_string_lossy())).unwrap_or_default();
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|one| format!("`{}`", one.to_string_lossy())).collect();
    let default = if takes_value { defaults.join(", ") } else { String::new() };
    format!("| {} | {} | {variable} | {default} |", cell(&name), cell(meaning.trim()))
}

/// The text in one line of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// The text with a full stop at its end.
fn sentence(text: &str) -> String {
    if text.is_empty() || text.ends_with(['.', '`', ':']) { text.to_owned() } else { format!("{text}.") }
}
