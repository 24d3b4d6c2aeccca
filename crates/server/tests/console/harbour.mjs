// What real sessions work on, in tests and in pictures: the files of a harbour, hooks that guard them, and what a model does about a task.

export const BUNDLE = `
hooks:
  - rule: house-style
    on: prompt:submit
    inject: "In this project, limits are written with their unit in the name, and every change of them is in CHANGES.md."
  - rule: secrets-guard
    on: tool:pre
    when: tool_name == "Bash" && tool_input.command.contains("STAGING_TOKEN")
    deny: The command sends what looks like a secret to another machine.
  - rule: production-guard
    on: tool:pre
    when: tool_name in ["Write", "Edit"] && path_matches(tool_input.file_path, ["config/production.toml"])
    ask: Change the production configuration?
    reason: The deployment reads this file within a minute.
    options: [Allow once, Allow always, Deny]
  - rule: watch-the-budget
    on: tool:post
    when: tool_name == "Bash"
    message: 80 % of the time for this task is used.
    level: warning
`;
const PRODUCTION = '[server]\nlisten = "0.0.0.0:8443"\nworkers = 4\nkeep_alive_s = 75\n\n[limits]\nrequests_a_minute = 600\nbody_kib = 512\n\n[log]\nlevel = "info"\n';
export const FILES = { 'config/production.toml': PRODUCTION, 'CHANGES.md': '# Changes\n', 'src/limits.rs': 'pub const REQUESTS_A_MINUTE: u32 = 600;\n' };
export const RAISE = [
  { text: 'I look at how the limits are set now.', tools: [{ name: 'Grep', input: { pattern: 'requests_a_minute', path: '.' } }] },
  { text: 'First I ask staging what it can take.', tools: [{ name: 'Bash', input: { command: 'curl -H "Authorization: $STAGING_TOKEN" https://staging.harbour.example/limits' } }] },
  { text: 'That is not allowed, so I measure it here.', tools: [{ name: 'Bash', input: { command: 'echo "sustained: 6,240 requests a minute on 16 workers"' } }] },
  { text: 'Sixteen workers sustain 6,240 requests a minute. I raise both settings.', tools: [{ name: 'Edit', input: { file_path: 'config/production.toml', old_string: 'workers = 4\nkeep_alive_s = 75\n\n[limits]\nrequests_a_minute = 600', new_string: 'workers = 16\nkeep_alive_s = 15\n\n[limits]\nrequests_a_minute = 6000' } }] },
  { text: 'The limit is 6,000 requests a minute now.' },
];
