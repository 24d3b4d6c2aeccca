from typing import Final

from amplifier_core._native import ALL_EVENTS as ALL_EVENTS

__all__ = [
    "ALL_EVENTS",
    "SESSION_START",
    "SESSION_RESUME",
    "SESSION_FORK",
    "SESSION_END",
    "PROMPT_SUBMIT",
    "PROMPT_COMPLETE",
    "EXECUTION_START",
    "EXECUTION_COMPLETE",
    "PROVIDER_REQUEST",
    "PROVIDER_RESPONSE",
    "PROVIDER_RETRY",
    "PROVIDER_THROTTLE",
    "CONTENT_BLOCK_START",
    "CONTENT_BLOCK_DELTA",
    "CONTENT_BLOCK_END",
    "THINKING_DELTA",
    "THINKING_FINAL",
    "DECISION_TOOL_RESOLUTION",
    "DECISION_AGENT_RESOLUTION",
    "DECISION_CONTEXT_RESOLUTION",
    "TOOL_PRE",
    "TOOL_POST",
    "ARTIFACT_READ",
    "ARTIFACT_WRITE",
    "AGENT_SPAWN",
    "AGENT_COMPLETE",
    "CONTEXT_PRE_COMPACT",
    "CONTEXT_POST_COMPACT",
    "ORCHESTRATOR_COMPLETE",
    "USER_NOTIFICATION",
    "APPROVAL_REQUIRED",
    "APPROVAL_GRANTED",
    "APPROVAL_DENIED",
    "POLICY_VIOLATION",
    "CANCEL_REQUESTED",
    "CANCEL_COMPLETED",
    "ERROR_TOOL",
    "ERROR_PROVIDER",
    "ERROR_ORCHESTRATION",
    "PLAN_START",
    "PLAN_END",
    "LLM_REQUEST",
    "LLM_RESPONSE",
    "PROVIDER_RESOLVE",
    "PROVIDER_TOOL_SEQUENCE_REPAIRED",
    "CONTEXT_INCLUDE",
    "CONTEXT_COMPACTION",
    "MODULE_LOAD_FAILED",
    "MODULE_ON_SESSION_READY_FAILED",
    "EXECUTION_END",
    "TOOL_ERROR",
    "PROVIDER_ERROR",
]

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
CONTEXT_PRE_COMPACT: Final = "context:pre_compact"
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
