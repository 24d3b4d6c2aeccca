use amplifier_core::Speaker;

use super::{Setup, asked, echoes};

#[tokio::test]
async fn a_rule_asks_after_so_many_calls_of_a_session() {
    let setup = Setup::new(
        "
        hooks:
          - rule: enough
            on: tool:pre
            when: session_count('tool:pre', tool_name) > 2
            ask: '{{ tool_name }} was used {{ session_count(\"tool:post\", tool_name) }} times in turn {{ turn() }}. Go on?'
            options: [Allow once, Deny]
        ",
    );
    let world = setup.world(echoes(4)).person(&["Allow once", "Deny"]);
    let run = world.run(&["Echo"]).await;
    assert_eq!(asked(&run), ["Echo was used 2 times in turn 1. Go on?", "Echo was used 3 times in turn 1. Go on?"]);
    let results = run.history.iter().filter(|message| message.role == Speaker::Tool);
    let results: Vec<&str> = results.map(|message| message.content.as_str()).collect();
    assert_eq!(results[..3], ["hello"; 3]);
    assert_ne!(results[3], "hello");
}
