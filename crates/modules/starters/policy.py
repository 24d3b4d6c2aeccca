"""A policy in Python. It is started once, and gets every event that the bundle names."""

import amplifier_hook


def decide(event, data):
    """Returns what to do about an event, or nothing to go on."""
    if event != "tool:pre":
        return None
    path = str(data.get("tool_input", {}).get("file_path", ""))
    if "production" in path.split("/"):
        return {"action": "deny", "reason": "production files are deployed, not written"}
    return None


amplifier_hook.serve(decide)
