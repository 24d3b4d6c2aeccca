"""The test hook: it records each payload and then behaves, or misbehaves, as the scenario says.

    hook.py FOLDER EVENT

`FOLDER/behaviors.json` has one behavior per event; `FOLDER/calls.jsonl` gets one line per call. Standard library only.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def main() -> int:
    folder, event = Path(sys.argv[1]), sys.argv[2]
    payload = sys.stdin.buffer.read().decode("utf-8", "replace")
    with open(folder / "calls.jsonl", "a") as calls:
        calls.write(json.dumps({"event": event, "cwd": os.getcwd(), "at": time.time(), "payload": payload}) + "\n")
    behavior = json.loads((folder / "behaviors.json").read_text()).get(event)
    if behavior is None or behavior.get("when", "") not in payload:
        return 0
    if behavior.get("hold"):
        # This child keeps the standard output of the hook open after the hook has ended.
        subprocess.Popen(["sleep", str(behavior["hold"])], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stdout = behavior.get("stdout", "")
    if behavior.get("merge") or behavior.get("replace"):
        data = json.loads(payload)["data"]
        for key, value in behavior.get("merge", {}).items():
            data[key] = data[key] | value
        for old, new in behavior.get("replace", {}).items():
            data["tool_result"] = json.loads(json.dumps(data["tool_result"]).replace(old, new))
        stdout = json.dumps({"action": "modify", "data": data})
    try:
        sys.stdout.write(stdout)
        sys.stdout.flush()
        sys.stderr.write(behavior.get("stderr", ""))
        sys.stderr.flush()
    except BrokenPipeError:
        # The client stopped reading; its decision is made.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if behavior.get("sleep"):
        time.sleep(behavior["sleep"])
    if behavior.get("signal"):
        os.kill(os.getpid(), getattr(signal, behavior["signal"]))
    return behavior.get("exit", 0)


sys.exit(main())
