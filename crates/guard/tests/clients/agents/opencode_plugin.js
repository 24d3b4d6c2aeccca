// The plugin of the tests: it gives each event to the test hook and applies the answer.
const commands = /* COMMANDS */ {};

const ask = async (event, payload) => {
  const child = Bun.spawn(["/bin/sh", "-c", commands[event]], { stdin: new Blob([JSON.stringify(payload)]), stdout: "pipe", stderr: "ignore" });
  const text = await new Response(child.stdout).text();
  const code = await child.exited;
  if (code !== 0) throw new Error(`the hook exited with code ${code}`);
  const answer = text.trim() === "" ? {} : JSON.parse(text);
  if (answer.deny) throw new Error(answer.deny);
  return answer;
};

export const TestHooks = async () => ({
  "tool.execute.before": async (input, output) => {
    const answer = await ask("tool.execute.before", { ...input, args: output.args });
    if (answer.args) Object.assign(output.args, answer.args);
  },
  "tool.execute.after": async (input, output) => {
    const answer = await ask("tool.execute.after", { ...input, output: output.output });
    if (answer.output) output.output = answer.output;
    if (answer.append) output.output += `\n${answer.append}`;
  },
  "chat.message": async (input, output) => {
    await ask("chat.message", { ...input, parts: output.parts });
  },
});
