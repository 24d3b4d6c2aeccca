// A hook in JavaScript that is kept alive.
//
//     import { serve } from "./amplifier_hook.mjs";
//
//     serve(async (event, data) => {
//       if (JSON.stringify(data.tool_input ?? {}).includes("rm -rf")) return { action: "deny", reason: "no rm -rf" };
//     });
//
// The function gets the event's name and its data, and returns (or promises) an object as in schema/hook-result.schema.json, or nothing
// to go on. Several requests may be under way at a time.

import { createInterface } from "node:readline";

/** Answers every request with what the function returns, until there are no more. */
export async function serve(hook) {
  // What the hook prints is for people, and not an answer.
  console.log = console.info = console.debug = console.error;
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    respond(hook, JSON.parse(line));
  }
}

async function respond(hook, { id, event, data }) {
  let answer;
  try {
    answer = JSON.stringify({ id, result: await hook(event, data) });
  } catch (error) {
    console.error(error);
    answer = JSON.stringify({ id, error: String(error) });
  }
  process.stdout.write(`${answer}\n`);
}
