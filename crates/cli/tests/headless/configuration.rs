//! What is configured, by whom, and what is wrong with it.

use serde_json::{Value, json};

use crate::common::{Place, Ran, Running};

/// A setting as `doctor` tells it: its value, and where it comes from.
fn setting(report: &str, name: &str) -> (String, String) {
    let report: Value = serde_json::from_str(report).unwrap();
    let settings = report["settings"].as_array().unwrap().iter();
    let found = settings.filter(|setting| setting["name"] == name).collect::<Vec<_>>();
    assert_eq!(found.len(), 1, "{report}");
    let text = |field: &str| found[0][field].as_str().unwrap().to_owned();
    (text("value"), text("source"))
}

#[test]
fn a_flag_counts_more_than_the_environment_and_that_more_than_the_file() {
    let place = Place::with(json!([]));
    let check = |name: &str, default: &str, [file, environment, flag]: [&str; 3]| {
        let variable = format!("AMPLIFIER_{}", name.to_uppercase());
        let option = format!("--{}", name.replace('_', "-"));
        let doctor = |arguments: &[&str], environment: &str| {
            let mut command = place.command(&[&["doctor", "--json"], arguments].concat());
            command.env(&variable, environment);
            setting(&Running::start(command).end().out, name)
        };
        let expected = |value: &str, source: &str| (value.to_owned(), source.to_owned());
        place.write("home/config.toml", "");
        assert_eq!(doctor(&[], default), expected(default, "flag or environment"));
        assert_eq!(setting(&place.amplifier(&["doctor", "--json"]).out, name), expected(default, "default"));
        let quoted = if name == "approval_timeout" { file.to_owned() } else { format!("{file:?}") };
        place.write("home/config.toml", &format!("{name} = {quoted}\n"));
        assert_eq!(setting(&place.amplifier(&["doctor", "--json"]).out, name), expected(file, "configuration file"));
        assert_eq!(doctor(&[], environment), expected(environment, "flag or environment"));
        assert_eq!(doctor(&[&option, flag], environment), expected(flag, "flag or environment"));
    };
    check("approvals", "terminal", ["server", "terminal", "server"]);
    check("mode", "ask", ["deny", "plan", "accept-edits"]);
    check("confirm", "all", ["off", "writes", "commands"]);
    check("approval_timeout", "300", ["60", "2.5", "7"]);
    check("orchestrator", "loop-streaming", ["loop-basic", "loop-streaming", "loop-basic"]);
    check("audit", "group", ["async", "record", "group"]);
    check("workspace", ".", ["/", "..", "/tmp"]);
}

#[test]
fn a_variable_that_is_set_to_nothing_is_as_good_as_none() {
    let place = Place::with(json!([]));
    place.write("home/config.toml", "model = \"llama\"\n");
    let mut command = place.command(&["doctor", "--json"]);
    command.env("AMPLIFIER_MODEL", "").env("AMPLIFIER_BUNDLE", "").env("AMPLIFIER_CONFIG", "");
    let report = Running::start(command).end().out;
    assert_eq!(setting(&report, "model"), ("llama".to_owned(), "configuration file".to_owned()));
}

#[test]
fn names_in_the_file_begin_at_its_folder_and_not_at_what_the_agent_works_on() {
    let place =
        Place::with(json!([{ "tools": [{ "name": "Bash", "input": { "command": "true" } }] }, { "text": "Done." }]));
    place.write("home/config.toml", "bundle = \"guards.yaml\"\nscript = \"play.json\"\n");
    place.write("home/guards.yaml", "hooks: [{ rule: mine, on: tool:pre, deny: not today }]");
    place.write("home/play.json", &place.read("script.json"));
    place.write("workspace/guards.yaml", "hooks: [{ command: touch ran, on: session:start }]");
    place.write("workspace/play.json", &json!({ "answers": [{"text": "Not this one."}] }).to_string());
    let Ran { out, .. } = place.amplifier(&["run", "--json", "Go"]);
    assert!(out.contains("not today") && out.contains("Done."), "{out}");
    assert!(!place.at("workspace/ran").exists() && !out.contains("Not this one."), "{out}");
}

#[test]
fn a_broken_file_is_named_with_the_line() {
    let place = Place::with(json!([]));
    let file = place.at("home/config.toml").display().to_string();
    let check = |text: &str, line: &str, problem: &str| {
        place.write("home/config.toml", text);
        for (command, expected) in [("doctor", 4), ("run", 1)] {
            let Ran { code, out, error } = place.amplifier(&[command]);
            assert_eq!((code, out.as_str()), (expected, ""), "{error}");
            let begin = format!("amplifier: invalid configuration `{file}`: TOML parse error at {line}");
            assert!(error.starts_with(&begin) && error.contains(problem), "{error}");
        }
    };
    check("model = \"llama\"\nprovider = openai\n", "line 2, column 12", "");
    check("\n\nmodle = \"llama\"\n", "line 3, column 1", "unknown field `modle`, expected one of `provider`, `model`");
    check("audit = 3\n", "line 1, column 9", "invalid type: integer `3`, expected a string");
    check("[mcp.files]\ncomand = \"x\"\n", "line 2, column 1", "unknown field `comand`");
}

#[test]
fn a_file_that_was_named_has_to_be_there() {
    let place = Place::with(json!([]));
    let failed = place.amplifier(&["doctor", "--config", "nowhere.toml"]);
    failed.check_unchecked("amplifier: the configuration `nowhere.toml`: No such file or directory (os error 2)");
}

#[test]
fn a_value_that_there_is_not_is_refused_with_those_there_are() {
    let place = Place::with(json!([]));
    let check = |arguments: &[&str], problem: &str| {
        place.amplifier(&[&["doctor"], arguments].concat()).check_usage(&format!("amplifier: {problem}"));
    };
    let providers = "expected `anthropic`, `openai`, `gemini` or `scripted`";
    check(&["--provider", "acme"], &format!("unknown provider `acme`; {providers}"));
    check(&["--provider", "scripted"], "missing script for the provider `scripted`; add --script FILE");
    check(
        &["--orchestrator", "x"],
        "`orchestrator`: unknown orchestrator `x`; expected one of: loop-basic, loop-streaming",
    );
    check(&["--audit", "x"], "`audit`: unknown durability `x`; expected one of: async, group, record");
    for seconds in ["0", "soon", "NaN", "inf", "1e300"] {
        let problem = format!("invalid approval timeout `{seconds}`; expected seconds above 0");
        check(&["--approval-timeout", seconds], &problem);
    }
}

#[test]
fn who_has_configured_no_model_reads_how_to() {
    let place = Place::with(json!([]));
    let Ran { code, out, error } = place.amplifier(&["run", "Greet me"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(error.starts_with("amplifier: no model is configured\n"), "{error}");
    for help in ["amplifier demo", "export ANTHROPIC_API_KEY=…", "--base-url http://localhost", "amplifier doctor"] {
        assert!(error.contains(help), "{error}");
    }
    let failed = place.amplifier(&["run", "--provider", "gemini", "Greet me"]);
    failed.check_failed("amplifier: missing key for the provider `gemini`; set GEMINI_API_KEY");
}

#[test]
fn an_address_alone_means_a_server_with_the_api_of_openai() {
    let place = Place::with(json!([]));
    let Ran { code, out, .. } =
        place.amplifier(&["doctor", "--base-url", "http://localhost:1/v1/", "--model", "llama"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("  ✓ model          openai, llama, at http://localhost:1/v1/\n"), "{out}");
    // A key still implies its service, for example behind a proxy.
    let mut command = place.command(&["doctor", "--base-url", "http://localhost:1/"]);
    command.env("ANTHROPIC_API_KEY", "k");
    let out = Running::start(command).end().out;
    assert!(out.contains("  ✓ model          anthropic, "), "{out}");
}

#[test]
fn the_doctor_says_what_to_do_about_each_failed_check() {
    let place = Place::with(json!([]));
    place.write("home/approvals.json", "{");
    let rules = place.at("home/approvals.json");
    let Ran { code, out, .. } = place.amplifier(&["doctor"]);
    assert_eq!(code, 1);
    let fix = "set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or use `--base-url URL --model NAME` for a local model";
    assert!(out.contains(&format!("  ✗ model          no model\n                   → {fix}\n")), "{out}");
    assert!(out.contains(&format!("→ correct or remove `{}`\n", rules.display())), "{out}");
    let report: Value = serde_json::from_str(&place.amplifier(&["doctor", "--json"]).out).unwrap();
    for finding in report["findings"].as_array().unwrap() {
        assert_eq!(finding["ok"] == true, finding["fix"].is_null(), "{finding}");
    }
}

#[test]
fn a_script_that_cannot_be_played_is_named() {
    let place = Place::with(json!([]));
    place.write("workspace/bad.json", "{\n  \"answer\": []\n}");
    let Ran { code, out, error } = place.amplifier(&["run", "--script", "bad.json", "Greet me"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(error.starts_with("amplifier: invalid script `bad.json`"), "{error}");
    assert!(error.ends_with("unknown field `answer`, expected `answers` or `agents` at line 2 column 10\n"), "{error}");
    let Ran { code, out, .. } = place.amplifier(&["doctor", "--script", "bad.json"]);
    assert!(code == 1 && out.contains("✗ model          invalid script `bad.json`"), "{out}");
}

#[test]
fn the_doctor_says_whether_everything_is_there() {
    let place = Place::with(json!([]));
    let findings = |ran: &Ran| -> Vec<(String, bool)> {
        let report: Value = serde_json::from_str(&ran.out).unwrap();
        let findings = report["findings"].as_array().unwrap().iter();
        let findings = findings.map(|one| (one["what"].as_str().unwrap().to_owned(), one["ok"].as_bool().unwrap()));
        let findings: Vec<(String, bool)> = findings.collect();
        assert_eq!(report["ok"], findings.iter().all(|(_, ok)| *ok));
        findings
    };
    let missing =
        |ran: &Ran| -> Vec<String> { findings(ran).into_iter().filter(|(_, ok)| !ok).map(|(what, _)| what).collect() };

    let well = Running::start(place.scripted(&["doctor", "--json"])).end();
    assert_eq!((well.code, missing(&well)), (0, vec![]));
    let no_model = place.amplifier(&["doctor", "--json"]);
    assert_eq!((no_model.code, missing(&no_model)), (1, vec!["model".to_owned()]));
    place.write("home/approvals.json", "{ \"confirm:*\": \"perhaps\" }");
    let ran = Running::start(place.scripted(&["doctor", "--json", "--workspace", "nowhere"])).end();
    assert_eq!((ran.code, missing(&ran)), (1, vec!["workspace".to_owned(), "approvals".to_owned()]));
}

#[test]
fn the_doctor_tells_no_key() {
    let place = Place::with(json!([]));
    for format in [&["doctor"][..], &["doctor", "--json"]] {
        let mut command = place.command(format);
        command.env("OPENAI_API_KEY", "sk-very-secret");
        let report = Running::start(command).end().fine();
        assert!(report.contains("openai, gpt-5; OPENAI_API_KEY is set") && !report.contains("very"), "{report}");
    }
}

#[test]
fn the_hooks_that_would_run_are_listed() {
    let place = Place::with(json!([]));
    let table = "\
EVENT                HOOK                 PRIORITY  ROLE      ON ERROR  TIME LIMIT  LEVEL
tool:pre             confirm                  1000  gate      deny      30 s        built in
";
    let followers = "\
execution:start      session-bundles             0  observer  continue  5 s         built in
provider:request     session-bundles             0  observer  continue  5 s         built in
";
    assert_eq!(place.amplifier(&["hooks", "list"]).fine(), format!("{table}{followers}"));
    assert_eq!(place.amplifier(&["hooks", "list", "tool:pre"]).fine(), table);
    assert_eq!(place.amplifier(&["hooks", "list", "tool:post"]).fine(), "No hook is registered for this event.\n");
    assert_eq!(place.amplifier(&["hooks", "list", "tool:post", "--json"]).fine(), "");
    let hook: Value = serde_json::from_str(&place.amplifier(&["hooks", "list", "tool:pre", "--json"]).fine()).unwrap();
    assert_eq!((&hook["name"], &hook["event"]), (&json!("confirm"), &json!("tool:pre")));
    let Ran { code, error, .. } = place.amplifier(&["hooks", "list", "tool"]);
    assert!(code == 1 && error.ends_with("; `amplifier events` lists all events\n"), "{error}");
}

#[test]
fn hooks_are_listed_with_what_their_failure_does_at_each_event() {
    let place = Place::with(json!([]));
    let hooks = "hooks:\n  - { command: 'true', name: guard, on: 'tool:*' }\n  - { command: 'true', name: lax, on: tool:pre, on_error: continue }\n";
    place.write("home/bundle.yaml", hooks);
    let on_error = |event: &str| {
        let mut arguments = vec!["hooks", "list", "--json"];
        arguments.extend(Some(event).filter(|event| !event.is_empty()));
        let lines = place.amplifier(&arguments).fine();
        let hooks = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let named = hooks.filter(|hook| hook["level"] == "user");
        named.map(|hook| hook["on_error"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(on_error("tool:pre"), ["deny", "continue"]);
    assert_eq!(on_error("tool:post"), ["continue"]);
    assert_eq!(on_error(""), ["deny_gating", "continue"]);
    let table = place.amplifier(&["hooks", "list"]).fine();
    let row = table.lines().find(|line| line.contains("guard")).unwrap();
    assert!(row.contains("gate      by event  30 s"), "{table}");
    assert!(table.contains("\nby event: deny at session:start, prompt:submit, "), "{table}");
}

#[test]
fn approval_rules_are_added_explained_and_active_at_once() {
    let place = Place::with(json!([
        { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
        { "text": "Done." }
    ]));
    let rule = "confirm:Run `touch *`?";
    let explanation = "Requests of hook `confirm` with a prompt of the form \"Run `touch *`?\", where `*` is any text, are allowed \
                       without an approver, in every session, unless another rule denies them.";
    let add = |arguments: &[&str]| place.amplifier(&[&["approvals", "add"], arguments].concat());
    assert_eq!(add(&["allow", rule]).fine(), format!("Added. {explanation}\n"));
    assert_eq!(add(&["allow", rule]).fine(), format!("Exists already. {explanation}\n"));
    assert_eq!(place.amplifier(&["approvals", "explain", "1"]).fine(), format!("{explanation}\n"));
    assert_eq!(place.amplifier(&["approvals", "explain", rule]).fine(), format!("{explanation}\n"));
    place.run(&["Make it"]);
    assert!(place.at("workspace/made").exists());

    let broad = add(&["allow", "infra:Bash may change infra. Go on?", "--project", "."]).fine();
    assert!(broad.ends_with(".\nIf the prompt names no command or file, the rule allows every one.\n"), "{broad}");

    let workspace = place.at("workspace").canonicalize().unwrap().display().to_string();
    let denied = add(&["deny", "confirm:*", "--project", "."]).fine();
    let expected = format!(
        "Added. All requests of hook `confirm` are denied without an approver, in every session in `{workspace}`.\n"
    );
    assert_eq!(denied, expected);
    std::fs::remove_file(place.at("workspace/made")).unwrap();
    place.run(&["Make it"]);
    assert!(!place.at("workspace/made").exists());

    // None is added if one is wrong.
    for (wrong, why) in
        [("confirm", "expected HOOK:PATTERN"), ("*:x", "invalid hook name `*`"), ("confirm:", "the pattern is empty")]
    {
        let refused = add(&["allow", "confirm:Run `ls`?", wrong]);
        assert!(refused.code == 1 && refused.error.contains(why), "{refused:?}");
    }
    assert!(!place.read("home/approvals.json").contains("ls"));
    let recorded = place.amplifier(&["audit", "export", "--kind", "policy_change"]).fine();
    assert_eq!(recorded.lines().filter(|line| line.contains("\"change\":\"added\"")).count(), 3, "{recorded}");
}

#[test]
fn standing_answers_are_listed_and_taken_back() {
    let place = Place::with(json!([]));
    let list = || place.amplifier(&["approvals", "list"]).fine();
    let file = place.at("home/approvals.json").display().to_string();
    assert_eq!(list(), format!("No approval rules (`{file}`).\n"));
    std::os::unix::fs::symlink(place.at("rules.json"), &file).unwrap();
    place.rules(json!({ "confirm:Run `a`?": "allow", "confirm:Run `b`?": "deny", "confirm:Run `c`?": "allow" }));
    assert_eq!(list(), "  1  allow  confirm:Run `a`?\n  2  deny   confirm:Run `b`?\n  3  allow  confirm:Run `c`?\n");

    let revoke = |rule| place.amplifier(&["approvals", "revoke", rule]);
    assert_eq!(revoke("confirm:Run `a`?").fine(), "Revoked `confirm:Run `a`?`.\n");
    assert_eq!(revoke("2").fine(), "Revoked `confirm:Run `c`?`.\n");
    let left: Value = serde_json::from_str(&place.amplifier(&["approvals", "list", "--json"]).fine()).unwrap();
    assert_eq!(left, json!({ "rule": "confirm:Run `b`?", "decision": "deny", "scope": "user", "project": null }));
    assert!(std::fs::symlink_metadata(&file).unwrap().is_symlink());
    for unknown in ["0", "2", "confirm:*"] {
        let hint = "see `amplifier approvals list`";
        revoke(unknown).check_failed(&format!("amplifier: unknown approval rule `{unknown}`; {hint}"));
    }
    place.write("home/approvals.json", "{ \"confirm:*\": \"perhaps\" }");
    let Ran { code, error, .. } = revoke("1");
    assert!(code == 1 && error.contains(&file), "{error}");
    assert_eq!(place.read("home/approvals.json"), "{ \"confirm:*\": \"perhaps\" }");
}

#[test]
fn rules_about_operations_are_added_listed_explained_and_revoked() {
    let place = Place::with(json!([]));
    let approvals = |arguments: &[&str]| place.amplifier(&[&["approvals"], arguments].concat());
    let added = approvals(&["add", "allow", "--operation", "run cargo test *", "--operation", "write src/**"]).fine();
    let explained = "Operations of the kind `run cargo test *` are allowed without an approver when hook `confirm` asks, in every session, \
                     unless another rule denies them.\n";
    assert!(added.starts_with(&format!("Added. {explained}")), "{added}");
    assert!(
        approvals(&["add", "deny", "--operation", "run git push *", "--hook", "guard", "guard:Go?"])
            .fine()
            .contains("Added.")
    );
    let rules: Value = serde_json::from_str(&place.read("home/approvals.json")).unwrap();
    let expected = json!({
        "confirm": { "run cargo test *": "allow", "write src/**": "allow" },
        "guard:Go?": "deny", "guard": { "run git push *": "deny" },
    });
    assert_eq!(rules, expected);
    let listed = "  1  allow  confirm run cargo test *\n  2  allow  confirm write src/**\n  3  deny   guard:Go?\n  4  deny   guard run git push *\n";
    assert_eq!(approvals(&["list"]).fine(), listed);
    assert_eq!(approvals(&["explain", "run cargo test *"]).fine(), explained);
    let possible = approvals(&["explain", "run cargo *"]).fine();
    let expected = format!(
        "There is no such rule. If you add it as `allow`: {}",
        explained.replace("run cargo test *", "run cargo *")
    );
    assert_eq!(possible, expected);
    let possible = approvals(&["explain", "guard write docs/**"]).fine();
    assert!(possible.contains("`write docs/**` are allowed without an approver when hook `guard` asks"), "{possible}");
    let possible = approvals(&["explain", "guard:Please run it?"]).fine();
    assert!(possible.contains("Requests of hook `guard` with the prompt \"Please run it?\" are allowed"), "{possible}");
    for none in ["9", "cargo", "write", "*:x"] {
        let hint = "see `amplifier approvals list`";
        approvals(&["explain", none]).check_failed(&format!("amplifier: unknown approval rule `{none}`; {hint}"));
    }
    assert_eq!(approvals(&["list"]).fine(), listed);
    assert_eq!(approvals(&["revoke", "write src/**"]).fine(), "Revoked `confirm write src/**`.\n");
    assert_eq!(approvals(&["revoke", "2"]).fine(), "Revoked `guard:Go?`.\n");
    let left: Value = serde_json::from_str(&place.read("home/approvals.json")).unwrap();
    assert_eq!(left, json!({ "confirm": { "run cargo test *": "allow" }, "guard": { "run git push *": "deny" } }));
    for wrong in
        [&["add", "allow", "--operation", ""][..], &["add", "allow", "--hook", "guard", "guard:Go?"], &["add", "allow"]]
    {
        assert_ne!(approvals(wrong).code, 0, "{wrong:?}");
    }
}
