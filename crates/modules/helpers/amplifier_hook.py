"""A hook in Python that is kept alive.

    import amplifier_hook

    def decide(event, data):
        if "rm -rf" in str(data.get("tool_input")):
            return {"action": "deny", "reason": "no rm -rf"}

    amplifier_hook.serve(decide)

The function gets the event's name and its data, and returns a dict as in schema/hook-result.schema.json, or None to go on.
"""

import json
import sys
import traceback


def serve(function):
    """Answers every request with what the function returns, until there are no more."""
    # What the hook prints is for people, and not an answer.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            result = function(request["event"], request["data"])
            answer = json.dumps({"id": request["id"], "result": result}, allow_nan=False)
        except Exception as error:
            traceback.print_exc()
            answer = json.dumps({"id": request["id"], "error": f"{type(error).__name__}: {error}"})
        print(answer, file=answers, flush=True)
