//! The mistakes that a newcomer made while writing the first policies.

use super::Mistake;

#[rustfmt::skip] // A table, with YAML as it is written.
pub(super) const FIRST: &[Mistake] = &[
    ("key typo", r#"hooks:
  - rule: a
    on: tool:pre
    wen: tool_name == 'Bash'
    deny: no
"#, &[r#"error:4:5: unknown key `wen`; did you mean `when`?"#]),
    ("if for when", r#"hooks:
  - rule: a
    on: tool:pre
    if: tool_name == 'Bash'
    deny: no
"#, &[r#"error:4:5: unknown key `if`; did you mean `when`?"#]),
    ("unknown event", r#"hooks:
  - rule: a
    on: tool:before
    deny: no
"#, &[r#"error:3:5: unknown event `tool:before`; known events are `tool:pre`, `tool:post`; declare an event of another program in the bundle: `events: [NAME]`"#]),
    ("event typo", r#"hooks:
  - rule: a
    on: tool:prre
    deny: no
"#, &[r#"error:3:5: unknown event `tool:prre`; did you mean `tool:pre`?"#]),
    ("no on", r#"hooks:
  - rule: a
    deny: no
"#, &[r#"error:2:5: `on` is missing: name the events of the hook; `amplifier events` lists all"#]),
    ("no action", r#"hooks:
  - rule: a
    on: tool:pre
"#, &[r#"error:2:5: missing action of the rule: expected `deny`, `ask`, `modify`, `inject` or `message`"#]),
    ("\\s in CEL", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == "Bash" && tool_input.command.matches("git\s+push")
    deny: no
"#, &[r#"error:4:65: syntax error, invalid escape `\s` in this text; write `\\s`, or `r` before the text: `r"…"`"#]),
    ("= for ==", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name = 'Bash'
    deny: no
"#, &[r#"error:4:21: syntax error, unknown operator `=`; write `==`"#]),
    ("and for &&", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 'Bash' and tool_input.command == 'ls'
    deny: no
"#, &[r#"error:4:31: syntax error, unknown operator `and`; write `&&`"#]),
    ("includes", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == "Bash" && tool_input.command.includes("rm")
    deny: no
"#, &[r#"error:4:53: unknown function `includes`; did you mean `contains`?"#]),
    ("colon in text", r#"hooks:
  - rule: a
    on: tool:pre
    deny: Not allowed: use the staging branch
"#, &[r#"error:4:22: the text of `deny` contains `: `, so it needs quotes; write `deny: "Not allowed: use the staging branch"`"#]),
    ("unknown name", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_nam == 'Bash'
    deny: no
"#, &[r#"error:4:11: unknown name `tool_nam`; did you mean `tool_name`?"#]),
    ("bash, comand", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == "bash" && tool_input.comand.contains("rm")
    deny: no
"#, &[r#"error:4:24: unknown tool `bash`; did you mean `Bash`?"#]),
    ("tool_result at pre", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_result.output.contains('x')
    deny: no
"#, &[r#"error:4:11: unknown field `tool_result` of `tool:pre`; it is a field of `tool:post`"#]),
    ("unknown module", r#"hooks:
  - module: hooks-bash-gard
"#, &[r#"error:2:5: unknown module `hooks-bash-gard`; did you mean `hooks-bash-guard`?"#]),
    ("unknown option", r#"hooks:
  - module: hooks-bash-guard
    config: { destuctive: deny }
"#, &[r#"error:3:15: `config` of `hooks-bash-guard`: unknown option `destuctive`; did you mean `destructive`?"#]),
    ("two kinds", r#"hooks:
  - rule: a
    command: ./x.sh
    on: tool:pre
    deny: no
"#, &[r#"error:2:5: several kinds of hook: expected one of `module`, `rule`, `command`, `worker`, `http`, `nats` and `wasm`"#, r#"warning:2:5: program `./x.sh` not found; paths are relative to the bundle's folder"#]),
    ("two actions", r#"hooks:
  - rule: a
    on: tool:pre
    deny: no
    ask: Sure?
"#, &[r#"error:5:5: rule error: `ask` conflicts with `deny`: a rule has one action, so write two rules"#]),
    ("indentation", r#"hooks:
  - rule: a
    on: tool:pre
      when: tool_name == 'Bash'
    deny: no
"#, &[r#"error:4:7: `when` is indented more than `on` in the line above; indent both by 4 spaces"#]),
    ("open bracket", r#"hooks:
  - rule: a
    on: tool:pre
    when: size(tool_input.command > 5
    deny: no
"#, &[r#"error:4:15: syntax error, this `(` is never closed"#]),
    ("unknown on_error", r#"hooks:
  - rule: a
    on: tool:pre
    deny: no
    on_error: stop
"#, &[r#"error:5:15: unknown value `stop`; expected one of `continue`, `deny`, `deny_gating`"#]),
    ("empty file", "", &[r#"error: the file is empty; write `hooks: []` for a bundle without hooks; `amplifier hooks new rule` creates an example"#]),
    ("on_error typo / role", r#"hooks:
  - rule: a
    on: tool:pre
    deny: no
    role: gaurd
"#, &[r#"error:5:11: unknown value `gaurd`; expected one of `gate`, `observer`"#]),
    ("type", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 3 || tool_input.command > 5
    deny: no
"#, &[r#"error:4:21: `==` is never true for text and a number; compare values of one type"#, r#"warning:4:48: `>` does not work with text and a number; for the length of a text, write `size(text)`"#]),
    ("duplicate key", r#"hooks:
  - rule: a
    on: tool:pre
    deny: no
    deny: yes
"#, &[r#"error:5:5: duplicate key `deny`; remove one of them"#]),
    ("nested quotes", r#"hooks:
  - rule: a
    on: tool:pre
    when: "tool_name == "Bash""
    deny: no
"#, &[r#"error:4:25: the value of `when` ends at this quote, and more text follows; write `when: 'tool_name == "Bash"'`"#]),
    ("list on top", r#"- rule: a
  on: tool:pre
  deny: no
"#, &[r#"error:1:1: expected keys with values, such as `key: value`; a bundle begins with a key, such as `hooks:`"#]),
    ("priority", r#"hooks:
  - rule: a
    on: tool:pre
    deny: no
    priority: high
"#, &[r#"error:5:15: invalid `priority` `high`: expected a whole number"#]),
    ("option", r#"hooks:
  - rule: a
    on: tool:pre
    ask: Go on?
    options: [Sure, Deny]
"#, &[r#"error:5:5: rule error: `options` has the unknown option `Sure`; write `{ label: Sure, effect: allow_once }`"#]),
    ("tools only", r#"tools:
  only: [Read, Grpe]
hooks: []
"#, &[r#"error:2:16: unknown tool `Grpe`; did you mean `Grep`?"#]),
    ("hooks a map", r#"hooks:
  rule: a
  on: tool:pre
  deny: no
"#, &[r#"error:2:3: expected a list, whose items begin with `- `"#]),
    ("missing program", r#"hooks:
  - command: ./nothere.sh
    on: tool:pre
"#, &[r#"warning:2:5: program `./nothere.sh` not found; paths are relative to the bundle's folder"#]),
    ("missing include", r#"includes: [gone.yaml]
hooks: []
"#, &[r#"error:1:12: `gone.yaml` cannot be read: No such file or directory (os error 2)"#]),
    ("three mistakes", r#"hooks:
  - rule: a
    on: tool:prre
    deny: no
  - rule: b
    on: tool:pre
    wen: x
    deny: no
  - rule: c
    on: tool:pre
    when: tool_nam == 'x'
    deny: no
"#, &[r#"error:3:5: unknown event `tool:prre`; did you mean `tool:pre`?"#, r#"error:7:5: unknown key `wen`; did you mean `when`?"#, r#"error:11:11: unknown name `tool_nam`; did you mean `tool_name`?"#]),
    ("two in one rule", r#"hooks:
  - rule: a
    on: tool:pre
    wen: x
    deny: '{{ tool_nam }}'
    priority: high
"#, &[r#"error:4:5: unknown key `wen`; did you mean `when`?"#, r#"error:5:15: unknown name `tool_nam`; did you mean `tool_name`?"#, r#"error:6:15: invalid `priority` `high`: expected a whole number"#]),
    ("no effect", r#"hooks:
  - rule: a
    on: session:end
    deny: no
  - rule: b
    on: prompt:complete
    ask: Sure?
"#, &[r#"error:4:5: `deny` has no effect at `session:end`; the event reports what has happened; use `message`, or an earlier event, such as `tool:pre`"#, r#"error:7:5: `ask` has no effect at `prompt:complete`; use `deny`, or an event before the operation, such as `tool:pre`"#]),
    ("test decision", r#"hooks:
  - rule: a
    on: tool:pre
    deny: no
tests:
  - name: x
    event: tool:pre
    data: { tool_name: Bash, tool_input: {} }
    expect: { decision: denied }
"#, &[r#"error:6:5: unknown decision `denied`; did you mean `deny`?"#]),
];
