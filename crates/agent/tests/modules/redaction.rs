//! `hooks-redaction`.

use amplifier_agent::provider::{Script, ScriptedResponse};
use serde_json::{Value, json};

use crate::common::{ORCHESTRATORS, Run};
use crate::modules::{Modules, calls, check_problems, echo, shown};

const NAME: &str = "hooks-redaction";
const BUNDLE: &str = "hooks:\n  - module: hooks-redaction\n";

/// The text without the parts of markers that depend on a key.
fn plain(text: &str) -> String {
    let mut parts = text.split(" hmac=");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| text + &part[16..])
}

/// The result of a tool after redaction.
async fn redacted(config: &str, text: &str) -> String {
    let bundle = format!("{BUNDLE}    config: {config}\n");
    let run = Modules::new(calls(&[echo(text)])).bundle(&bundle).world.run(&["go"]).await;
    plain(&run.requests[1].messages.last().unwrap().content)
}

#[tokio::test]
async fn an_own_pattern_sees_the_text_before_the_built_in_ones() {
    let config = r"{ patterns: { aws_secret: 'AKIA[A-Z0-9]{16},(?<secret>\S+)' } }";
    let text = "AKIAIOSFODNN7EXAMPLE,wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY";
    let result = redacted(config, text).await;
    assert!(!result.contains("wJalr") && !result.contains("AKIAIOS"), "{result}");
}

#[tokio::test]
async fn neither_model_nor_transcript_nor_audit_log_see_what_is_replaced() {
    for orchestrator in ORCHESTRATORS {
        let key = format!("ghp_{}", "a1B2".repeat(9));
        let script = Script::new([
            // The input of a tool is not changed, so the tool finds the secret itself.
            ScriptedResponse::text("I ask bernd@example.org.").calling("Secrets", json!({})),
            ScriptedResponse::text("The answer is carla@example.net."),
        ]);
        let modules = Modules::new(script).bundle(BUNDLE).change(|world| world.orchestrator(orchestrator));
        let result = format!("call +49 30 1234567 with {key}");
        let secrets = crate::common::tool("Secrets", &modules.world.inputs, move |_| {
            let output = amplifier_agent::tool::ToolOutput::text(result.clone());
            async { Ok(output) }
        });
        let run: Run = modules.change(|world| world.tool(secrets)).world.run(&["Write to anna@example.com"]).await;
        let expected = [
            "Write to [redacted kind=email len=16]",
            "I ask [redacted kind=email len=17].",
            "call [redacted kind=phone len=14] with [redacted kind=github_token len=40]",
            "The answer is [redacted kind=email len=17].",
        ];
        let history: Vec<String> = run.history.iter().map(|message| plain(&message.content)).collect();
        assert_eq!(history, expected);
        let model: Vec<String> = run.requests[1].messages.iter().map(|message| plain(&message.content)).collect();
        assert_eq!(model, expected[..3]);
        let watched = run.watched.join("\n");
        for secret in ["anna@", "bernd@", "carla@", "1234567", "ghp_"] {
            assert!(!run.files.contains(secret), "`{secret}` is on disk");
            assert!(!watched.contains(secret), "`{secret}` is on the screen: {watched}");
        }
    }
}

#[tokio::test]
async fn personal_data_is_found_where_it_is_and_not_where_it_only_looks_so() {
    let table = [
        (
            "jörg.müller@example.co.uk_x, <a+b@example.com>",
            "[redacted kind=email len=29], <[redacted kind=email len=15]>",
        ),
        ("TO='anna.o'hara@example.com'", "TO='[redacted kind=email len=23]'"),
        ("@decorator.name and user@localhost", "@decorator.name and user@localhost"),
        (
            "(030) 123-4567, 1-555-123-4567, 0171 2345678.",
            "[redacted kind=phone len=14], [redacted kind=phone len=14], [redacted kind=phone len=12].",
        ),
        ("2024-11-15 18:22:43, 192837465, v1.2.3", "2024-11-15 18:22:43, 192837465, v1.2.3"),
        ("DE89 3704 0044 0532 0130 00 IS MINE", "[redacted kind=iban len=27] IS MINE"),
        ("DE89370400440532013001 XDE89370400440532013000", "DE89370400440532013001 XDE89370400440532013000"),
        (
            "4111 1111 1111 1111 but not 4111 1111 1111 1112",
            "[redacted kind=card_number len=19] but not 4111 1111 1111 1112",
        ),
        (
            "10.1.2.3:80, 127.0.0.1, 2001:db8::1 and dead::beef, 1.2.3.4.5",
            "[redacted kind=ip_address len=8]:80, 127.0.0.1, [redacted kind=ip_address len=11] and dead::beef, 1.2.3.4.5",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(redacted("{ secrets: false, ips: true }", text).await, expected);
    }
}

#[tokio::test]
async fn each_kind_can_be_switched_off_and_patterns_of_your_own_be_added() {
    let text = "anna@example.com, +49 30 1234567, badge-301422, token ghp_a1B2a1B2a1B2a1B2a1B2";
    let own = r"{ emails: false, phones: false, secrets: false, patterns: { badge: 'badge-(?<secret>\d{6})' } }";
    let expected = text.replace("301422", "[redacted kind=badge len=6]");
    assert_eq!(redacted(own, text).await, expected);
    assert_eq!(redacted("{ places: [prompt, answer] }", text).await, text);
    let kept = "{ except: [github_token, card_number, phone] }";
    let cards = format!("{text}, 4111 1111 1111 1111, AKIAIOSFODNN7EXAMPLE");
    let expected = cards
        .replace("anna@example.com", "[redacted kind=email len=16]")
        .replace("AKIAIOSFODNN7EXAMPLE", "[redacted kind=aws_access_key_id len=20]");
    assert_eq!(redacted(kept, &cards).await, expected);
}

#[tokio::test]
async fn results_are_looked_through_at_any_depth_and_the_person_can_be_told() {
    let modules = Modules::new(calls(&[("Deep", json!({}))]));
    let deep = crate::common::tool("Deep", &modules.world.inputs, |_| async {
        let output = amplifier_agent::tool::ToolOutput::text("fine");
        Ok(output
            .with("users", json!([{ "anna@example.com": 1 }, { "mail": "b@example.com", "password": "hunter22" }])))
    });
    let bundle = format!("{BUNDLE}    config: {{ announce: true }}\n");
    let run = modules.bundle(&bundle).change(|world| world.tool(deep)).world.run(&["go"]).await;
    let users = plain(&run.events("tool:post")[0]["tool_result"]["users"].to_string());
    let expected = json!([
        { "[redacted kind=email len=16]": 1 },
        { "mail": "[redacted kind=email len=13]", "password": "[redacted kind=password len=8]" },
    ]);
    assert_eq!(serde_json::from_str::<Value>(&users).unwrap(), expected);
    assert_eq!(shown(&run), [format!("info [hook:{NAME}] something was replaced in the result of a tool")]);
}

#[tokio::test]
async fn a_marker_is_not_written_to_a_file() {
    let marker = "[redacted kind=password len=7 hmac=0123456789abcdef]";
    let line = format!("password = \"{marker}\"\n");
    for (name, input, is_denied) in [
        ("Write", json!({"file_path": "a.py", "content": line}), true),
        ("Edit", json!({"file_path": "a.py", "old_string": "x", "new_string": line}), true),
        ("MultiEdit", json!({"file_path": "a.py", "edits": [{"old_string": "x", "new_string": line}]}), true),
        ("Bash", json!({"command": format!("echo '{line}' > a.py")}), true),
        ("Edit", json!({"file_path": "a.py", "old_string": line, "new_string": "x"}), false),
        ("Write", json!({"file_path": "a.py", "content": "password = \"[redacted]\"\n"}), false),
        ("Remember", json!({"note": line}), false),
    ] {
        let modules = Modules::new(calls(&[(name, input)]));
        let tool = crate::common::tool(name, &modules.world.inputs, |_| async {
            Ok(amplifier_agent::tool::ToolOutput::text("done"))
        });
        let run = modules.bundle(BUNDLE).change(|world| world.tool(tool)).world.run(&["go"]).await;
        let result = &run.requests[1].messages.last().unwrap().content;
        assert_eq!(result.contains("the input has a redaction marker"), is_denied, "{name}: {result}");
    }
}

#[test]
fn bad_options_are_told() {
    check_problems(
        NAME,
        &[
            ("{ places: [] }", "`places` is empty; name at least one"),
            (
                "{ places: [everywhere] }",
                "`places[0]`: unknown variant `everywhere`, expected one of `prompt`, `tool_result`, `answer`",
            ),
            (
                "{ secrets: false, emails: false, phones: false, ibans: false, cards: false }",
                "everything is disabled; enable at least one kind of data",
            ),
            (
                "{ except: [email, githubtoken] }",
                "`except[1]`: unknown kind `githubtoken`; did you mean `github_token`?",
            ),
            (
                "{ secrets: false, ibans: false, cards: false, except: [email, phone] }",
                "everything is disabled; enable at least one kind of data",
            ),
            ("{ patterns: { any: 'x*' } }", "`patterns.any` matches the empty text; change the pattern"),
        ],
    );
    let problem = crate::modules::problem(NAME, "{ patterns: { bad: '(' } }");
    assert_eq!(problem, "`patterns.bad`: invalid regular expression: unclosed group");
}
