"""``python -m amplifier_core.validation MODULE``.

Exit codes: 0 no errors, 1 errors, 2 not checked.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from amplifier_core.validation import Limits, Report, validate


def main(arguments: list[str] | None = None) -> int:
    """Checks the module in the arguments, prints the report and returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    import asyncio

    limits = Limits(timeout=options.timeout, slow=options.slow)
    with _aside():
        try:
            report = asyncio.run(validate(options.module, options.config, limits))
        except SystemExit as end:
            print(f"the module raised SystemExit({end.code!r}) and was not checked", file=sys.stderr)
            return 1
    if options.json:
        print(json.dumps(report.to_dict(), indent=2))
    else:
        # Names of hooks and data may contain characters that the terminal cannot show.
        encoding = sys.stdout.encoding or "utf-8"
        print(str(report).encode(encoding, "backslashreplace").decode(encoding))
    return _code(report, options.deny_warnings)


@contextlib.contextmanager
def _aside() -> Iterator[None]:
    """Redirects the output of the module and its programs to standard error."""
    with contextlib.ExitStack() as after:
        with contextlib.suppress(OSError):  # One of the two may be closed.
            kept = os.dup(1)
            after.callback(os.close, kept)
            after.callback(os.dup2, kept, 1)
            os.dup2(2, 1)
        # Output that bypassed `sys.stdout` may still be buffered.
        after.callback(print, end="", flush=True)
        with contextlib.redirect_stdout(sys.stderr):
            yield


def _code(report: Report, deny_warnings: bool) -> int:
    if any(finding.code == "load" for finding in report.findings):
        return 2
    return 0 if report.ok and not (deny_warnings and report.warnings) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m amplifier_core.validation",
        description="Check a hook module. Its hooks are actually called: their side effects happen.",
        epilog="Exit codes: 0 no errors, 1 errors, 2 not checked.",
    )
    parser.add_argument("module", help="module: an installed name, an import path, a file or a package folder")
    parser.add_argument("--config", type=_config, default={}, metavar="JSON", help="configuration of the module")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--deny-warnings", action="store_true", help="exit with 1 also for warnings")
    parser.add_argument("--slow", type=_seconds, default=Limits.slow, metavar="SECONDS", help="threshold for slow calls (%(default)s)")
    about = "time limit of one call, unless the hook has a shorter one (%(default)s)"
    parser.add_argument("--timeout", type=_seconds, default=Limits.timeout, metavar="SECONDS", help=about)
    return parser


def _config(text: str) -> dict[str, Any]:
    try:
        config = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"invalid JSON: {error}") from None
    if not isinstance(config, dict):
        raise argparse.ArgumentTypeError("expected a JSON object")
    return config


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"invalid seconds `{text}`; expected a number above 0")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
