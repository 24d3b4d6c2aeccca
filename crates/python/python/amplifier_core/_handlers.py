"""Checks at registration: the parameters of a handler, and the name of its event."""

# Few imports: every program that registers a handler imports this file.
import types

#: The flag of a function with ``*args``.
_VARARGS = 0x04

#: The unknown events that were reported.
_REPORTED = set()


class SignatureError(TypeError):
    """A handler cannot be called with an event and its data."""

    def __init__(self, hook, event, signature):
        super().__init__(
            f"cannot register hook `{hook}` for `{event}`: it takes `{signature}`, but is called with `(event, data)`; change its parameters"
        )
        self.hook = hook
        self.event = event


def check(handler, hook, event):
    """Raises :class:`SignatureError` if a call of the handler would certainly fail."""
    if not _takes_two(handler):
        from inspect import signature

        raise SignatureError(hook, event, signature(handler, follow_wrapped=False))


def _takes_two(handler):
    function, given = handler, 2
    if not isinstance(handler, (types.FunctionType, types.MethodType, type)):
        # An object is called through its class.
        function, given = getattr(type(handler), "__call__", None), 3
    if isinstance(function, types.MethodType):
        function, given = function.__func__, given + 1
    if not isinstance(function, types.FunctionType):
        return _binds(handler)
    # Not by `inspect`, which is slow to import.
    code, defaults, named = function.__code__, function.__defaults__ or (), function.__kwdefaults__ or {}
    needed = code.co_argcount - len(defaults)
    only_named = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    takes_enough = given <= code.co_argcount or code.co_flags & _VARARGS
    return needed <= given and takes_enough and all(name in named for name in only_named)


def _binds(handler):
    """Checks a callable that is not written as a function: a class, a partial, a builtin."""
    from inspect import signature

    try:
        signature(handler, follow_wrapped=False).bind("", {})
    except ValueError:
        # A builtin without a known signature.
        return True
    except TypeError:
        return False
    return True


def warn_unknown(event, hook):
    """Warns once about an unknown event that is probably a mistake."""
    nearest = suggestion(event)
    if nearest is None or event in _REPORTED:
        return
    _REPORTED.add(event)
    from logging import getLogger

    text = "Hook '%s' is registered for the unknown event '%s'; did you mean '%s'?"
    getLogger("amplifier_core.hooks").warning(text, hook, event, nearest)


def suggestion(event):
    """Returns the known event that an unknown one or a pattern resembles. Others are events of other programs; those have kinds of their own."""
    from difflib import get_close_matches

    from amplifier_core._native import EVENTS

    known = list(EVENTS.values())
    kind, _, rest = event.lower().partition(":")
    if "*" in event:
        close = get_close_matches(kind, {name.partition(":")[0] for name in known}, 1, 0.7)
        return f"{close[0]}:{rest}" if close else None
    of_kind = [name for name in known if name.startswith(f"{kind}:")]
    close = get_close_matches(event.lower(), known, 1, 0.8) or get_close_matches(event.lower(), of_kind, 1, 0.0)
    return close[0] if close else None
