//! The denial that every client understands, in three ways: JSON on standard output, the reason on standard error, exit code 2.

use crate::Answer;

/// The most characters of a reason.
const MAX_REASON: usize = 1000;

/// Returns the denial for a failure.
pub(crate) fn answer(problem: &str) -> Answer {
    let reason = reason(problem);
    let quoted = quote(&reason);
    let stdout = format!(
        "{{\"decision\":\"block\",\"reason\":{quoted},\"permission\":\"deny\",\"user_message\":{quoted},\
         \"permissionDecision\":\"deny\",\"permissionDecisionReason\":{quoted},\"hookSpecificOutput\":{{\
         \"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":{quoted}}}}}"
    );
    Answer { stdout: stdout.into_bytes(), stderr: format!("{reason}\n").into_bytes(), code: 2 }
}

/// Returns the remark about a failure at an event without a gate.
pub(crate) fn note(problem: &str) -> Answer {
    Answer { stdout: Vec::new(), stderr: format!("{}\n", reason(problem)).into_bytes(), code: 0 }
}

fn reason(problem: &str) -> String {
    let problem: String = problem.chars().filter(|c| !c.is_control()).take(MAX_REASON).collect();
    format!("amplifier guard: {problem}; run `amplifier guard status`")
}

/// Returns a text as JSON. It has no control characters.
fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
