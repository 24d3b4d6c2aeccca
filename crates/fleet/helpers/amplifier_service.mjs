// A service for hooks of many machines, over NATS.
//
//     import { connect } from "@nats-io/transport-node";
//     import { serve } from "./amplifier_service.mjs";
//
//     const connection = await connect({ servers: "tls://nats.example.com", maxReconnectAttempts: -1 });
//     await serve(connection, "policy", async (event, data) => {
//       if (JSON.stringify(data.tool_input ?? {}).includes("rm -rf")) return { action: "deny", reason: "no rm -rf" };
//     });
//
// The function gets the event's name and its data, and returns (or promises) an object as in schema/hook-result.schema.json, or nothing to go on. Several
// requests may be under way at a time. A slow request is sent to all instances: one may get it twice.

import { headers } from "@nats-io/transport-node";

/** Answers every request with what the function returns, until the connection is closed. */
export async function serve(connection, service, hook) {
  const requests = [
    connection.subscribe(`hook.${service}.>`, { queue: "hooks" }),
    connection.subscribe(`hookall.${service}.>`),
  ];
  await Promise.all(requests.map(async (subscription) => {
    for await (const request of subscription) respond(hook, request);
  }));
}

async function respond(hook, request) {
  try {
    const { event, data } = request.json();
    request.respond(JSON.stringify(await hook(event, data)) ?? "");
  } catch (error) {
    console.error(error);
    const failure = headers();
    failure.set("Nats-Service-Error-Code", "500");
    failure.set("Nats-Service-Error", String(error).replace(/\s+/g, " "));
    request.respond("", { headers: failure });
  }
}
