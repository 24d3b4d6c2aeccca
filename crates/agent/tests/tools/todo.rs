use amplifier_agent::tool::{TodoTool, ToolOutput};
use serde_json::{Value, json};

use crate::tools::place::{failure, output, run};

fn todos(todos: &[(&str, &str)]) -> Value {
    let todos: Vec<_> = todos.iter().map(|(content, status)| json!({"content": content, "status": status})).collect();
    json!({"todos": todos})
}

#[tokio::test]
async fn the_list_is_kept_and_replaced() {
    let todo = TodoTool::new();
    let shared = todo.clone();
    let input = todos(&[("read", "completed"), ("write", "in_progress"), ("test", "pending")]);
    let list = "[x] read\n[>] write\n[ ] test";
    assert_eq!(run(&todo, input.clone()).await.unwrap(), ToolOutput::text(list).with("todos", input["todos"].clone()));
    assert_eq!(shared.list(), list);

    assert_eq!(output(&todo, todos(&[])).await, "(the list is empty)");
    assert_eq!(shared.list(), "");
}

#[tokio::test]
async fn a_list_that_cannot_be_is_refused_and_the_old_one_stays() {
    let todo = TodoTool::new();
    run(&todo, todos(&[("read", "pending")])).await.unwrap();
    let cases = [
        (todos(&[("a", "in_progress"), ("b", "in_progress")]), "2 tasks are `in_progress`; at most one is allowed"),
        (todos(&[("a", "pending"), (" ", "pending")]), "`todos[1].content` is empty; describe the task"),
        (
            todos(&[("a", "done")]),
            "`todos[0].status`: unknown variant `done`, expected one of `pending`, `in_progress`, `completed`",
        ),
    ];
    for (input, problem) in cases {
        let expected = ("input", format!("invalid input of `Todo`: {problem}"));
        assert_eq!(failure(&todo, input).await, expected);
    }
    assert_eq!(todo.list(), "[ ] read");
}
