//! Mistakes of YAML, conditions, actions and tests.

use super::Mistake;

#[rustfmt::skip] // A table, with YAML as it is written.
pub(super) const MORE: &[Mistake] = &[
    ("tag", r#"hooks:
  - rule: a
    on: tool:pre
    when: !tool_input.force
    deny: no
"#, &[r#"error:4:11: a text that begins with `!` needs quotes; write `when: "!tool_input.force"`"#]),
    ("braces", r#"hooks:
  - rule: a
    on: tool:pre
    deny: {{ tool_name }} is not allowed
"#, &[r#"error:4:11: a text that begins with `{{` needs quotes; write `deny: "{{ tool_name }} is not allowed"`"#]),
    ("tab", "hooks:\n  - rule: a\n\ton: tool:pre\n    deny: no\n", &[r#"error:3:1: a tab in the indentation; YAML needs spaces: replace the tab"#]),
    ("# in text", r#"hooks:
  - rule: a
    on: tool:pre
    deny: see issue #5
"#, &[r#"error:4:21: the text of `deny` ends before this `#`, which begins a comment; write `deny: "see issue #5"`"#]),
    ("open quote", r#"hooks:
  - rule: a
    on: tool:pre
    deny: "no
"#, &[r#"error:4:11: the value of `deny` has no closing quote; end it with `"`"#]),
    ("dq escape", r#"hooks:
  - rule: a
    on: tool:pre
    when: "tool_input.command.matches('git\s+push')"
    deny: no
"#, &[r#"error:4:43: invalid escape `\s` in double quotes; leave out the outer quotes, and write `r'…'` around a regular expression"#]),
    ("or text", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 'Write' || 'Edit'
    deny: no
"#, &[r#"error:4:35: expected true or false, found text; compare each value: `a == "x" || a == "y"`, or write `a in ["x", "y"]`"#]),
    ("conflict", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 'Write' && tool_name == 'Edit'
    deny: no
"#, &[r#"error:4:32: never true: `tool_name` cannot be both "Write" and "Edit"; write `||` between the comparisons, or `tool_name in ["Write", "Edit"]`"#]),
    ("in text", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 'Bash' && 'rm' in tool_input.command
    deny: no
"#, &[r#"error:4:39: `in` does not work with text and text; for a part of a text, write `text.contains(part)`"#]),
    ("contains list", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 'Bash' && shell(tool_input.command).programs.contains('rm')
    deny: no
"#, &[r#"error:4:60: expected text, found a list; for an item of a list, write `item in list`"#]),
    ("shell field", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 'Bash' && shell(tool_input.command).destructiv
    deny: no
"#, &[r#"error:4:60: unknown field `destructiv` of `shell`; did you mean `destructive`?"#]),
    ("commands field", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 'Bash' && shell(tool_input.command).commands.exists(c, c.name == 'rm')
    deny: no
"#, &[r#"error:4:81: unknown field `name` of a command of `shell`; expected one of `arguments`, `program`, `resolved`"#]),
    ("home glob", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 'Write' && path_matches(tool_input.file_path, ['~/.ssh/**'])
    deny: no
"#, &[r#"error:4:72: the pattern `~/.ssh/**` never matches: it begins with `~`, which is not the home folder here; write an absolute path"#]),
    ("folder glob", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 'Write' && path_matches(tool_input.file_path, ['production/'])
    deny: no
"#, &[r#"error:4:72: the pattern `production/` never matches: it ends with `/`, so no file matches; write `production/**`"#]),
    ("Monday", r#"hooks:
  - rule: a
    on: tool:pre
    when: weekday() == 'Monday'
    deny: no
"#, &[r#"error:4:24: unknown day `Monday`; did you mean `monday`?"#]),
    ("hour 24", r#"hooks:
  - rule: a
    on: tool:pre
    when: hour() >= 24
    deny: no
"#, &[r#"error:4:21: never true: `hour()` is 0 to 23, and compared with 24"#]),
    ("\\b", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 'Bash' && tool_input.command.matches('\brm\b')
    deny: no
"#, &[r#"error:4:62: `\b` in a text is a backspace; for the end of a word, write `\\b`, or `r` before the text: `r"\bword\b"`"#]),
    ("pointer", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 'Bash'
    modify: { set: { /tool_input/comand: ls } }
"#, &[r#"error:5:5: `/tool_input/comand`: unknown field `comand` of the input of `Bash`; did you mean `/tool_input/command`?"#]),
    ("input of another tool in a test", r#"hooks:
  - rule: a
    on: tool:pre
    when: changes('infra/**')
    ask: no
tests:
  - name: t
    event: tool:pre
    data: { tool_name: Write, tool_input: { path: infra/x, content: x } }
    expect: { decision: ask_user }
"#, &["warning:7:5: unknown field `path` of the input of `Write` in `data`; the fields are `file_path`, `content`"]),
    ("wildcard in startsWith", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 'Write' && tool_input.file_path.startsWith('infra/*')
    deny: no
"#, &[r#"warning:4:67: `*` is no wildcard in "infra/*": only a text with a `*` there matches; write "infra/", or match a path with `path_matches`"#]),
    ("wildcard in a command", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 'Bash' && tool_input.command == 'git push -f*'
    deny: no
"#, &[r#"warning:4:56: `git push -f*` is compared as a text, and `*` is no wildcard in it; write `tool_input.command.startsWith("git push -f")`"#]),
    ("pointer into a result", r#"hooks:
  - rule: a
    on: tool:post
    when: tool_name == 'Bash'
    modify: { redact: /tool_result/stdout }
"#, &[r#"error:5:5: `/tool_result/stdout`: unknown field `stdout` of the result of `Bash`; did you mean `output`?"#]),
    ("pointer without /", r#"hooks:
  - rule: a
    on: tool:pre
    modify: { remove: [tool_input.x] }
"#, &[r#"error:4:5: rule error: `modify.remove` has the invalid pointer `tool_input.x`: begin with `/`"#]),
    ("event in condition", r#"hooks:
  - rule: a
    on: tool:pre
    when: event == 'tool:post'
    deny: no
"#, &[r#"error:4:20: never true: this hook does not run at `tool:post`; add it to `on`, which has tool:pre"#]),
    ("template", r#"hooks:
  - rule: a
    on: tool:pre
    deny: 'no {{ tool_input.command'
"#, &[r#"error:4:15: this `{{` is never closed; end the expression with `}}`, or write `{{ '{{' }}`"#]),
    ("template type", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 'Bash'
    deny: 'no {{ tool_input.comand }}'
"#, &[r#"error:5:29: unknown field `comand` of the input of `Bash`; did you mean `command`?"#]),
    ("test by", r#"hooks:
  - rule: a
    on: tool:pre
    deny: no
tests:
  - name: x
    event: tool:pre
    data: { tool_name: Bash, tool_input: {} }
    expect: { by: b }
"#, &[r#"error:6:5: unknown hook `b` in `expect`; did you mean `a`?"#]),
    ("test event", r#"hooks:
  - rule: a
    on: tool:pre
    deny: no
tests:
  - name: x
    event: tool:prre
    data: { tool_name: Bash, tool_input: {} }
    expect: { decision: deny }
"#, &[r#"error:6:5: unknown event `tool:prre`; did you mean `tool:pre`?"#]),
    ("pattern", r#"hooks:
  - rule: a
    on: 'tools:*'
    deny: no
"#, &[r#"error:3:5: no known event matches `tools:*`; declare an event of another program in the bundle: `events: [NAME]`"#]),
    ("session_count", r#"hooks:
  - rule: a
    on: tool:pre
    when: session_count('tool:prre') > 3
    deny: no
"#, &[r#"error:4:25: unknown event `tool:prre`; did you mean `tool:pre`?"#]),
    ("top-level key", r#"hook:
  - rule: a
    on: tool:pre
    deny: no
"#, &[r#"error:1:1: unknown key `hook`; did you mean `hooks`?"#]),
    ("modify at observed", r#"hooks:
  - rule: a
    on: prompt:complete
    modify: { set: { /response: x } }
"#, &[r#"error:4:5: `modify` has no effect at `prompt:complete`; the event reports what has happened; use `message`, or an earlier event, such as `tool:pre`"#]),
    ("regex", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 'Bash' && tool_input.command.matches('rm (')
    deny: no
"#, &[r#"error:4:61: invalid regular expression: unclosed group"#]),
    ("other tool", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 'run_command'
    deny: no
"#, &[r#"error:4:24: unknown tool `run_command`; did you mean `Bash`?"#]),
    ("text condition", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name
    deny: no
"#, &[r#"error:4:11: expected true or false, found text; write a comparison, such as `tool_name == "Bash"`"#]),
    ("mcp key", r#"tools:
  mcp:
    tickets: { cmd: ticket-server }
hooks: []
"#, &[r#"error:3:16: unknown key `cmd`; did you mean `command`?"#]),
    ("timeout text", r#"hooks:
  - rule: a
    on: tool:pre
    deny: no
    timeout: 30s
"#, &[r#"error:5:14: invalid `timeout` `30s`: expected a number"#]),
    ("two docs", r#"hooks: []
---
hooks: []
"#, &[r#"error:3:1: a bundle is one document; remove the `---` before this"#]),
    ("inject at session:end", r#"hooks:
  - rule: a
    on: session:end
    inject: x
"#, &[r#"error:4:5: `inject` has no effect at `session:end`; use an earlier event, such as `prompt:submit`"#]),
    ("test data", r#"hooks:
  - rule: a
    on: tool:pre
    deny: no
tests:
  - name: x
    event: tool:pre
    data: { tool_nam: Bash, tool_input: {} }
    expect: { decision: deny }
"#, &[r#"error:6:5: unknown field `tool_nam` of `tool:pre` in `data`; did you mean `tool_name`?"#]),
    ("data.tool_nam", r#"hooks:
  - rule: a
    on: tool:pre
    when: data.tool_nam == 'Bash'
    deny: no
"#, &[r#"warning:4:16: unknown field `tool_nam` of `tool:pre`; did you mean `tool_name`?"#]),
    ("reversed", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 'Write' && tool_input.file_path < 5
    deny: no
"#, &[r#"error:4:56: `<` does not work with text and a number; for the length of a text, write `size(text)`"#]),
    ("events decl", r#"events: [tool pre]
hooks: []
"#, &[r#"error:1:10: invalid event name `tool pre`: contains a space or a control character; expected the form `tool:pre`"#]),
    ("unknown field of decl", r#"hooks:
  - rule: a
    on: deploy:start
    deny: no
"#, &[r#"error:3:5: unknown event `deploy:start`; declare an event of another program in the bundle: `events: [NAME]`"#]),
    ("empty when", r#"hooks:
  - rule: a
    on: tool:pre
    when:
    deny: no
"#, &[r#"error:4:5: `when` has no value; write a condition; without `when`, the hook always runs"#]),
    ("session key", r#"session:
  aproval_timeout: 60
hooks: []
"#, &[r#"error:2:3: unknown key `aproval_timeout`; did you mean `approval_timeout`?"#]),
    ("less indent", r#"hooks:
  - rule: a
    on: tool:pre
   deny: no
"#, &[r#"error:4:4: `deny` is indented less than `on` in the line above; indent both by 4 spaces"#]),
    ("missing dash space", r#"hooks:
  -rule: a
   on: tool:pre
   deny: no
"#, &[r#"error:2:3: an entry of a list needs a space after the dash; write `- rule: a`"#]),
    ("on list no brackets", r#"hooks:
  - rule: a
    on: tool:pre, tool:post
    deny: no
"#, &[r#"error:3:5: invalid event name `tool:pre, tool:post`: contains a space or a control character; expected the form `tool:pre`; write a list: `on: [tool:pre, tool:post]`"#]),
    ("ask default", r#"hooks:
  - rule: a
    on: tool:pre
    deny: no
    default: deny
"#, &[r#"error:5:5: rule error: `default` needs `ask`, which is missing"#]),
    ("size number", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == 'Bash' && tool_input.timeout.size() > 3
    deny: no
"#, &[r#"error:4:53: `size` does not work with a number"#]),
    ("negated", r#"hooks:
  - rule: a
    on: tool:pre
    when: not (tool_name == 'Bash')
    deny: no
"#, &[r#"error:4:11: unknown function `not`; did you mean `!`?"#]),
    ("yes no options", r#"hooks:
  - rule: a
    on: tool:pre
    ask: Go on?
    options: [Yes, No]
"#, &[r#"error:5:15: an option is a label, or an object with `label` and `effect`; in YAML, yes and no need quotes to be labels: "Yes", "No""#]),
];
