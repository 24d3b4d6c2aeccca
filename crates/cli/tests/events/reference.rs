//! The generated parts of `docs/reference` agree with the program.
//!
//! They stand between `<!-- generated: NAME -->` and `<!-- end -->`. To write them again:
//! `UPDATE_DOCS=1 cargo test -p amplifier --test all reference`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::fine_lines;

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name)
}

/// Compares the generated parts of a page with these, or writes them.
fn check(name: &str, parts: &[(String, String)]) {
    let path = page(name);
    let written = std::fs::read_to_string(&path).unwrap();
    let mut text = written.clone();
    for (part, expected) in parts {
        let begin = format!("<!-- generated: {part} -->\n");
        let from = text.find(&begin).unwrap_or_else(|| panic!("{name} has no `{}`", begin.trim())) + begin.len();
        let to = from + text[from..].find("<!-- end -->").unwrap();
        text.replace_range(from..to, &format!("\n{}\n\n", expected.trim()));
    }
    assert_eq!(
        text.matches("<!-- generated: ").count(),
        parts.len(),
        "{name} has a generated part that nothing generates"
    );
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).unwrap();
    } else {
        assert!(
            written == text,
            "{name} is not up to date: UPDATE_DOCS=1 cargo test -p amplifier --test all reference"
        );
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The text in one line of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[test]
fn the_reference_of_events_is_up_to_date() {
    let events = fine_lines(&["events", "--json"]);
    let mut table = "| event | when | deny | modify | inject | ask |\n|---|---|---|---|---|---|\n".to_owned();
    let mut fields = String::new();
    for event in &events {
        let (name, answers) = (text(&event["name"]), &event["answers"]);
        let meaning = |answer: &str| cell(text(&answers[answer]));
        let ask = if answers["ask_user"] == true { "yes" } else { "no" };
        table.push_str(&format!(
            "| [`{name}`](#{}) | {} | {} | {} | {} | {ask} |\n",
            name.replace(':', ""),
            cell(text(&event["when"])),
            meaning("deny"),
            meaning("modify"),
            meaning("inject_context"),
        ));
        fields.push_str(&format!("### {name}\n\n{}", text(&event["when"])));
        let aliases: Vec<&str> = event["aliases"].as_array().unwrap().iter().map(text).collect();
        if !aliases.is_empty() {
            fields.push_str(&format!(" Alias: `{}`.", aliases.join("`, `")));
        }
        fields.push_str("\n\n");
        let schema = &event["schema"];
        let required =
            |field: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == field));
        let properties = schema["properties"].as_object().unwrap().iter();
        let own: Vec<_> =
            properties.filter(|(field, _)| !["session_id", "timestamp"].contains(&field.as_str())).collect();
        if own.is_empty() {
            fields.push_str("No fields of its own.\n\n");
            continue;
        }
        fields.push_str("| field | type | meaning |\n|---|---|---|\n");
        for (field, property) in own {
            let kind = match (property["type"].as_str(), property["items"]["type"].as_str()) {
                (Some("array"), Some(of)) => format!("array of {of}"),
                (Some(name), _) => name.to_owned(),
                (None, _) => "any".to_owned(),
            };
            let optional = if required(field) { "" } else { "Optional. " };
            fields.push_str(&format!("| `{field}` | {kind} | {optional}{} |\n", cell(text(&property["description"]))));
        }
        fields.push('\n');
    }
    check("events.md", &[("effects".to_owned(), table), ("fields".to_owned(), fields)]);
}

#[test]
fn the_reference_of_tools_is_up_to_date() {
    let tools = fine_lines(&["tools", "--json"]);
    let mut sections = String::new();
    for tool in &tools {
        sections.push_str(&format!("### {}\n\n{}\n\n", text(&tool["name"]), text(&tool["description"])));
        sections.push_str("| field | type | meaning |\n|---|---|---|\n");
        for (place, part) in [("tool_input", "input"), ("tool_result", "result")] {
            for field in tool[part].as_array().unwrap() {
                let optional = if field["required"] == true { "" } else { "Optional. " };
                let (name, kind) = (text(&field["name"]), cell(text(&field["type"])));
                let meaning = cell(text(&field["meaning"]));
                sections.push_str(&format!("| `{place}.{name}` | {kind} | {optional}{meaning} |\n"));
            }
        }
        sections.push('\n');
    }
    check("tools.md", &[("tools".to_owned(), sections)]);
}

#[test]
fn the_reference_of_modules_is_up_to_date() {
    let modules = fine_lines(&["hooks", "modules", "--json"]);
    let mut list = "| module | purpose |\n|---|---|\n".to_owned();
    let mut parts = Vec::new();
    for module in &modules {
        let name = text(&module["name"]);
        list.push_str(&format!("| [`{name}`](#{name}) | {} |\n", cell(text(&module["summary"]))));
        let mut table = "| option | type | default | meaning |\n|---|---|---|---|\n".to_owned();
        for option in module["options"].as_array().unwrap() {
            let default = match &option["default"] {
                _ if option["required"] == true => "required".to_owned(),
                Value::Null => String::new(),
                Value::String(word) => format!("`{}`", cell(word)),
                default => format!("`{}`", cell(&default.to_string())),
            };
            table.push_str(&format!(
                "| `{}` | {} | {default} | {} |\n",
                text(&option["name"]),
                cell(text(&option["type"])),
                cell(text(&option["meaning"])),
            ));
        }
        parts.push((name.to_owned(), table));
    }
    let mut names = "| names | values | kind |\n|---|---|---|\n".to_owned();
    for (kind, values, all) in amplifier_audit::secret_names() {
        let all: Vec<String> = all.iter().map(|name| format!("`{name}`")).collect();
        let kind = if kind.is_empty() { String::new() } else { format!("`{kind}`") };
        names.push_str(&format!("| {} | {values} | {kind} |\n", all.join(", ")));
    }
    parts.push(("names of secrets".to_owned(), names));
    parts.push(("modules".to_owned(), list));
    check("modules.md", &parts);
}

// With all commands.
#[cfg(feature = "fleet")]
#[test]
fn the_reference_of_commands_is_up_to_date() {
    check("command-line.md", &[("commands".to_owned(), super::fine(&["man", "--markdown"]))]);
}

/// The anchor that a heading gets on the usual hosts of repositories.
fn anchor(heading: &str) -> String {
    let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    heading.to_lowercase().chars().filter(is_kept).collect::<String>().trim().replace(' ', "-")
}

/// The links of a page to other files and headings, outside of code.
fn links(text: &str) -> Vec<String> {
    let prose: String = text.split("```").step_by(2).collect();
    let ends = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let links = ends.map(|(link, _)| link.to_owned());
    links.filter(|link| !link.contains("://") && !link.is_empty() && !link.contains(' ')).collect()
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

#[test]
fn every_link_of_the_documentation_leads_to_a_file_and_a_heading() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
        .map(|name| root.join(name))
        .to_vec();
    pages(&root.join("docs"), &mut all);
    let mut broken = Vec::new();
    for page in &all {
        let text = std::fs::read_to_string(page).unwrap();
        for link in links(&text) {
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let has_heading = || {
                let text = std::fs::read_to_string(&target).unwrap_or_default();
                text.lines().any(|line| line.starts_with('#') && anchor(line.trim_start_matches('#').trim()) == heading)
            };
            if !target.exists() || !heading.is_empty() && !has_heading() {
                broken.push(format!("{}: {link}", page.strip_prefix(&root).unwrap().display()));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}

#[test]
fn every_page_of_the_documentation_is_in_its_index() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let (mut all, index) = (Vec::new(), std::fs::read_to_string(folder.join("README.md")).unwrap());
    pages(&folder, &mut all);
    let names = all.iter().map(|page| page.strip_prefix(&folder).unwrap().display().to_string());
    let missing: Vec<String> =
        names.filter(|name| name != "README.md" && !index.contains(&format!("]({name})"))).collect();
    assert_eq!(missing, [""; 0]);
}

/// The tables of `ARCHITECTURE.md` name files from the folder of their crate's source, also by the last part of a path.
#[test]
fn every_file_on_the_map_of_the_code_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let (mut crate_folder, mut missing, mut found) = (None, Vec::new(), 0);
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            let name = heading.split(':').next().unwrap();
            let folder = root.join("crates").join(name);
            crate_folder = Some(if name == "python" { folder } else { folder.join("src") });
        } else if line.starts_with("## ") {
            crate_folder = None;
        }
        let Some(crate_folder) = crate_folder.as_ref().filter(|_| line.starts_with("| `")) else { continue };
        let mut folder = "";
        for file in line.split('|').nth(1).unwrap().split('`').skip(1).step_by(2) {
            found += 1;
            if !crate_folder.join(file).exists() && !crate_folder.join(folder).join(file).exists() {
                missing.push(format!("{}: {file}", crate_folder.display()));
            }
            folder = file.rsplit_once('/').map_or(folder, |(folder, _)| folder);
        }
    }
    assert_eq!(missing, [""; 0]);
    assert!(found > 100, "{found}");
}

#[test]
fn the_bundles_of_the_guides_pass_their_own_tests() {
    let folder = tempfile::tempdir().unwrap();
    let mut tested = 0;
    // `./test` installs ruff for the linter of the policy.
    let installed = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/python/bin"));
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([installed].into_iter().chain(std::env::split_paths(&folders))).unwrap();
    for name in ["../start/policy-for-a-team.md", "../start/guard-claude-code.md", "rules.md"] {
        let text = std::fs::read_to_string(page(name)).unwrap();
        let bundles = text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        for bundle in bundles.filter(|bundle| bundle.contains("\ntests:")) {
            let file = folder.path().join("bundle.yaml");
            std::fs::write(&file, bundle).unwrap();
            let mut command = Command::new(env!("CARGO_BIN_EXE_amplifier"));
            command.args(["hooks", "test"]).arg(&file).env("AMPLIFIER_HOME", folder.path()).env("PATH", &path);
            let output = command.output().unwrap();
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stdout));
            tested += 1;
        }
    }
    assert_eq!(tested, 4);
}
