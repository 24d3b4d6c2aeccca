#!/bin/sh
# Gets an event as JSON on standard input. Exit 0 with a JSON answer, or with nothing to go on; exit 2 with a reason on standard error to
# deny; anything else is a failure.
event=$(cat)
case $event in
    *'\t'*) echo '{"action": "inject_context", "context_injection": "The file has a tab in it; please use spaces."}' ;;
esac
