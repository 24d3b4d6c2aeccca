use amplifier_agent::provider::ToolSpec;
use amplifier_agent::tool::{BashTool, GrepTool, MultiEditTool, ReadTool, Tool, standard};
use serde_json::{Value, json};

use crate::tools::place::{Place, failure};

#[test]
fn the_standard_tools_have_the_documented_names_and_fields() {
    let place = Place::new();
    let tools: Vec<_> = standard(&place.workspace)
        .iter()
        .map(|tool| {
            let ToolSpec { name, input_schema, .. } = tool.spec();
            let mut fields: Vec<_> = input_schema["properties"].as_object().unwrap().keys().cloned().collect();
            fields.sort();
            let required: Vec<_> =
                input_schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            format!("{name}: {}; required: {}", fields.join(" "), required.join(" "))
        })
        .collect();
    let expected = [
        "Read: file_path limit offset; required: file_path",
        "Write: content file_path; required: file_path content",
        "Edit: file_path new_string old_string replace_all; required: file_path old_string new_string",
        "MultiEdit: edits file_path; required: file_path edits",
        "Bash: command description timeout; required: command",
        "Glob: path pattern; required: pattern",
        "Grep: case_insensitive context glob max_matches path pattern; required: pattern",
        "Todo: todos; required: todos",
    ];
    assert_eq!(tools, expected);
}

#[test]
fn schemas_say_what_the_input_is_in_plain_words() {
    let place = Place::new();
    let expected = json!({
        "type": "object",
        "properties": {
            "file_path": {"type": "string", "description": "The file, absolute or relative to the workspace."},
            "offset": {"type": "integer", "minimum": 1, "description": "The number of the first line to read, from 1."},
            "limit": {"type": "integer", "minimum": 1, "description": "The largest number of lines; at most 2,000."},
        },
        "required": ["file_path"],
        "additionalProperties": false,
    });
    assert_eq!(ReadTool::new(place.workspace.clone()).spec().input_schema, expected);

    let edits = &MultiEditTool::new(place.workspace.clone()).spec().input_schema["properties"]["edits"];
    assert_eq!((&edits["type"], &edits["minItems"]), (&json!("array"), &json!(1)));
    assert_eq!(edits["items"]["required"], json!(["old_string", "new_string"]));
    assert_eq!(edits["items"]["additionalProperties"], json!(false));
}

#[tokio::test]
async fn input_that_cannot_be_read_is_named() {
    let place = Place::new();
    let read = ReadTool::new(place.workspace.clone());
    let cases = [
        (json!({}), "missing field `file_path`"),
        (json!({"file_path": 3}), "`file_path`: invalid type: integer `3`, expected a string"),
        (json!({"file_path": "a", "offset": 0}), "`offset`: invalid value: integer `0`, expected a nonzero usize"),
        (
            json!({"file_path": "a", "lines": 3}),
            "`lines`: unknown field `lines`, expected one of `file_path`, `offset`, `limit`",
        ),
    ];
    for (input, problem) in cases {
        let expected = ("input", format!("invalid input of `Read`: {problem}"));
        assert_eq!(failure(&read, input).await, expected);
    }
}

#[tokio::test]
async fn numbers_out_of_range_are_refused() {
    let place = Place::new();
    let input = |tool: &str, problem: &str| ("input", format!("invalid input of `{tool}`: {problem}"));
    let bash = BashTool::new(place.workspace.clone());
    for seconds in [0, 601] {
        let problem = format!("`timeout` is {seconds}, and must be between 1 and 600 seconds");
        assert_eq!(failure(&bash, json!({"command": "true", "timeout": seconds})).await, input("Bash", &problem));
    }
    let grep = GrepTool::new(place.workspace.clone());
    for matches in [0, 1_001] {
        let problem = format!("`max_matches` is {matches}, and must be between 1 and 1000");
        assert_eq!(failure(&grep, json!({"pattern": "x", "max_matches": matches})).await, input("Grep", &problem));
    }
    let problem = "`context` is 21, and must be at most 20";
    assert_eq!(failure(&grep, json!({"pattern": "x", "context": 21})).await, input("Grep", problem));
}
