//! `hooks-linter`: runs linters on files that the agent has written, and shows the agent the findings.

mod defaults;
mod launcher;
mod run;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use amplifier_core::text::{counted, first_chars};
use amplifier_core::{EventData, Hook, HookError, HookResult, Map};
use futures::future::join_all;
use globset::GlobSet;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use self::launcher::LinterLauncher;
use self::run::{LintResult, Linter};
use super::shared::settings::{require_exact_names, require_possible, require_some, seconds, strings};
use super::{IdleSetting, ModuleContext, ModuleHook, options};
use crate::bundle::{Confinement, OneOrMany};
use crate::condition::{Scope, globs};

/// Maximum of `longest`, in characters; injections have a limit of their own.
const LONGEST: usize = 10_000;

/// Time for the hook in addition to its slowest linter.
const MARGIN: Duration = Duration::from_secs(5);

/// Options of `hooks-linter`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// The linters. Default: the well-known linters that are on the `PATH`.
    linters: Option<Vec<LinterOptions>>,
    /// The tools that write a file, given as `file_path`.
    tools: Vec<String>,
    /// Longest text of findings for the agent after one write, in characters; at most 10,000.
    longest: usize,
    /// Sandbox of the linters, or `false` for none. Default: no network, and write access only to a temporary folder, if the
    /// system supports it.
    confine: Option<Confinement>,
}

impl Default for Options {
    fn default() -> Self {
        Self { linters: None, tools: strings(&["Write", "Edit", "MultiEdit"]), longest: 4_000, confine: None }
    }
}

/// Options of one linter.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LinterOptions {
    /// Name in messages. Default: the program.
    name: Option<String>,
    /// The files to check, as globs relative to the workspace, or absolute. A glob without a `/` matches files in every folder.
    files: OneOrMany,
    /// The program and its arguments, run in the workspace. `{file}` stands for the file.
    command: Vec<String>,
    /// Time limit for one run, in seconds.
    #[serde(default = "usual_timeout")]
    timeout: f64,
    /// The exit codes that mean findings. Any other exit code except 0 means that the linter failed.
    #[serde(default = "usual_exit_codes")]
    exit_codes: Vec<i32>,
    /// Sandbox of this linter, or `false` for none. Default: the `confine` option of the module.
    #[serde(default)]
    confine: Option<Confinement>,
}

fn usual_timeout() -> f64 {
    20.0
}

fn usual_exit_codes() -> Vec<i32> {
    vec![1]
}

pub(super) fn make(config: &Map, context: &ModuleContext<'_>) -> Result<Vec<ModuleHook>, String> {
    require_words(config)?;
    let Options { linters, tools, longest, confine } = options(config)?;
    require_exact_names("tools", &tools)?;
    if !(1..=LONGEST).contains(&longest) {
        return Err(format!("`longest` is {longest}: give a number of characters from 1 to {LONGEST}"));
    }
    let usual = LinterLauncher::new(confine, context)?;
    let linters = match linters {
        Some(given) => {
            require_some("linters", &given)?;
            let linter = |one: LinterOptions| {
                let launcher = match one.confine {
                    None => usual.clone(),
                    given => LinterLauncher::new(given, context)?,
                };
                Linter::new(one, launcher, context)
            };
            let linters = given.into_iter().enumerate();
            linters
                .map(|(at, one)| linter(one).map_err(|problem| format!("`linters[{at}]`: {problem}")))
                .collect::<Result<Vec<_>, _>>()?
        }
        None => defaults::on_path(std::env::var_os("PATH").as_deref(), &usual)?,
    };
    let timeout = linters.iter().map(|linter| linter.timeout).max().unwrap_or_default().saturating_add(MARGIN);
    let has_warned = false.into();
    let hook = LinterHook { linters, tools, longest, has_warned, scope: context.host.scope.clone() };
    Ok(vec![ModuleHook::gate(&["tool:post"], hook).timeout(timeout)])
}

/// Endings that are easily written as a whole pattern, as in `.py`.
const ENDINGS: &[&str] = &[
    ".py", ".pyi", ".js", ".jsx", ".ts", ".tsx", ".go", ".rs", ".rb", ".sh", ".tf", ".yaml", ".yml", ".json", ".toml",
    ".md", ".css", ".html", ".c", ".cpp", ".h", ".java", ".kt", ".php", ".sql",
];

/// Checks that the words of commands are texts: `{file}` without quotes is a map in YAML.
fn require_words(config: &Map) -> Result<(), String> {
    let linters = config.get("linters").and_then(Value::as_array).into_iter().flatten().enumerate();
    for (at, linter) in linters {
        let Some(words) = linter.get("command").and_then(Value::as_array) else { continue };
        if words.iter().any(|word| word.is_object() || word.is_array()) {
            return Err(format!("`linters[{at}]`: `command` has `{{file}}` without quotes; write `\"{{file}}\"`"));
        }
    }
    Ok(())
}

/// Writes a command that ends with the file, as YAML.
fn command_with_file<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./=+".contains(&byte);
    // Other spellings of the file, such as `{{ file }}`, are replaced.
    let other = words.filter(|word| word.trim_matches(['{', '}', ' ', '$', '<', '>']) != "file");
    let quoted = other.map(|word| match word.trim_start_matches('-').bytes().all(is_plain) && !word.is_empty() {
        true => word.to_owned(),
        false => Value::from(word).to_string(),
    });
    let words: Vec<String> = quoted.chain(["\"{file}\"".to_owned()]).collect();
    format!("command: [{}]", words.join(", "))
}

/// Returns the linters that do not receive the name of the file, whose program is missing, or whose pattern is an ending or outside the
/// workspace.
pub(super) fn idle_settings(config: &Map, scope: &Scope) -> Vec<IdleSetting> {
    let linters = options::<Options>(config).ok().and_then(|options| options.linters).unwrap_or_default();
    let path = std::env::var_os("PATH");
    let is_missing = |program: &&String| {
        !program.is_empty() && !program.contains('/') && !defaults::is_on_path(program, path.as_deref())
    };
    let programs: Vec<IdleSetting> = linters
        .iter()
        .enumerate()
        .filter_map(|(at, linter)| Some((at, linter.command.first().filter(is_missing)?)))
        .map(|(at, program)| {
            let message = format!("`linters[{at}]`: the program `{program}` is not in `PATH`, so nothing is checked");
            (message, "install it, or correct its name".to_owned())
        })
        .collect();
    let endings: Vec<IdleSetting> = linters
        .iter()
        .enumerate()
        .flat_map(|(at, linter)| linter.files.all().iter().map(move |pattern| (at, pattern)))
        .filter(|(_, pattern)| ENDINGS.contains(&pattern.as_str()))
        .map(|(at, pattern)| {
            let message = format!("`linters[{at}]`: the pattern `{pattern}` matches only a file of that name");
            (message, format!("write `*{pattern}`"))
        })
        .collect();
    let outside = linters.iter().enumerate().flat_map(|(at, linter)| {
        let patterns = linter.files.all().iter().filter(|pattern| is_outside(pattern, scope));
        patterns.map(move |pattern| {
            let message =
                format!("`linters[{at}]`: the pattern `{pattern}` is not in the workspace, so no file matches");
            (message, format!("write `{}` for a folder of the workspace", pattern.trim_start_matches('/')))
        })
    });
    let outside: Vec<IdleSetting> = outside.collect();
    let misses = |(_, linter): &(usize, LinterOptions)| {
        !linter.command.is_empty() && !linter.command.iter().any(|word| word.contains("{file}"))
    };
    let missing = linters.into_iter().enumerate().filter(misses);
    let describe = |(at, linter): (usize, LinterOptions)| {
        let message = format!("`linters[{at}]`: the `command` has no `{{file}}`, so the linter is not given the file");
        let help = format!("write `{}`", command_with_file(linter.command.iter().map(String::as_str)));
        (message, help)
    };
    missing.map(describe).chain(programs).chain(endings).chain(outside).collect()
}

/// Returns `true` if an absolute pattern matches nothing in the workspace.
fn is_outside(pattern: &str, scope: &Scope) -> bool {
    let literal = pattern.split(['*', '?', '[', '{']).next().unwrap_or_default();
    let folder = literal.rsplit_once('/').map_or("", |(folder, _)| folder);
    // The root, as in `/**`, has every file.
    let folder = if folder.is_empty() { "/" } else { folder };
    let resolved = scope.resolve(folder);
    pattern.starts_with('/')
        && resolved.is_ok_and(|at| !at.starts_with(scope.workspace()) && !scope.workspace().starts_with(at))
}

impl Linter {
    fn new(options: LinterOptions, launcher: LinterLauncher, context: &ModuleContext<'_>) -> Result<Self, String> {
        let LinterOptions { name, files, command, timeout, exit_codes, .. } = options;
        let Some(program) = command.first().filter(|program| !program.is_empty()) else {
            return Err("`command` is empty: name a program".to_owned());
        };
        if let Some(code) = exit_codes.iter().find(|code| !(1..=255).contains(*code)) {
            return Err(format!("`exit_codes` has {code}: an exit code for findings is between 1 and 255"));
        }
        let name = name.unwrap_or_else(|| program.rsplit('/').next().unwrap_or(program).to_owned());
        let (files, timeout) = (everywhere(files.all())?, seconds("timeout", timeout)?);
        let (held, is_reported_missing) = (context.held.clone(), false.into());
        Ok(Self { name, files, timeout, command, exit_codes, launcher, held, is_reported_missing })
    }
}

/// Compiles globs; those without a folder match files in every folder.
fn everywhere(files: &[String]) -> Result<GlobSet, String> {
    require_some("files", files)?;
    require_possible("files", files)?;
    let anywhere = |glob: &String| if glob.contains('/') { glob.clone() } else { format!("**/{glob}") };
    let files: Vec<String> = files.iter().map(anywhere).collect();
    globs(files.iter().map(String::as_str)).map_err(|error| format!("`files`: {error}"))
}

struct LinterHook {
    linters: Vec<Linter>,
    tools: Vec<String>,
    longest: usize,
    /// `true` once the user was warned that linters run without their sandbox.
    has_warned: AtomicBool,
    scope: Arc<Scope>,
}

impl Hook for LinterHook {
    async fn handle(&self, _event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let wrote =
            data["success"] == true && self.tools.iter().any(|tool| Some(tool.as_str()) == data.text("tool_name"));
        let Some(file) = data.text_at("/tool_input/file_path").filter(|_| wrote) else {
            return Ok(HookResult::proceed());
        };
        let workspace = self.scope.workspace();
        let place = self.scope.resolve(file).ok().filter(|place| place.is_file());
        let Some(file) = place.as_deref().and_then(|place| place.strip_prefix(workspace).ok()) else {
            return Ok(HookResult::proceed());
        };
        // A pattern is relative to the workspace, or absolute.
        let is_match = |linter: &&Linter| {
            linter.files.is_match(file) || place.as_deref().is_some_and(|place| linter.files.is_match(place))
        };
        let linters: Vec<&Linter> = self.linters.iter().filter(is_match).collect();
        let results = join_all(linters.iter().map(|linter| linter.lint(file, workspace))).await;
        let unconfined = linters.iter().find_map(|linter| linter.launcher.limitation());
        let unconfined = unconfined.filter(|_| !self.has_warned.swap(true, Ordering::Relaxed));
        Ok(self.conclude(&file.display().to_string(), results, unconfined))
    }
}

impl LinterHook {
    /// Shows findings to the agent, and problems with a linter to the user.
    fn conclude(&self, file: &str, results: Vec<LintResult>, unconfined: Option<&str>) -> HookResult {
        let (mut findings, mut warnings) = (Vec::new(), Vec::new());
        warnings.extend(
            unconfined.map(|why| format!("linters run without their sandbox ({why}) on files that the agent wrote")),
        );
        for result in results {
            match result {
                LintResult::Clean => {}
                LintResult::Findings { linter, text } => {
                    warnings.push(format!("`{linter}` found something in `{file}`"));
                    findings.push(format!("{linter} about {file}:\n{text}"));
                }
                LintResult::Failed(why) => warnings.push(why),
            }
        }
        let result = match findings.is_empty() {
            true => HookResult::proceed(),
            false => HookResult::inject(self.shortened(&findings.join("\n\n"))),
        };
        if warnings.is_empty() { result } else { result.warning(warnings.join("; ")) }
    }

    fn shortened(&self, findings: &str) -> String {
        let head = first_chars(findings, self.longest);
        if head == findings {
            return head.to_owned();
        }
        let whole = head.rsplit_once('\n').map_or(head, |(lines, _)| lines);
        let left = findings.lines().count() - whole.lines().count();
        format!("{whole}\n… and {}", counted(left, "more line"))
    }
}
