"""What a program does with the Python client. The last line says that all of it held."""

import sys
from pathlib import Path

from amplifier_client import Client, ServerError

WORKSPACE, URL, VIEWER = sys.argv[1:]


def check(found: object, expected: object) -> None:
    if found != expected:
        raise SystemExit(f"{found!r} is not {expected!r}")


def refused(status: int, code: str, ask: object) -> ServerError:
    try:
        ask()  # type: ignore[operator]
    except ServerError as error:
        check((error.status, error.code), (status, code))
        return error
    raise SystemExit(f"nothing was refused with {code}")


client = Client.local()
check(client.me(), {"name": "ada", "role": "admin"})
check(client.sessions(), [])
session = client.start(prompt="Make it", workspace=WORKSPACE)
check((session["runs_in"], session["connected"]), ("server", True))

# Its questions come on its own stream.
question, closed = None, None
for message in client.stream(session=session["id"], after=0):
    if message["type"] == "hello":
        check(message["me"]["name"], "ada")
        question = next(iter(message["approvals"]), None)
    elif message["type"] == "approval_requested":
        question = message["approval"]
    if question and closed is None:
        check((question["session"], question["prompt"], question["preview"]["body"][0]["text"]), (session["id"], "Run `touch made`?", "touch made"))
        check(client.approvals(), [question])
        refused(403, "nonce", lambda: client.answer({**question, "nonce": "wrong"}, "Allow once"))
        refused(422, "invalid_option", lambda: client.answer(question, "Yes"))
        other = {"operations": ["run *"], "scope": "user", "label": "", "explanation": ""}
        refused(422, "invalid_option", lambda: client.answer(question, "Allow always", rule=other))
        check(client.answer(question, "Allow once")["granted"], True)
        second = refused(409, "answered", lambda: client.answer(question, "Deny"))
        check(second.by, {"name": "ada", "via": "api"})
        question, closed = None, ""
    if message["type"] == "approval_closed":
        closed = message["id"]
        check((message["decided"]["granted"], message["decided"]["by"]["via"]), (True, "api"))
    if message["type"] == "records" and any(record["event"] == "prompt:complete" for record in message["records"]):
        break
check(bool(closed), True)
check(client.approvals(), [])

# What is known of it when it waits for the next prompt.
while client.session(session["id"])["state"] != "idle":
    client.records(after=client.records()["cursor"], wait=0.1)
decided = client.history(session=session["id"])
check([(one["granted"], one["by"]) for one in decided], [(True, {"name": "ada", "via": "api"})])
check([one["id"] for one in client.sessions()], [session["id"]])
check(any(item["event"] == "tool:pre" for item in client.timeline(session["id"])["items"]), True)

rule = client.add_rule(scope="user", hook="confirm", pattern="Run `rm *`?", decision="deny")
check([one["id"] for one in client.rules()["rules"]], [rule["id"]])
client.revoke(rule["id"])
check(client.rules()["rules"], [])
unreadable = [one["file"] for one in client.rules()["unreadable"]]
check([Path(file).parent.name for file in unreadable], ["0" * 32])
refused(404, "not_found", lambda: client.revoke(rule["id"]))
project = client.add_rule(scope="project", project=WORKSPACE + "/.", hook="confirm", pattern="Run `ls`?", decision="allow")
check([one["id"] for one in client.rules()["rules"]], [project["id"]])
client.revoke(project["id"])
refused(422, "invalid_rule", lambda: client.add_rule(scope="project", project=WORKSPACE + "/none", hook="confirm", pattern="x", decision="allow"))

check("confirm" in [hook["hook"] for hook in client.hooks()], True)
check(client.test("hooks:\n  - rule: never\n    on: tool:pre\n    deny: never\n")["failed"], 0)
tried = client.try_event("tool:pre", {"tool_name": "Bash", "tool_input": {"command": "ls"}}, workspace=WORKSPACE)
check((tried["decision"], [hook["hook"] for hook in tried["hooks"]]), ("ask_user", ["confirm"]))
check(client.try_event("tool:pre", bundle="hooks:\n  - rule: never\n    on: tool:pre\n    deny: never\n")["denied_by"], "never")
refused(422, "body", lambda: client.try_event("tool"))
check([one["result"] for one in client.reload()["results"]], ["unchanged"])
audit = client.verify()
check((audit["sound"], audit["problems"], audit["verified_to"] > 0), (True, [], True))
check(client.audit()["sound"], True)
check(client.proof(0)["seq"], 0)
refused(409, "busy", lambda: [client.prompt(session["id"], "Make it") for _ in range(2)])
client.interrupt(session["id"])
client.end(session["id"])

refused(401, "unauthenticated", lambda: Client(URL, "wrong").sessions())
refused(401, "unauthenticated", lambda: next(iter(Client(URL, "wrong").stream())))
check(Client(URL, VIEWER).me(), {"name": "watcher", "role": "viewer"})
refused(403, "role", lambda: Client(URL, VIEWER).start())
refused(404, "not_found", lambda: client.session("../../health"))
refused(0, "unreachable", lambda: Client("http://127.0.0.1:9", VIEWER).me())
refused(0, "no_server", lambda: Client.local(WORKSPACE))
print("All of it held.")
