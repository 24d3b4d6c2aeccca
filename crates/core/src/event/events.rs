//! Every known event: a constant for its name, and a view of its data.
//!
//! All of them are at the top of the crate, too. Modules may emit events of their own: see
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
        /// Why it begins: `startup`, `resume` or `compact`.
        source: Text,
    }

    /// A stored session is continued.
    SESSION_RESUME = "session:resume", All, SessionResume {
        /// The session that is continued.
        resumed_session_id: Text,
        optional
        /// How many messages it holds.
        messages_count: Integer,
    }

    /// A session branches off another one.
    SESSION_FORK = "session:fork", All, SessionFork {
        /// The session it branches off.
        parent_session_id: Text,
        optional
        /// The turn at which it branches off.
        turn: Integer,
    }

    /// A session ends, whatever the reason.
    SESSION_END = "session:end", Observed, SessionEnd {
        /// Why: `complete`, `user_exit`, `error` or `timeout`.
        reason: Text,
        /// How long it lasted.
        duration_ms: Integer,
        /// What happened in it: `total_messages`, `tool_invocations`, `total_tokens`.
        stats: Object,
    }

    /// A person submits a prompt, before the agent processes it.
    PROMPT_SUBMIT = "prompt:submit", All, PromptSubmit {
        /// What the person wrote.
        prompt: Text,
        optional
        /// What else is known about the prompt.
        metadata: Object,
    }

    /// A prompt has been answered.
    PROMPT_COMPLETE = "prompt:complete", Observed, PromptComplete {
        /// What the person wrote.
        prompt: Text,
        /// What the agent answered.
        response: Text,
        optional
        /// How long it took.
        duration_ms: Integer,
    }

    /// The orchestrator begins a turn.
    EXECUTION_START = "execution:start", Observed, ExecutionStart {
        /// What the turn is about.
        prompt: Text,
    }

    /// The orchestrator has finished a turn.
    EXECUTION_COMPLETE = "execution:complete", Observed, ExecutionComplete {
        /// How it ended: `success`, `error` or `interrupted`.
        status: Text,
        optional
        /// What the turn came to.
        response: Text,
    }

    /// A request is about to be sent to the model.
    PROVIDER_REQUEST = "provider:request", All, ProviderRequest {
        /// The provider that is asked.
        provider: Text,
        optional
        /// The model that is asked.
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
        /// Why the model stopped.
        stop_reason: Text,
    }

    /// A failed call to the model will be tried again.
    PROVIDER_RETRY = "provider:retry", Observed, ProviderRetry {
        /// The provider.
        provider: Text,
        /// Which try this will be, counted from 1.
        attempt: Integer,
        optional
        /// How long is waited before.
        delay_ms: Integer,
        /// What went wrong.
        error: Object,
    }

    /// The provider asked to slow down.
    PROVIDER_THROTTLE = "provider:throttle", Observed, ProviderThrottle {
        /// The provider.
        provider: Text,
        /// How long is waited.
        delay_ms: Integer,
    }

    /// A part of the model's answer begins.
    CONTENT_BLOCK_START = "content_block:start", Observed, ContentBlockStart {
        /// Which part, counted from 0.
        index: Integer,
        /// What it is: `text`, `tool_use`, `thinking`.
        block_type: Text,
    }

    /// A piece of a part of the model's answer has arrived.
    CONTENT_BLOCK_DELTA = "content_block:delta", Observed, ContentBlockDelta {
        /// Which part, counted from 0.
        index: Integer,
        /// What has arrived.
        delta: AnyValue,
    }

    /// A part of the model's answer is complete.
    CONTENT_BLOCK_END = "content_block:end", Observed, ContentBlockEnd {
        /// Which part, counted from 0.
        index: Integer,
        optional
        /// The whole part.
        block: AnyValue,
    }

    /// A piece of the model's reasoning has arrived.
    THINKING_DELTA = "thinking:delta", Observed, ThinkingDelta {
        /// What has arrived.
        delta: Text,
    }

    /// The model's reasoning is complete.
    THINKING_FINAL = "thinking:final", Observed, ThinkingFinal {
        /// All of it.
        content: Text,
    }

    /// The orchestrator selects which tool to use.
    DECISION_TOOL_RESOLUTION = "decision:tool_resolution", All, DecisionToolResolution {
        /// The tools there are.
        available_tools: Texts,
        /// The tool chosen.
        selected_tool: Text,
        optional
        /// Why this one.
        reason: Text,
    }

    /// The orchestrator decides to delegate to an agent.
    DECISION_AGENT_RESOLUTION = "decision:agent_resolution", All, DecisionAgentResolution {
        /// The agent chosen.
        agent_name: Text,
        optional
        /// Why it delegates.
        reason: Text,
    }

    /// The orchestrator selects how to manage the context.
    DECISION_CONTEXT_RESOLUTION = "decision:context_resolution", DenyOrModify, DecisionContextResolution {
        /// The strategy chosen: `summarize` or `truncate`.
        strategy: Text,
        optional
        /// Why this one.
        reason: Text,
    }

    /// A tool is about to run.
    TOOL_PRE = "tool:pre", All, ToolPre {
        /// The tool that is called.
        tool_name: Text,
        /// Its parameters.
        tool_input: Object,
        optional
        /// Which call this is, so that it can be paired with its `tool:post`.
        tool_call_id: Text,
        /// The digest of the tool's description and input schema, for a tool of an MCP server.
        tool_definition: Text,
    }

    /// A tool has run.
    TOOL_POST = "tool:post", All, ToolPost {
        /// The tool that was called.
        tool_name: Text,
        /// Its parameters.
        tool_input: Object,
        /// What it gave back.
        tool_result: AnyValue,
        /// Whether it succeeded.
        success: Flag,
        /// How long it ran.
        duration_ms: Integer,
        optional
        /// Which call this was, as in its `tool:pre`.
        tool_call_id: Text,
    }

    /// Something is read that outlives the session.
    ARTIFACT_READ = "artifact:read", Observed, ArtifactRead {
        /// Where it is.
        path: Text,
        optional
        /// How large it is.
        bytes: Integer,
    }

    /// Something is written that outlives the session.
    ARTIFACT_WRITE = "artifact:write", Observed, ArtifactWrite {
        /// Where it is.
        path: Text,
        optional
        /// How large it is.
        bytes: Integer,
    }

    /// A sub-agent is about to be spawned.
    AGENT_SPAWN = "agent:spawn", All, AgentSpawn {
        /// The session that delegates.
        parent_session_id: Text,
        /// The agent.
        agent_name: Text,
        /// What it is to do.
        task: Text,
        optional
        /// What is configured for it alone.
        config_override: Object,
    }

    /// A sub-agent has finished.
    AGENT_COMPLETE = "agent:complete", All, AgentComplete {
        /// The session that delegated.
        parent_session_id: Text,
        /// The agent.
        agent_name: Text,
        /// What it was to do.
        task: Text,
        /// What it came to.
        result: Object,
        /// How long it took.
        duration_ms: Integer,
        /// How it ended: `success`, `error` or `interrupted`.
        status: Text,
    }

    /// The conversation is about to be shortened.
    CONTEXT_PRE_COMPACT = "context:pre_compact", NoApprovals, ContextPreCompact {
        /// Who wants it: `auto` or `manual`.
        trigger: Text,
        /// Tokens before.
        current_tokens: Integer,
        /// Tokens aimed for.
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
        /// Which orchestrator: `loop-basic`, `loop-streaming`, …
        orchestrator: Text,
        /// How many turns the conversation has.
        turn_count: Integer,
        /// How long it took.
        duration_ms: Integer,
        /// How it ended: `success`, `error` or `interrupted`.
        status: Text,
        optional
        /// The last message of the assistant.
        final_message: Object,
    }

    /// A person's attention is needed.
    USER_NOTIFICATION = "user:notification", Observed, UserNotification {
        /// Why: `awaiting_input`, `approval_required`, `error` or `alert`.
        notification_type: Text,
        /// What to tell.
        message: Text,
        optional
        /// What else is known.
        metadata: Object,
    }

    /// A person is about to be asked.
    APPROVAL_REQUIRED = "approval:required", Observed, ApprovalRequired {
        /// The hook that asks.
        hook: Text,
        /// The event at which it asks.
        event: Text,
        /// The question.
        prompt: Text,
        optional
        /// What the person can answer.
        options: Texts,
        /// The digest of the data that will run.
        digest: Text,
    }

    /// What a hook asked for was granted.
    APPROVAL_GRANTED = "approval:granted", Observed, ApprovalGranted {
        /// The hook that asked.
        hook: Text,
        /// The event at which it asked.
        event: Text,
        /// The question.
        prompt: Text,
        /// Why it was granted.
        reason: Text,
    }

    /// What a hook asked for was refused.
    APPROVAL_DENIED = "approval:denied", Observed, ApprovalDenied {
        /// The hook that asked.
        hook: Text,
        /// The event at which it asked.
        event: Text,
        /// The question.
        prompt: Text,
        /// Why it was refused.
        reason: Text,
    }

    /// A policy was broken.
    POLICY_VIOLATION = "policy:violation", Observed, PolicyViolation {
        /// The policy.
        policy: Text,
        /// What broke it.
        reason: Text,
        optional
        /// The event at which it was broken.
        event: Text,
    }

    /// A person asked to stop.
    CANCEL_REQUESTED = "cancel:requested", Observed, CancelRequested {
        /// How: `graceful` or `immediate`.
        level: Text,
    }

    /// The agent has stopped.
    CANCEL_COMPLETED = "cancel:completed", Observed, CancelCompleted {
        /// How: `graceful` or `immediate`.
        level: Text,
    }

    /// A tool failed.
    ERROR_TOOL = "error:tool", Observed, ErrorTool {
        /// The tool.
        tool_name: Text,
        /// What went wrong.
        error: Object,
    }

    /// A call to the model failed.
    ERROR_PROVIDER = "error:provider", Observed, ErrorProvider {
        /// The provider.
        provider: Text,
        /// What went wrong.
        error: Object,
    }

    /// The orchestrator failed.
    ERROR_ORCHESTRATION = "error:orchestration", Observed, ErrorOrchestration {
        /// What went wrong.
        error: Object,
    }
}
