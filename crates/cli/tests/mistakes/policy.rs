//! Mistakes that had no message: options of modules, patterns as texts, and actions that come too late.

use super::Mistake;

#[rustfmt::skip] // A table, with YAML as it is written.
pub(super) const POLICY: &[Mistake] = &[
    ("module: tool in small letters", r#"hooks:
  - module: hooks-bash-guard
    config:
      tools: [bash]
"#, &[r#"error:4:15: `tools[0]`: unknown tool `bash`; did you mean `Bash`?"#]),
    ("module: tool of another program", r#"hooks:
  - module: hooks-linter
    config:
      tools: [Write, notebook]
"#, &[r#"warning:4:22: `tools[1]`: unknown tool `notebook`; known tools are Read, Write, Edit, MultiEdit, Bash, Glob, Grep, Todo, Task; a tool of an MCP server is `mcp__SERVER__TOOL`"#]),
    ("module: no such tool pattern", r#"hooks:
  - module: hooks-approval
    config:
      rules:
        - { tool: "bash*", action: deny }
"#, &[r#"warning:5:20: `rules[0].tool`: no known tool matches `bash*`; known tools are Read, Write, Edit, MultiEdit, Bash, Glob, Grep, Todo, Task; capital letters count"#]),
    ("module: group of a pattern", r#"hooks:
  - module: hooks-redaction
    config:
      patterns:
        key: 'KEY-(?<secert>\d{6})'
"#, &[r#"error:5:22: `config` of `hooks-redaction`: `patterns.key`: unknown group `secert`; did you mean `secret`?"#]),
    ("module: linter without the file", r#"hooks:
  - module: hooks-linter
    config:
      linters:
        - files: "*.py"
          command: [sh, check]
"#, &[r#"warning:6:11: `linters[0]`: the `command` has no `{file}`, so the linter is not given the file; write `command: [sh, check, "{file}"]`"#]),
    ("module: linter with the file in a map", r#"hooks:
  - module: hooks-linter
    config:
      linters:
        - files: "*.py"
          command: [sh, check one, {file}]
"#, &[r#"error:6:11: `config` of `hooks-linter`: `linters[0]`: `command` has `{file}` without quotes; write `"{file}"`"#]),
    ("module: linter with the file in other words", r#"hooks:
  - module: hooks-linter
    config:
      linters:
        - files: "*.py"
          command: [sh, check one, "{ file }"]
"#, &[r#"warning:6:11: `linters[0]`: the `command` has no `{file}`, so the linter is not given the file; write `command: [sh, "check one", "{file}"]`"#]),
    ("module: linter with the file in braces", r#"hooks:
  - module: hooks-linter
    config:
      linters:
        - files: "*.py"
          command: [sh, check, {{ file }}]
"#, &[r#"error:6:32: a text that begins with `{{` needs quotes; write each text with a brace in quotes, as in `"{file}"`"#]),
    ("module: linter with a pattern outside the workspace", r#"hooks:
  - module: hooks-linter
    config:
      linters:
        - files: /src/**/*.py
          command: [sh, check, "{file}"]
"#, &[r#"warning:5:18: `linters[0]`: the pattern `/src/**/*.py` is not in the workspace, so no file matches; write `src/**/*.py` for a folder of the workspace"#]),
    ("module: pattern of a rule with a field", r#"hooks:
  - module: hooks-approval
    config:
      rules:
        - { tool: "mcp__*", field: file_path, pattern: "infra/", action: ask }
"#, &[r#"error:5:47: `config` of `hooks-approval`: `rules[0]`: `pattern`: the pattern `infra/` never matches: it ends with `/`, so no file matches; write `infra/**`"#]),
    ("module: guard with a condition on one of its events", r#"hooks:
  - module: hooks-redaction
    when: tool_name == "Bash"
"#, &[r#"warning:3:5: the condition reads a field that `prompt:submit`, `provider:response` does not have, so it passes unchecked; remove the condition, or name the events with `on`"#]),
    ("module: guard as an observer", r#"hooks:
  - module: hooks-redaction
    role: observer
"#, &[r#"warning:3:5: an observer has no effect: `hooks-redaction` would change and deny nothing; remove `role`"#]),
    ("module: linter whose program is missing", r#"hooks:
  - module: hooks-linter
    config:
      linters:
        - files: "*.py"
          command: [rufff, check, "{file}"]
"#, &[r#"warning:6:21: `linters[0]`: the program `rufff` is not in `PATH`, so nothing is checked; install it, or correct its name"#]),
    ("module: linter with an ending as its pattern", r#"hooks:
  - module: hooks-linter
    config:
      linters:
        - files: ".py"
          command: [sh, "{file}"]
"#, &[r#"warning:5:19: `linters[0]`: the pattern `.py` matches only a file of that name; write `*.py`"#]),
    ("changes with a negated pattern", r#"hooks:
  - rule: a
    on: tool:pre
    when: changes("!infra/**")
    deny: no
"#, &[r#"error:4:20: the pattern `!infra/**` never matches: it begins with `!`, which excludes nothing here; remove the `!`, and negate the condition"#]),
    ("module: pattern that never matches", r#"hooks:
  - module: hooks-linter
    config:
      linters:
        - files: ./src/
          command: [sh, check, "{file}"]
"#, &[r#"error:5:11: `config` of `hooks-linter`: `linters[0]`: `files`: the pattern `./src/` never matches: it begins with `./`; write `src/`"#]),
    ("module: path of a rule that never matches", r#"hooks:
  - module: hooks-approval
    config:
      rules:
        - { tool: Write, pattern: ~/work/**, action: deny }
"#, &[r#"error:5:26: `config` of `hooks-approval`: `rules[0]`: `pattern`: the pattern `~/work/**` never matches: it begins with `~`, which is not the home folder here; write an absolute path"#]),
    ("module: several mistakes", r#"hooks:
  - module: hooks-approval
    config:
      defalt: deny
      timeout: -1
      rules:
        - { tool: Bash, pattern: "rm *", acton: deny }
        - { tool: Write, pattern: infra/, action: ask }
        - { tool: Edit, pattern: x, action: forbid }
"#, &[r#"error:4:7: `config` of `hooks-approval`: unknown option `defalt`; did you mean `default`?"#, r#"error:8:9: `config` of `hooks-approval`: `rules[1]`: rule error: `timeout` is `-1`: expected seconds, 0 or more"#, r#"error:8:26: `config` of `hooks-approval`: `rules[1]`: `pattern`: the pattern `infra/` never matches: it ends with `/`, so no file matches; write `infra/**`"#, r#"error:8:43: `config` of `hooks-approval`: unknown option `acton`; did you mean `action`?"#, r#"error:9:45: `config` of `hooks-approval`: `rules[2].action`: unknown variant `forbid`, expected one of `allow`, `ask`, `deny`"#]),
    ("module: several patterns", r#"hooks:
  - module: hooks-redaction
    config:
      secrets: maybe
      patterns:
        one: '('
        two: 'x*'
        three: 'x-(?<scret>y)'
"#, &[r#"error:4:7: `config` of `hooks-redaction`: `secrets`: invalid type: string "maybe", expected `true` or `false`"#, r#"error:6:9: `config` of `hooks-redaction`: `patterns.one`: invalid regular expression: unclosed group"#, r#"error:7:9: `config` of `hooks-redaction`: `patterns.two` matches the empty text; change the pattern"#, r#"error:8:22: `config` of `hooks-redaction`: `patterns.three`: unknown group `scret`; did you mean `secret`?"#]),
    ("module: several linters", r#"hooks:
  - module: hooks-linter
    config:
      linters:
        - { files: "*.py", command: [] }
        - { files: [], command: [sh, "{file}"] }
        - { files: "*.go", command: [sh, "{file}"], exit_codes: [0] }
"#, &[r#"error:5:28: `config` of `hooks-linter`: `linters[0]`: `command` is empty: name a program"#, r#"error:6:13: `config` of `hooks-linter`: `linters[1]`: `files` is empty: name at least one"#, r#"error:7:53: `config` of `hooks-linter`: `linters[2]`: `exit_codes` has 0: an exit code for findings is between 1 and 255"#]),
    ("swapped matches", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == "Bash" && matches("rm -rf", tool_input.command)
    deny: no
"#, &[r#"warning:4:34: `matches` looks for `tool_input.command` in the text "rm -rf"; the arguments are probably swapped; write `tool_input.command.matches(r"rm -rf")`"#]),
    ("swapped path_matches", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == "Write" && path_matches("infra/**", tool_input.file_path)
    deny: no
"#, &[r#"warning:4:35: `path_matches` looks for `tool_input.file_path` in the text "infra/**"; the arguments are probably swapped; write `path_matches(tool_input.file_path, ["infra/**"])`"#]),
    ("swapped contains", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == "Bash" && "push".contains(tool_input.command)
    deny: no
"#, &[r#"warning:4:41: `contains` looks for `tool_input.command` in the text "push"; the arguments are probably swapped; write `tool_input.command.contains("push")`"#]),
    ("path compared with a glob", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == "Write" && tool_input.file_path == "infra/**"
    deny: no
"#, &[r#"error:4:59: `infra/**` is a pattern, and is compared as a text; write `path_matches(tool_input.file_path, ["infra/**"])`, or `changes(["infra/**"])` for commands, too"#]),
    ("path in a list with a glob", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == "Write" && tool_input.file_path in ["a", "*.tf"]
    deny: no
"#, &[r#"error:4:65: `*.tf` is a pattern, and is compared as a text; write `path_matches(tool_input.file_path, ["*.tf"])`, or `changes(["*.tf"])` for commands, too"#]),
    ("tool compared with a pattern", r#"hooks:
  - rule: a
    on: tool:pre
    when: tool_name == "mcp__*"
    deny: no
"#, &[r#"error:4:24: `mcp__*` is a pattern, and is compared as a text; write `tool_name.startsWith("mcp__")`"#]),
    ("ask after the tool", r#"hooks:
  - rule: a
    on: tool:post
    when: tool_name == "Write"
    ask: Go on?
"#, &[r#"warning:5:5: `ask` at `tool:post` comes after the tool has run, and decides if the model reads the result; to ask before the tool runs, write `on: tool:pre`"#]),
    ("default of another language", r#"hooks:
  - rule: a
    on: tool:pre
    deny: "no {{ tool_input.path ?? 'path' }}"
"#, &[r#"error:4:34: syntax error, unknown operator `??`; write `tool_input.path != null ? tool_input.path : 'path'`"#]),
    ("mistake in expect", r#"hooks:
  - rule: a
    on: tool:pre
    deny: no
tests:
  - name: one
    event: tool:pre
    expect: { decison: deny }

  - name: two
    event: tool:pre
    expected: { decision: deny }
"#, &[r#"error:8:15: unknown key `decison`; did you mean `decision`?"#, r#"error:12:5: unknown key `expected`; did you mean `expect`?"#]),
    ("deny: false", r#"hooks:
  - rule: a
    on: tool:pre
    deny: false
"#, &[r#"error:4:5: `deny: false` is a text, and does not switch anything; remove `deny`, or set `enabled: false` to switch the rule off"#]),
    ("ask: true", r#"hooks:
  - rule: a
    on: tool:pre
    ask: true
"#, &[r#"warning:4:5: `ask: true` is a text, and does not switch anything; write the text that is shown: `ask: …`"#]),
    ("result field of another program", r#"hooks:
  - rule: a
    on: tool:post
    when: tool_name == "Bash" && tool_result.stdout.contains("x")
    inject: x
"#, &[r#"error:4:46: unknown field `stdout` of the result of `Bash`; did you mean `output`?"#]),
    ("result field without a tool", r#"hooks:
  - rule: a
    on: tool:post
    when: tool_result.stdout != null
    inject: x
"#, &[r#"warning:4:23: unknown field `stdout` of the tools' data; did you mean `output`?"#]),
    ("unknown result field", r#"hooks:
  - rule: a
    on: tool:post
    when: tool_name == "Write" && tool_result.bytes > 3
    inject: x
"#, &[r#"error:4:47: unknown field `bytes` of the result of `Write`; expected one of `error`, `file_path`, `output`"#]),
    ("changes at another event", r#"hooks:
  - rule: a
    on: prompt:submit
    when: changes("infra/**")
    deny: no
"#, &[r#"error:4:11: unknown field `tool_input` of `prompt:submit`; it is a field of `tool:pre`, `tool:post`"#]),
    ("changes with a folder", r#"hooks:
  - rule: a
    on: tool:pre
    when: changes(["infra/", "./src/**"])
    deny: no
"#, &[r#"error:4:21: the pattern `infra/` never matches: it ends with `/`, so no file matches; write `infra/**`"#, r#"error:4:31: the pattern `./src/**` never matches: it begins with `./`; write `src/**`"#]),
    ("changes with two arguments", r#"hooks:
  - rule: a
    on: tool:pre
    when: changes(tool_input.file_path, "infra/**")
    deny: no
"#, &[r#"error:4:11: `changes` takes 1 argument, not 2"#]),
];
