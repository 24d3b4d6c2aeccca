//! `amplifier guard explain`: the effect of the policy in each client.

use serde_json::{Value, json};

use super::{Guarded, text};

const POLICY: &str = "hooks:
  - rule: no-force-push
    on: tool:pre
    when: tool_name == \"Bash\" && tool_input.command.contains(\"push --force\")
    deny: ask before you overwrite history
  - rule: ask-deploy
    on: tool:pre
    ask: Deploy now?
  - rule: style
    on: 'prompt:*'
    modify: { set: { /prompt: Be brief. } }
  - rule: costs
    on: provider:request
    deny: too many
";

fn policy_of(explained: &Value) -> Vec<[&str; 4]> {
    let answers = explained["policy"].as_array().unwrap().iter();
    let field = |answer: &Value, key: &str| -> &str { answer[key].as_str().unwrap().to_owned().leak() };
    answers.map(|answer| ["hook", "event", "answer", "effect"].map(|key| field(answer, key))).collect()
}

#[test]
fn the_effect_of_each_hook_of_the_policy_is_explained() {
    let guarded = Guarded::new();
    guarded.place.write("home/bundle.yaml", POLICY);
    let explain = |client: &str| -> Value {
        let output = guarded.guard(&["explain", client, "--json"]);
        assert!(output.status.success(), "{}", text(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()[0].clone()
    };
    let answered = "answered in the console or in another terminal";
    assert_eq!(
        policy_of(&explain("claude")),
        [
            ["style", "prompt:submit", "modify", "denied"],
            ["no-force-push", "tool:pre", "deny", "exact"],
            ["ask-deploy", "tool:pre", "ask_user", answered],
        ]
    );
    assert_eq!(policy_of(&explain("copilot"))[0], ["style", "prompt:submit", "modify", "exact"]);
    assert_eq!(explain("claude")["absent"], json!([["costs", "provider:request"]]));

    guarded.place.write("home/config.toml", "approvals = \"client\"\n");
    let dialog = "asked in the agent's dialog, without options, time limit, digest and record";
    assert_eq!(policy_of(&explain("gemini"))[2], ["ask-deploy", "tool:pre", "ask_user", dialog]);
    assert_eq!(policy_of(&explain("codex"))[2], ["ask-deploy", "tool:pre", "ask_user", "denied"]);

    let shown = text(&guarded.guard(&["explain", "claude"]));
    assert!(shown.contains("no-force-push tool:pre              deny            exact"), "{shown}");
    assert!(shown.contains("session:start         deny            denied at the first prompt or tool"), "{shown}");
    assert!(shown.contains("costs is never called: claude has no event for provider:request"), "{shown}");
}
