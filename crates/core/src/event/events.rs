//! Every known event: a constant for its name, and a view of its data.
//!
//! They are re-exported at the top of the crate. Modules can define their own events: see
//! [`EventType::new`](crate::EventType::new).

use std::ops::Deref;

use serde_json::Value;

use super::kind::{AnyValue, FieldKind, Flag, Integer, Object, Text, Texts, check, read, value, written};
use super::payload::events;
use super::{DataChange, EventData, EventEffects, EventSpec, EventType, FieldSpec, InvalidPayload, Map, Payload};

events! {
    /// A session begins.
    SESSION_START = "session:start", All, SessionStart {
        /// The complete configuration of the session.
        mount_plan: Object,
        /// Reason: `startup`, `resume` or `compact`.
        source: Text,
    }

    /// A stored session is continued.
    SESSION_RESUME = "session:resume", All, SessionResume {
        /// The continued session.
        resumed_session_id: Text,
        optional
        /// Number of stored messages.
        messages_count: Integer,
    }

    /// A session branches off from another one.
    SESSION_FORK = "session:fork", All, SessionFork {
        /// The session that it branches off from.
        parent_session_id: Text,
        optional
        /// The turn of the branch.
        turn: Integer,
    }

    /// A session ends.
    SESSION_END = "session:end", Observed, SessionEnd {
        /// Reason: `complete`, `user_exit`, `error` or `timeout`.
        reason: Text,
        /// Duration of the session.
        duration_ms: Integer,
        /// Statistics: `total_messages`, `tool_invocations`, `total_tokens`.
        stats: Object,
    }

    /// A user submits a prompt, before the agent processes it.
    PROMPT_SUBMIT = "prompt:submit", All, PromptSubmit {
        /// The prompt.
        prompt: Text,
        optional
        /// Further facts about the prompt.
        metadata: Object,
    }

    /// A prompt has been answered.
    PROMPT_COMPLETE = "prompt:complete", Observed, PromptComplete {
        /// The prompt.
        prompt: Text,
        /// The agent's answer.
        response: Text,
        optional
        /// Duration.
        duration_ms: Integer,
    }

    /// The orchestrator begins a turn.
    EXECUTION_START = "execution:start", Observed, ExecutionStart {
        /// The prompt of the turn.
        prompt: Text,
    }

    /// The orchestrator has finished a turn.
    EXECUTION_COMPLETE = "execution:complete", Observed, ExecutionComplete {
        /// Status: `success`, `error` or `interrupted`.
        status: Text,
        optional
        /// The response of the turn.
        response: Text,
    }

    /// A request is about to be sent to the model.
    PROVIDER_REQUEST = "provider:request", All, ProviderRequest {
        /// The provider.
        provider: Text,
        optional
        /// The model.
        model: Text,
        /// The conversation as the model will see it.
        messages: AnyValue,
        /// Parameters of the call.
        parameters: Object,
    }

    /// The model has answered.
    PROVIDER_RESPONSE = "provider:response", All, ProviderResponse {
        /// The provider that answered.
        provider: Text,
        optional
        /// The model that answered.
        model: Text,
        /// The text of the answer.
        content: Text,
        /// The tools that the model wants to call.
        tool_calls: AnyValue,
        /// Tokens used.
        usage: Object,
        /// The stop reason.
        stop_reason: Text,
    }

    /// A failed call to the model will be retried.
    PROVIDER_RETRY = "provider:retry", Observed, ProviderRetry {
        /// The provider.
        provider: Text,
        /// Number of the next attempt, counted from 1.
        attempt: Integer,
        optional
        /// Delay before the attempt.
        delay_ms: Integer,
        /// The error.
        error: Object,
    }

    /// The provider asked to slow down.
    PROVIDER_THROTTLE = "provider:throttle", Observed, ProviderThrottle {
        /// The provider.
        provider: Text,
        /// Delay.
        delay_ms: Integer,
    }

    /// A part of the model's answer begins.
    CONTENT_BLOCK_START = "content_block:start", Observed, ContentBlockStart {
        /// Index of the part, counted from 0.
        index: Integer,
        /// Type: `text`, `tool_use`, `thinking`.
        block_type: Text,
    }

    /// A piece of a part of the model's answer has arrived.
    CONTENT_BLOCK_DELTA = "content_block:delta", Observed, ContentBlockDelta {
        /// Index of the part, counted from 0.
        index: Integer,
        /// The new piece.
        delta: AnyValue,
    }

    /// A part of the model's answer is complete.
    CONTENT_BLOCK_END = "content_block:end", Observed, ContentBlockEnd {
        /// Index of the part, counted from 0.
        index: Integer,
        optional
        /// The whole part.
        block: AnyValue,
    }

    /// A piece of the model's reasoning has arrived.
    THINKING_DELTA = "thinking:delta", Observed, ThinkingDelta {
        /// The new piece.
        delta: Text,
    }

    /// The model's reasoning is complete.
    THINKING_FINAL = "thinking:final", Observed, ThinkingFinal {
        /// The whole reasoning.
        content: Text,
    }

    /// The orchestrator selects a tool.
    DECISION_TOOL_RESOLUTION = "decision:tool_resolution", All, DecisionToolResolution {
        /// The available tools.
        available_tools: Texts,
        /// The selected tool.
        selected_tool: Text,
        optional
        /// Reason for the choice.
        reason: Text,
    }

    /// The orchestrator decides to delegate to an agent.
    DECISION_AGENT_RESOLUTION = "decision:agent_resolution", All, DecisionAgentResolution {
        /// The selected agent.
        agent_name: Text,
        optional
        /// Reason for the delegation.
        reason: Text,
    }

    /// The orchestrator selects a strategy for managing the context.
    DECISION_CONTEXT_RESOLUTION = "decision:context_resolution", DenyOrModify, DecisionContextResolution {
        /// The selected strategy: `summarize` or `truncate`.
        strategy: Text,
        optional
        /// Reason for the choice.
        reason: Text,
    }

    /// A tool is about to run.
    TOOL_PRE = "tool:pre", All, ToolPre {
        /// The tool that is called.
        tool_name: Text,
        /// Its parameters, which `amplifier tools NAME` lists.
        tool_input: Object,
        optional
        /// Id of the call, which pairs it with its `tool:post`.
        tool_call_id: Text,
        /// The digest of the tool's description and input schema, for a tool of an MCP server.
        tool_definition: Text,
    }

    /// A tool has run.
    TOOL_POST = "tool:post", All, ToolPost {
        /// The tool that was called.
        tool_name: Text,
        /// Its parameters, which `amplifier tools NAME` lists.
        tool_input: Object,
        /// Its result, whose fields `amplifier tools NAME` lists; only `error` if it failed.
        tool_result: AnyValue,
        /// `true` if it succeeded.
        success: Flag,
        /// Duration of the run.
        duration_ms: Integer,
        optional
        /// Id of the call, as in its `tool:pre`.
        tool_call_id: Text,
    }

    /// An artifact that outlives the session is read.
    ARTIFACT_READ = "artifact:read", Observed, ArtifactRead {
        /// Its path.
        path: Text,
        optional
        /// Its size.
        bytes: Integer,
    }

    /// An artifact that outlives the session is written.
    ARTIFACT_WRITE = "artifact:write", Observed, ArtifactWrite {
        /// Its path.
        path: Text,
        optional
        /// Its size.
        bytes: Integer,
    }

    /// A sub-agent is about to be spawned.
    AGENT_SPAWN = "agent:spawn", All, AgentSpawn {
        /// The session that delegates.
        parent_session_id: Text,
        /// The agent.
        agent_name: Text,
        /// Its task.
        task: Text,
        optional
        /// Its own configuration.
        config_override: Object,
    }

    /// A sub-agent has finished.
    AGENT_COMPLETE = "agent:complete", All, AgentComplete {
        /// The session that delegated.
        parent_session_id: Text,
        /// The agent.
        agent_name: Text,
        /// Its task.
        task: Text,
        /// Its result.
        result: Object,
        /// Duration.
        duration_ms: Integer,
        /// Status: `success`, `error` or `interrupted`.
        status: Text,
    }

    /// The conversation is about to be shortened.
    CONTEXT_PRE_COMPACT = "context:pre_compact", NoApprovals, ContextPreCompact {
        /// Trigger: `auto` or `manual`.
        trigger: Text,
        /// Tokens before.
        current_tokens: Integer,
        /// Target number of tokens.
        target_tokens: Integer,
        /// Messages before.
        messages_count: Integer,
    }

    /// The conversation has been shortened.
    CONTEXT_POST_COMPACT = "context:post_compact", Observed, ContextPostCompact {
        /// Tokens before.
        previous_tokens: Integer,
        /// Tokens now.
        current_tokens: Integer,
        /// Messages now.
        messages_count: Integer,
    }

    /// The orchestrator has given its final answer.
    ORCHESTRATOR_COMPLETE = "orchestrator:complete", Observed, OrchestratorComplete {
        /// The orchestrator: `loop-basic`, `loop-streaming`, …
        orchestrator: Text,
        /// Number of turns of the conversation.
        turn_count: Integer,
        /// Duration.
        duration_ms: Integer,
        /// Status: `success`, `error` or `interrupted`.
        status: Text,
        optional
        /// The last message of the assistant.
        final_message: Object,
    }

    /// A user's attention is needed.
    USER_NOTIFICATION = "user:notification", Observed, UserNotification {
        /// Reason: `awaiting_input`, `approval_required`, `error` or `alert`.
        notification_type: Text,
        /// The message.
        message: Text,
        optional
        /// Further facts.
        metadata: Object,
    }

    /// An approval is requested.
    APPROVAL_REQUIRED = "approval:required", Observed, ApprovalRequired {
        /// The requesting hook.
        hook: Text,
        /// The event of the request.
        event: Text,
        /// The prompt of the request.
        prompt: Text,
        optional
        /// The possible answers.
        options: Texts,
        /// The digest of the data that will run.
        digest: Text,
    }

    /// An approval was granted.
    APPROVAL_GRANTED = "approval:granted", Observed, ApprovalGranted {
        /// The requesting hook.
        hook: Text,
        /// The event of the request.
        event: Text,
        /// The prompt of the request.
        prompt: Text,
        /// The reason of the decision.
        reason: Text,
    }

    /// An approval was denied.
    APPROVAL_DENIED = "approval:denied", Observed, ApprovalDenied {
        /// The requesting hook.
        hook: Text,
        /// The event of the request.
        event: Text,
        /// The prompt of the request.
        prompt: Text,
        /// The reason of the decision.
        reason: Text,
    }

    /// A policy was violated.
    POLICY_VIOLATION = "policy:violation", Observed, PolicyViolation {
        /// The policy.
        policy: Text,
        /// The cause.
        reason: Text,
        optional
        /// The event of the violation.
        event: Text,
    }

    /// A user requested to stop.
    CANCEL_REQUESTED = "cancel:requested", Observed, CancelRequested {
        /// Level: `graceful` or `immediate`.
        level: Text,
    }

    /// The agent has stopped.
    CANCEL_COMPLETED = "cancel:completed", Observed, CancelCompleted {
        /// Level: `graceful` or `immediate`.
        level: Text,
    }

    /// A tool failed.
    ERROR_TOOL = "error:tool", Observed, ErrorTool {
        /// The tool.
        tool_name: Text,
        /// The error.
        error: Object,
    }

    /// A call to the model failed.
    ERROR_PROVIDER = "error:provider", Observed, ErrorProvider {
        /// The provider.
        provider: Text,
        /// The error.
        error: Object,
    }

    /// The orchestrator failed.
    ERROR_ORCHESTRATION = "error:orchestration", Observed, ErrorOrchestration {
        /// The error.
        error: Object,
    }
}
