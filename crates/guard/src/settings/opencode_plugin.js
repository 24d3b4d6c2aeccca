// amplifier-guard: written by `amplifier guard install`, which replaces this file. Other changes are lost.
const hooks = {};

// Throws unless the guard says clearly that the call may go on. The client itself has no time limit.
const decide = (name, cwd, input, output) =>
  new Promise((resolve, reject) => {
    const { line, limit } = hooks[name];
    const { spawn } = process.getBuiltinModule("node:child_process");
    // A repository can set variables of the agent's environment, so the guard gets none.
    const child = spawn("/bin/sh", ["-c", line], { env: {}, stdio: "pipe" });
    const deny = (reason) => {
      clearTimeout(timer);
      child.kill("SIGKILL");
      // Its children may hold them open, and the client would wait for them at its end.
      for (const stream of child.stdio) stream?.destroy();
      reject(new Error(reason));
    };
    const timer = setTimeout(() => deny("amplifier guard: no decision within the time limit"), limit);
    const texts = { stdout: "", stderr: "" };
    for (const stream of ["stdout", "stderr"]) {
      child[stream].setEncoding("utf8").on("data", (text) => {
        texts[stream] += text;
      });
    }
    child.on("error", (error) => deny(`amplifier guard: the hook cannot be started: ${error.message}`));
    child.on("close", (code) => {
      let answer = {};
      try {
        answer = JSON.parse(texts.stdout) ?? {};
      } catch {
        // Without a clear answer, the call is denied.
      }
      if (code !== 0 || answer.decision !== "proceed") {
        return deny(String(answer.reason || texts.stderr.trim() || "amplifier guard: this call is denied"));
      }
      clearTimeout(timer);
      resolve(answer);
    });
    // A program that has answered reads no further.
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify({ hook_event_name: name, cwd, input, output }));
  });

export const AmplifierGuard = async ({ directory }) => ({
  "chat.message": async (input, output) => {
    await decide("chat.message", directory, input, output);
  },
  "tool.execute.before": async (input, output) => {
    const answer = await decide("tool.execute.before", directory, input, output);
    if (answer.args) {
      // The client ignores another object.
      for (const key of Object.keys(output.args)) delete output.args[key];
      Object.assign(output.args, answer.args);
    }
  },
  "tool.execute.after": async (input, output) => {
    const answer = await decide("tool.execute.after", directory, input, output);
    if (answer.output !== undefined) output.output = answer.output;
    if (answer.context) output.output = `${output.output ?? ""}\n\n${answer.context}`;
  },
  event: async ({ event }) => {
    const sessionID = event.properties?.sessionID ?? event.properties?.info?.id;
    if (sessionID && (event.type === "session.created" || event.type === "session.idle")) {
      // Nothing waits for a decision here.
      await decide(event.type, directory, { sessionID }, {}).catch(() => {});
    }
  },
});
