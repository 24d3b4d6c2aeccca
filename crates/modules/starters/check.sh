#!/bin/sh
# Runs after a file was written: AMPLIFIER_PATH is the file, AMPLIFIER_WORKSPACE the folder of the project. The event is on standard input, as
# JSON. Exit 0 with a JSON answer, or with nothing to continue; exit 2 with a reason on standard error to deny; anything else is a failure.
[ -f "$AMPLIFIER_PATH" ] || exit 0
lines=$(grep -n "$(printf '\t')" "$AMPLIFIER_PATH" | cut -d: -f1 | tr '\n' ' ')
[ -z "$lines" ] || echo "{\"action\": \"inject_context\", \"context_injection\": \"Tabs in lines: $lines; please use spaces.\"}"
