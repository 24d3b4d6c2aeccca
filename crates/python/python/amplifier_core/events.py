"""The names of all known events: ``TOOL_PRE`` is ``"tool:pre"``, and so on."""

from amplifier_core._native import ALL_EVENTS, EVENTS

__all__ = ["ALL_EVENTS", *EVENTS]

globals().update(EVENTS)


def __dir__():
    return list(__all__)
