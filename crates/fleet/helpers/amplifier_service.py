"""A service for hooks of many machines, over NATS.

    import amplifier_service

    def decide(event, data):
        if "rm -rf" in str(data.get("tool_input")):
            return {"action": "deny", "reason": "no rm -rf"}

    amplifier_service.serve(decide, "policy", servers="tls://nats.example.com")

The function gets the event's name and its data, and returns a dict as in schema/hook-result.schema.json, or None to go on. It can be a coroutine. Further
arguments go to `nats.connect` of the package nats-py, such as `nkeys_seed`. A slow request is sent to all instances: one may get it twice.
"""

import asyncio
import inspect
import json
import traceback

import nats


def serve(function, service, servers, **options):
    """Answers every request with what the function returns, until the program ends."""
    asyncio.run(run(function, service, servers, **options))


async def run(function, service, servers, **options):
    """The same, in an event loop that is running."""
    options = {"max_reconnect_attempts": -1, **options}
    connection = await nats.connect(servers, **options)
    tasks = set()

    async def start(request):
        # The next request does not wait for this one.
        task = asyncio.create_task(respond(connection, function, request))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    await connection.subscribe(f"hook.{service}.>", queue="hooks", cb=start)
    await connection.subscribe(f"hookall.{service}.>", cb=start)
    await connection.flush()
    try:
        await asyncio.Event().wait()
    finally:
        await connection.drain()


async def respond(connection, function, request):
    headers = None
    try:
        call = json.loads(request.data)
        if inspect.iscoroutinefunction(function):
            result = await function(call["event"], call["data"])
        else:
            result = await asyncio.to_thread(function, call["event"], call["data"])
        answer = json.dumps(result, allow_nan=False).encode()
    except Exception as error:
        traceback.print_exc()
        text = " ".join(f"{type(error).__name__}: {error}".split())
        answer, headers = b"", {"Nats-Service-Error-Code": "500", "Nats-Service-Error": text}
    await connection.publish(request.reply, answer, headers=headers)
