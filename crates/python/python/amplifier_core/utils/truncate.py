"""Shorter and redacted copies of data, for logs."""

from __future__ import annotations

from typing import Any

__all__ = ["SENSITIVE_KEYS", "redact_secrets", "truncate_values"]

#: Keys with secrets, in small letters.
SENSITIVE_KEYS = frozenset(
    {
        "api-key",
        "api_key",
        "apikey",
        "auth",
        "authorization",
        "credential",
        "credentials",
        "password",
        "private_key",
        "privatekey",
        "secret",
        "token",
    }
)


def truncate_values(obj: Any, max_length: int = 180) -> Any:
    """Returns a copy of dicts and lists with texts of at most ``max_length`` characters, and a note of what is left out."""
    if isinstance(obj, str):
        left_out = len(obj) - max_length
        return f"{obj[:max_length]}... (truncated {left_out} chars)" if left_out > 0 else obj
    if isinstance(obj, dict):
        return {key: truncate_values(value, max_length) for key, value in obj.items()}
    if isinstance(obj, list):
        return [truncate_values(value, max_length) for value in obj]
    return obj


def redact_secrets(obj: Any, sensitive_keys: frozenset[str] = SENSITIVE_KEYS) -> Any:
    """Returns a copy of dicts and lists without the values of these keys, in any case. It looks at keys only: secrets in texts are for
    ``hooks-redaction`` and the audit log."""
    if isinstance(obj, dict):
        return {
            key: "[REDACTED]" if isinstance(key, str) and key.lower() in sensitive_keys else redact_secrets(value, sensitive_keys)
            for key, value in obj.items()
        }
    if isinstance(obj, list):
        return [redact_secrets(value, sensitive_keys) for value in obj]
    return obj
