//! `hooks-production-guard`: asks before a file is changed that production depends on.

use amplifier_core::{FlatOption, Map};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Part, Place, options};
use crate::rule::{Rule, RuleOptions};

/// What can be said about it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// The files, as globs on where a path really leads from the workspace.
    paths: Vec<String>,
    /// The tools that change files.
    tools: Vec<String>,
    /// Whether a person can allow it; if not, it is denied.
    ask: bool,
    /// How long the person has, in seconds.
    timeout: f64,
}

impl Default for Options {
    fn default() -> Self {
        let own = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Self {
            paths: own(&["**/production/**", "**/prod/**", "**/.env", "**/.env.*", "**/secrets/**"]),
            tools: own(&["Write", "Edit", "MultiEdit"]),
            ask: true,
            timeout: 300.0,
        }
    }
}

pub(super) fn make(config: &Map, place: &Place<'_>) -> Result<Vec<Part>, String> {
    let Options { paths, tools, ask, timeout } = options(config)?;
    let list = |texts: &[String]| serde_json::to_string(texts).map_err(|error| error.to_string());
    let when = format!("tool_name in {} && path_matches(tool_input.file_path, {})", list(&tools)?, list(&paths)?);
    let mut rule = RuleOptions { when: Some(when), ..RuleOptions::default() };
    if ask {
        rule.ask = Some("Allow a change to the production file `{{ tool_input.file_path }}`?".to_owned());
        rule.options = Some(["Allow once", "Allow always", "Deny"].map(|label| FlatOption::Label(label.into())).into());
        rule.timeout = Some(timeout);
    } else {
        rule.deny =
            Some("`{{ tool_input.file_path }}` is a production file, and is not changed by an agent".to_owned());
    }
    let rule = Rule::new(rule, place.host.scope.clone()).map_err(|error| error.to_string())?;
    Ok(vec![Part::guard(&["tool:pre"], rule).priority(-50)])
}
