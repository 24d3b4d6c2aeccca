from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from contextvars import ContextVar
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Final, Literal, Protocol, TypeAlias, TypeVar, final, overload

from typing_extensions import Self, disjoint_base

__all__ = [
    "ALL_EVENTS",
    "EVENTS",
    "AgentSession",
    "ApprovalRequest",
    "AuditLog",
    "AuditReport",
    "Bundle",
    "BundleHook",
    "BundleWatcher",
    "Channels",
    "Collecting",
    "Coordinator",
    "Driven",
    "Emitting",
    "HookRegistry",
    "HookResult",
    "ObservedSession",
    "Outcome",
    "PreparedVersion",
    "Protection",
    "Reload",
    "RemoteProvider",
    "ScriptedProvider",
    "Unregister",
    "__version__",
    "become_confined",
    "builtin_modules",
    "meant",
    "no_module",
    "observe_session",
    "records",
    "session_settings",
    "verify",
    "visible",
]

_Handler = TypeVar("_Handler", bound=Callable[[str, dict[str, Any]], Any])

_Action: TypeAlias = Literal["continue", "deny", "modify", "inject_context", "ask_user"]
_Role: TypeAlias = Literal["system", "user", "assistant"]
_Default: TypeAlias = Literal["allow", "deny"]
_Level: TypeAlias = Literal["info", "warning", "error"]
_Effect: TypeAlias = Literal["allow_once", "allow_always", "deny", "deny_always"]
_Part: TypeAlias = tuple[Any, bool]

class _Model(Protocol):
    def model_dump(self) -> dict[str, Any]: ...

_Data: TypeAlias = dict[str, Any] | _Model | None
_Path: TypeAlias = str | PathLike[str]
_End: TypeAlias = Literal["answered", "refused", "interrupted", "failed"]
_Durability: TypeAlias = Literal["async", "group", "record"]

EVENTS: dict[str, str]
__version__: str
ALL_EVENTS: list[str]

@disjoint_base
class HookResult:
    @property
    def action(self) -> _Action: ...
    @action.setter
    def action(self, value: _Action, /) -> None: ...
    data: dict[str, Any] | None
    reason: str | None
    context_injection: str | None
    @property
    def context_injection_role(self) -> _Role: ...
    @context_injection_role.setter
    def context_injection_role(self, value: _Role, /) -> None: ...
    ephemeral: bool
    append_to_last_tool_result: bool
    approval_prompt: str | None
    approval_options: list[Any] | None
    approval_timeout: float
    approval_default: _Default
    approval_fallback: bool
    suppress_output: bool
    user_message: str | None
    user_message_level: _Level
    user_message_source: str | None
    def __new__(
        cls,
        *,
        action: _Action = "continue",
        data: dict[str, Any] | None = None,
        reason: str | None = None,
        context_injection: str | None = None,
        context_injection_role: _Role = "system",
        ephemeral: bool = False,
        append_to_last_tool_result: bool = False,
        approval_prompt: str | None = None,
        approval_options: list[Any] | None = None,
        approval_timeout: float = 300.0,
        approval_default: _Default = "deny",
        approval_fallback: bool = False,
        suppress_output: bool = False,
        user_message: str | None = None,
        user_message_level: _Level = "info",
        user_message_source: str | None = None,
    ) -> Self: ...
    def model_dump(
        self,
        *,
        mode: str = "python",
        include: Collection[str] | None = None,
        exclude: Collection[str] | None = None,
        exclude_unset: bool = False,
        exclude_defaults: bool = False,
        exclude_none: bool = False,
    ) -> dict[str, Any]: ...
    def model_dump_json(
        self,
        *,
        indent: int | None = None,
        include: Collection[str] | None = None,
        exclude: Collection[str] | None = None,
        exclude_unset: bool = False,
        exclude_defaults: bool = False,
        exclude_none: bool = False,
    ) -> str: ...
    @classmethod
    def model_validate(cls, obj: HookResult | dict[str, Any]) -> Self: ...
    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray) -> Self: ...
    #: The fields as pydantic describes them.
    model_fields: ClassVar[dict[str, Any]]
    @classmethod
    def model_json_schema(cls) -> dict[str, Any]: ...
    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any, /) -> Any: ...
    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: Any, _handler: Any, /) -> dict[str, Any]: ...
    def model_copy(self, *, update: dict[str, Any] | None = None, deep: bool = False) -> Self: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: dict[int, Any]) -> Self: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __lt__(self, value: object, /) -> bool: ...
    def __le__(self, value: object, /) -> bool: ...
    def __gt__(self, value: object, /) -> bool: ...
    def __ge__(self, value: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@disjoint_base
class HookRegistry:
    # begin of the events
    SESSION_START: Final = "session:start"
    SESSION_RESUME: Final = "session:resume"
    SESSION_FORK: Final = "session:fork"
    SESSION_END: Final = "session:end"
    PROMPT_SUBMIT: Final = "prompt:submit"
    PROMPT_COMPLETE: Final = "prompt:complete"
    EXECUTION_START: Final = "execution:start"
    EXECUTION_COMPLETE: Final = "execution:complete"
    PROVIDER_REQUEST: Final = "provider:request"
    PROVIDER_RESPONSE: Final = "provider:response"
    PROVIDER_RETRY: Final = "provider:retry"
    PROVIDER_THROTTLE: Final = "provider:throttle"
    CONTENT_BLOCK_START: Final = "content_block:start"
    CONTENT_BLOCK_DELTA: Final = "content_block:delta"
    CONTENT_BLOCK_END: Final = "content_block:end"
    THINKING_DELTA: Final = "thinking:delta"
    THINKING_FINAL: Final = "thinking:final"
    DECISION_TOOL_RESOLUTION: Final = "decision:tool_resolution"
    DECISION_AGENT_RESOLUTION: Final = "decision:agent_resolution"
    DECISION_CONTEXT_RESOLUTION: Final = "decision:context_resolution"
    TOOL_PRE: Final = "tool:pre"
    TOOL_POST: Final = "tool:post"
    ARTIFACT_READ: Final = "artifact:read"
    ARTIFACT_WRITE: Final = "artifact:write"
    AGENT_SPAWN: Final = "agent:spawn"
    AGENT_COMPLETE: Final = "agent:complete"
    CONTEXT_PRE_COMPACT: Final = "context:pre-compact"
    CONTEXT_POST_COMPACT: Final = "context:post_compact"
    ORCHESTRATOR_COMPLETE: Final = "orchestrator:complete"
    USER_NOTIFICATION: Final = "user:notification"
    APPROVAL_REQUIRED: Final = "approval:required"
    APPROVAL_GRANTED: Final = "approval:granted"
    APPROVAL_DENIED: Final = "approval:denied"
    POLICY_VIOLATION: Final = "policy:violation"
    CANCEL_REQUESTED: Final = "cancel:requested"
    CANCEL_COMPLETED: Final = "cancel:completed"
    ERROR_TOOL: Final = "error:tool"
    ERROR_PROVIDER: Final = "error:provider"
    ERROR_ORCHESTRATION: Final = "error:orchestration"
    PLAN_START: Final = "plan:start"
    PLAN_END: Final = "plan:end"
    LLM_REQUEST: Final = "llm:request"
    LLM_RESPONSE: Final = "llm:response"
    PROVIDER_RESOLVE: Final = "provider:resolve"
    PROVIDER_TOOL_SEQUENCE_REPAIRED: Final = "provider:tool_sequence_repaired"
    CONTEXT_INCLUDE: Final = "context:include"
    CONTEXT_COMPACTION: Final = "context:compaction"
    MODULE_LOAD_FAILED: Final = "module:load_failed"
    MODULE_ON_SESSION_READY_FAILED: Final = "module:on_session_ready_failed"
    EXECUTION_END: Final = "execution:end"
    TOOL_ERROR: Final = "tool:error"
    PROVIDER_ERROR: Final = "provider:error"
    # end of the events
    def __new__(cls, *, parallel_observers: bool = False, strict: bool = False, compat: bool = False) -> Self: ...
    def __init__(self, *, parallel_observers: bool = False, strict: bool = False, compat: bool = False) -> None: ...
    @overload
    def register(
        self,
        event: str,
        handler: Callable[[str, dict[str, Any]], Any],
        priority: int = 0,
        name: str | None = None,
        *,
        role: Literal["gate", "observer"] = "gate",
        on_error: Literal["continue", "deny", "deny_gating"] = "continue",
        timeout: float = 30.0,
    ) -> Unregister: ...
    @overload
    def register(
        self,
        event: str,
        handler: None = None,
        priority: int = 0,
        name: str | None = None,
        *,
        role: Literal["gate", "observer"] = "gate",
        on_error: Literal["continue", "deny", "deny_gating"] = "continue",
        timeout: float = 30.0,
    ) -> Callable[[_Handler], _Handler]: ...
    @overload
    def on(
        self,
        event: str,
        handler: Callable[[str, dict[str, Any]], Any],
        priority: int = 0,
        name: str | None = None,
        *,
        role: Literal["gate", "observer"] = "gate",
        on_error: Literal["continue", "deny", "deny_gating"] = "continue",
        timeout: float = 30.0,
    ) -> Unregister: ...
    @overload
    def on(
        self,
        event: str,
        handler: None = None,
        priority: int = 0,
        name: str | None = None,
        *,
        role: Literal["gate", "observer"] = "gate",
        on_error: Literal["continue", "deny", "deny_gating"] = "continue",
        timeout: float = 30.0,
    ) -> Callable[[_Handler], _Handler]: ...
    def set_default_fields(self, **defaults: Any) -> None: ...
    def set_reserved_fields(self, **fields: Any) -> None: ...
    def emit(self, event: str, data: _Data) -> Coroutine[Any, Any, HookResult]: ...
    def emit_with_outcome(self, event: str, data: _Data) -> Coroutine[Any, Any, Outcome]: ...
    def emit_and_collect(
        self, event: str, data: _Data, timeout: float = 1.0
    ) -> Coroutine[Any, Any, list[Any]]: ...
    def list_handlers(self, event: str | None = None) -> dict[str, list[str]]: ...

@final
class Unregister:
    @property
    def name(self) -> str: ...
    def __call__(self) -> None: ...

@final
class Emitting(Coroutine[Any, Any, Any]):
    @property
    def __qualname__(self) -> str: ...
    def __await__(self) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...
    def send(self, value: Any) -> Any: ...
    def throw(self, typ: Any, val: object = None, tb: TracebackType | None = None) -> Any: ...
    def close(self) -> None: ...

@final
class Driven(Coroutine[Any, Any, Any]):
    def __await__(self) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...
    def send(self, value: Any) -> Any: ...
    def throw(self, typ: Any, val: object = None, tb: TracebackType | None = None) -> Any: ...
    def close(self) -> None: ...

@final
class Outcome:
    @property
    def event(self) -> str: ...
    @property
    def decision(self) -> _Action: ...
    @property
    def denied_by(self) -> str | None: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def data(self) -> dict[str, Any]: ...
    @property
    def approvals(self) -> list[dict[str, Any]]: ...
    @property
    def injections(self) -> list[dict[str, Any]]: ...
    @property
    def messages(self) -> list[dict[str, Any]]: ...
    @property
    def responses(self) -> list[dict[str, Any]]: ...
    @property
    def reports(self) -> list[dict[str, Any]]: ...
    def report(self) -> dict[str, Any]: ...
    def result(self) -> HookResult: ...

@final
class ApprovalRequest:
    @property
    def id(self) -> int: ...
    @property
    def hook(self) -> str: ...
    @property
    def event(self) -> str: ...
    @property
    def prompt(self) -> str: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def warning(self) -> str | None: ...
    @property
    def preview(self) -> dict[str, Any]: ...
    @property
    def offers(self) -> list[dict[str, Any]]: ...
    @property
    def options(self) -> list[str]: ...
    @property
    def effects(self) -> list[_Effect]: ...
    @property
    def timeout(self) -> float: ...
    @property
    def default(self) -> _Default: ...
    @property
    def data(self) -> dict[str, Any]: ...
    @property
    def digest(self) -> str: ...
    def option(self, typed: str) -> str | None: ...

@final
class Coordinator:
    def __new__(
        cls,
        hooks: HookRegistry,
        *,
        context: _Part | None,
        approvals: _Part | None,
        display: _Part | None,
        audit: _Part | None,
        config: dict[str, Any],
        session_id: str | None,
        rules: dict[str, Any],
        operations: str,
    ) -> Self: ...
    def emit(self, event: str, data: dict[str, Any]) -> Coroutine[Any, Any, Outcome]: ...
    @staticmethod
    def collector() -> ContextVar[list[list[tuple[Outcome, HookResult, HookResult]]] | None]: ...
    def route(self, outcome: Outcome) -> Coroutine[Any, Any, tuple[HookResult, tuple[str, str] | None]]: ...
    def process(
        self, result: HookResult, event: str, hook_name: str, data: dict[str, Any]
    ) -> Coroutine[Any, Any, tuple[str, str] | None]: ...
    def record_outcome(self, event: str, tool_call_id: str | None = None, success: bool | None = None) -> None: ...
    def check_injection(self, hook: str, text: str) -> None: ...
    def begin_turn(self) -> None: ...
    def forget_answers(self) -> None: ...
    @property
    def injected_tokens(self) -> int: ...

@final
class AgentSession:
    def __new__(
        cls,
        hooks: HookRegistry,
        *,
        provider: Any,
        tools: list[tuple[Callable[[dict[str, Any]], Any], str, str, dict[str, Any]]],
        place: _Path,
        has_workspace: bool,
        only: list[list[str]],
        system: str | None,
        confirm: str,
        mode: str,
        approvals: _Part | None,
        approval_timeout: float | None,
        display: _Part | None,
        audit: _Part | None,
        config: dict[str, Any],
        rules: dict[str, str],
        options: dict[str, Any],
        orchestrator: str,
        servers: dict[str, dict[str, Any]],
        store: _Path | None,
        mount_plan: dict[str, Any],
        protection: Protection,
        server: Any | None,
    ) -> Self: ...
    def start(
        self, resume: str | None = None, fork: str | None = None, turn: int | None = None
    ) -> Coroutine[Any, Any, None]: ...
    def prompt(
        self, prompt: str, metadata: dict[str, Any]
    ) -> Coroutine[Any, Any, tuple[_End, str, str | None, str | None]]: ...
    def execute_tool(self, name: str, input: dict[str, Any]) -> Coroutine[Any, Any, tuple[str, bool, Any, str]]: ...
    def compact(self) -> Coroutine[Any, Any, tuple[_End, str, str | None, str | None] | None]: ...
    def end(self, reason: str) -> Coroutine[Any, Any, None]: ...
    @property
    def has_ended(self) -> bool: ...
    def cancel(self) -> Literal["graceful", "immediate"]: ...
    @property
    def id(self) -> str: ...
    @property
    def tokens(self) -> int: ...
    @property
    def tools(self) -> list[str]: ...
    def messages(self) -> list[dict[str, Any]]: ...
    def add_message(self, role: str, content: str, metadata: dict[str, Any]) -> None: ...
    def coordinator(self) -> Coordinator: ...

@final
class ScriptedProvider:
    def __new__(
        cls,
        answers: Iterable[str | dict[str, Any]],
        *,
        agents: dict[str, list[Any]] | None = None,
        context_limit: int = 200_000,
        record: bool = False,
    ) -> Self: ...
    @staticmethod
    def load(file: _Path) -> ScriptedProvider: ...
    @property
    def asked(self) -> list[dict[str, Any]]: ...

@final
class RemoteProvider:
    def __new__(
        cls,
        kind: Literal["anthropic", "openai", "gemini"],
        model: str,
        *,
        key: str | None = None,
        base_url: str | None = None,
        context_limit: int | None = None,
    ) -> Self: ...

@final
class AuditLog:
    def __new__(cls, folder: _Path, key_file: _Path, *, durability: _Durability = "group") -> Self: ...
    @property
    def folder(self) -> Path: ...
    @property
    def key_file(self) -> Path: ...
    @property
    def closed(self) -> bool: ...
    def policy_change(self, change: dict[str, Any]) -> None: ...
    def seal(self, session_id: str, reason: str = "complete") -> None: ...
    def checkpoint(self) -> None: ...
    def status(self) -> dict[str, Any]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_raised: object) -> None: ...

@final
class AuditReport:
    @property
    def is_sound(self) -> bool: ...
    @property
    def verdict(self) -> Literal["sound", "unsound", "unreadable"]: ...
    @property
    def records(self) -> int: ...
    @property
    def findings(self) -> list[str]: ...
    def to_dict(self) -> dict[str, Any]: ...

def verify(folder: _Path, *, key: str | None = None, checkpoints: bytes | None = None) -> AuditReport: ...
def records(folder: _Path) -> list[dict[str, Any]]: ...

@final
class Bundle:
    @staticmethod
    def load(file: _Path) -> Bundle: ...
    @staticmethod
    def parse(text: str, file: _Path | None = None) -> Bundle: ...
    @property
    def files(self) -> list[Path]: ...
    @property
    def hooks(self) -> list[str]: ...
    @property
    def foreign(self) -> list[str]: ...
    def doubts(self) -> list[str]: ...
    def unmatched_hooks(self, tools: list[str]) -> list[str]: ...
    def check_log(self, log: AuditLog) -> None: ...
    def provider(self) -> ScriptedProvider | RemoteProvider | None: ...
    @property
    def has_files(self) -> bool: ...

@final
class Channels:
    def __new__(cls) -> Self: ...
    def register(self, channel: str, name: str, function: Callable[[], Any]) -> Callable[[], None]: ...
    def collect(self, channel: str) -> Collecting: ...

@final
class Collecting:
    def at_once(self) -> list[Any]: ...
    def finish(self) -> Coroutine[Any, Any, list[Any]]: ...

@final
class BundleWatcher:
    def __new__(
        cls,
        hooks: HookRegistry,
        bundle: Bundle,
        workspace: _Path,
        protection: Protection,
        audit: Any = None,
        name_session: Callable[[str, str], object] | None = None,
    ) -> Self: ...
    def prepare(self, bundle: Bundle) -> PreparedVersion: ...
    def read(self, always: bool) -> Coroutine[Any, Any, PreparedVersion | Reload]: ...
    def refuse(self, error: str) -> Reload: ...
    @staticmethod
    def follow(hooks: HookRegistry, handler: Callable[..., Any]) -> list[Unregister]: ...
    def unregister(self) -> None: ...
    def settle(self) -> Coroutine[Any, Any, None]: ...

@final
class PreparedVersion:
    @property
    def bundle(self) -> Bundle: ...
    @property
    def foreign(self) -> list[BundleHook]: ...
    def register(self) -> BundleHook | None: ...
    def commit(self) -> Reload: ...
    def drop(self) -> None: ...

@final
class Reload:
    @property
    def changed(self) -> bool: ...
    @property
    def kept(self) -> list[str]: ...
    @property
    def began(self) -> list[str]: ...
    @property
    def ended(self) -> list[str]: ...
    @property
    def error(self) -> str | None: ...
    @property
    def text(self) -> str: ...
    @property
    def news(self) -> tuple[Literal["info", "warning"], str] | None: ...

@final
class BundleHook:
    @property
    def who(self) -> str: ...
    @property
    def is_kept(self) -> bool: ...
    @property
    def foreign(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    def config(self) -> dict[str, Any]: ...
    def settings(self) -> dict[str, Any]: ...
    def problem(self, text: str) -> str: ...

def meant(labels: list[str], typed: str) -> str | None: ...
def visible(text: str, *, lines: bool = False) -> str: ...
def become_confined(arguments: list[str]) -> int: ...
@final
class Protection:
    def __new__(
        cls,
        workspace: _Path,
        *,
        bundle: Bundle | None = None,
        audit: Any = None,
        store: _Path | None = None,
        home: _Path | None = None,
        is_home_used: bool = False,
        confine: bool | None = None,
        starts: bool = False,
    ) -> Self: ...
    @property
    def warnings(self) -> list[str]: ...
    def check(self, bundle: Bundle) -> None: ...

def builtin_modules() -> list[dict[str, Any]]: ...
def no_module(name: str) -> str: ...
def session_settings(bundle: Bundle | None, *, confirm: str | None, mode: str | None, acts: bool) -> dict[str, Any]: ...
@final
class ObservedSession:
    def coordinator(self) -> Coordinator: ...
    @property
    def workspace(self) -> str: ...
    @property
    def audit_folder(self) -> Path: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def is_served(self) -> bool: ...
    def set_idle(self, idle: bool) -> None: ...
    def end(self, reason: str) -> Coroutine[Any, Any, None]: ...

def observe_session(
    hooks: HookRegistry,
    *,
    session_id: str,
    workspace: _Path,
    home: _Path | None,
    bundle: _Path | None,
    mode: str | None,
    confirm: str | None,
    serve: bool | None,
    context: _Part,
    approvals: _Part | None,
    display: _Part | None,
    commands: Any,
) -> Coroutine[Any, Any, ObservedSession]: ...
