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
        self.signature = str(signature)

    # By default, a copy would contain only the text.
    def __reduce__(self):
        return type(self), (self.hook, self.event, self.signature), self.__dict__


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
    names = suggestions(event)
    if not names or event in _REPORTED:
        return
    _REPORTED.add(event)
    from logging import getLogger

    text = "Hook '%s' is registered for the unknown event '%s'; did you mean %s?"
    getLogger("amplifier_core.hooks").warning(text, hook, event, " or ".join(f"'{name}'" for name in names))


def suggestions(event):
    """Returns the known event that an unknown one or a pattern resembles, or all events of its kind. Events of other programs have kinds of
    their own, and no suggestions."""
    from difflib import get_close_matches

    from amplifier_core._native import EVENTS, HookRegistry

    kind, _, rest = event.lower().partition(":")
    if "*" in event:
        kinds = {name.partition(":")[0] for name in EVENTS.values()}
        return [f"{close}:{rest}" for close in get_close_matches(kind, kinds, 1, 0.7)]
    known = [*EVENTS.values(), HookRegistry.CONTEXT_PRE_COMPACT]
    close = get_close_matches(event.lower(), known, 1, 0.8)
    return close or [name for name in EVENTS.values() if name.startswith(f"{kind}:")]
