"""A model server that follows a script: no network, no account, the same turns in each run."""

from .server import ModelServer
from .turns import Call, Exchange, Script, Text

__all__ = ["Call", "Exchange", "ModelServer", "Script", "Text"]
