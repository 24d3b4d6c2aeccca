//! The layout and the keys of an approval prompt.

use std::collections::HashMap;
use std::time::Duration;

use amplifier_core::{
    ActionPreview, ApprovalAnswer, ApprovalDecision, ApprovalOption, ApprovalRequest, DefaultDecision, Effect,
    PreviewField, PreviewRow, PreviewRowKind,
};

use super::decision::{describe_approver, describe_basis};
use super::line::{BOLD, Break, CYAN, DIM, GREEN, PLAIN, RED, StyledLine, YELLOW, fold};

/// The maximum number of options: each has its own key, and the options must not push the operation off the screen.
const MAX_OPTIONS: usize = 9;
/// The maximum number of rows for a hook's text, or for the fields of an operation.
const MAX_NOTE_ROWS: usize = 8;
const MORE_HINT: &str = ", press + to see all";
/// The key that denies with a reason. No label of an option begins with it.
pub(super) const REASON_KEY: char = '/';
pub(super) const IGNORED_HINT: &str = "keys arrived too quickly; ";
/// Shown after Esc, which never decides: here as in the console, it means "not now".
pub(super) const ESCAPE_HINT: &str = "Esc does not answer; ";
/// The effect of an option that always allows, if there are rules to choose from.
const CHOICE: &str = "choose what is allowed from now on";
/// Shown if the user chose to allow before all rows were visible.
pub(super) const UNFOLDED_HINT: &str = "all rows are shown now; ";
/// The rows that should stay on the screen together with the operation.
const ROWS_AROUND: usize = 14;

#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// Returns the rows of a prompt, except the last one, which shows the remaining time. `all` disables folding.
///
/// Every row of the operation is behind a bar, so that no text can imitate the frame.
pub(super) fn rows(request: &ApprovalRequest, size: Size, all: bool) -> Vec<StyledLine> {
    let room = size.columns.saturating_sub(3).max(20);
    let limit = |rows: usize| if all { usize::MAX } else { rows };
    let asks = StyledLine::new().exact(YELLOW.bold(), "╭─ approval needed").exact(DIM, "  hook ");
    let asks = asks.exact(DIM, &*request.hook).exact(DIM, " asks at ").exact(DIM, request.event.as_str());
    let mut rows = vec![asks.truncate(size.columns)];

    // Only the program's own text is directly behind the bar; the operation is indented and cannot imitate it.
    let preview = &request.preview;
    rows.extend(title(preview).wrap(room, Break::Anywhere).iter().map(|row| bar(" ").then(row)));
    let warnings = request.warning.iter().chain(&preview.warnings);
    let warnings: Vec<StyledLine> = warnings.map(|warning| StyledLine::new().exact(YELLOW, warning)).collect();
    let body: Vec<StyledLine> = preview.body.iter().map(|row| body_row(&preview.title, row)).collect();
    let field = |PreviewField { name, value }: &PreviewField| StyledLine::new().exact(DIM, format!("{name}: {value}"));
    let fields: Vec<StyledLine> = preview.fields.iter().map(field).collect();
    let height = size.rows.saturating_sub(ROWS_AROUND).clamp(10, 40);
    for (mark, lines, height) in
        [("! ", &warnings, MAX_NOTE_ROWS), ("  ", &body, height), ("· ", &fields, MAX_NOTE_ROWS)]
    {
        let marked: Vec<StyledLine> = lines.iter().flat_map(|line| mark_rows(mark, line, room)).collect();
        rows.extend(fold(marked, limit(height), MORE_HINT).iter().map(|row| bar(" ").then(row)));
    }

    rows.push(bar(""));
    let hook = StyledLine::new().exact(DIM, "hook ").exact(CYAN, &*request.hook).exact(DIM, " says: ");
    let mut said = hook_text(hook, &request.prompt, room);
    let reason = request.reason.as_deref().filter(|reason| !reason.is_empty());
    said.extend(
        reason.into_iter().flat_map(|reason| hook_text(StyledLine::new().exact(DIM, "Reason: "), reason, room)),
    );
    rows.extend(fold(said, limit(MAX_NOTE_ROWS), MORE_HINT).iter().map(|row| bar(" ").then(row)));

    rows.push(bar(""));
    rows.extend(options(request, room).iter().map(|row| bar(" ").then(row)));
    rows
}

fn title(ActionPreview { title, target, summary, .. }: &ActionPreview) -> StyledLine {
    let more = [(CYAN, target), (DIM, summary)].into_iter().filter_map(|(style, text)| Some((style, text.as_ref()?)));
    more.fold(StyledLine::new().exact(BOLD, title), |line, (style, text)| line.exact(PLAIN, "  ").exact(style, text))
}

/// Returns the rows of a preview, without folding and without a frame.
pub(crate) fn preview_rows(preview: &ActionPreview) -> Vec<StyledLine> {
    let warnings = preview.warnings.iter().map(|warning| StyledLine::new().exact(YELLOW, "! ").exact(YELLOW, warning));
    let body = preview.body.iter().map(|row| StyledLine::new().exact(PLAIN, "  ").then(&body_row(&preview.title, row)));
    std::iter::once(title(preview)).chain(warnings).chain(body).collect()
}

fn body_row(title: &str, PreviewRow { kind, text, .. }: &PreviewRow) -> StyledLine {
    match kind {
        PreviewRowKind::Plain => StyledLine::new().exact(if title == "Bash" { BOLD } else { PLAIN }, text),
        PreviewRowKind::Context => StyledLine::new().exact(PLAIN, " ").exact(PLAIN, text),
        PreviewRowKind::Added => StyledLine::new().exact(GREEN, "+").exact(GREEN, text),
        PreviewRowKind::Removed => StyledLine::new().exact(RED, "-").exact(RED, text),
        PreviewRowKind::Gap => StyledLine::new().exact(CYAN, text),
        PreviewRowKind::Note => StyledLine::new().exact(DIM, "\\ ").exact(DIM, text),
    }
}

/// Returns the last row of an open prompt. The hint explains an ignored key.
pub(super) fn waiting_row(request: &ApprovalRequest, left: Option<Duration>, hint: &str) -> StyledLine {
    let offered = offered_options(&request.options);
    let numbers = if offered.len() == 1 { "1".to_owned() } else { format!("1–{}", offered.len()) };
    let letters: String = letters(offered).iter().map(|letter| format!(", {letter}")).collect();
    let line = corner().exact(YELLOW, hint).exact(PLAIN, "press ").exact(BOLD, numbers + &letters);
    let line = line.exact(PLAIN, " · ").exact(BOLD, REASON_KEY.to_string()).exact(PLAIN, " denies with a reason");
    let Some(left) = left else { return line };
    let (style, by_itself) = match request.default {
        DefaultDecision::Allow => (YELLOW, "allows"),
        DefaultDecision::Deny => (DIM, "denies"),
    };
    line.exact(PLAIN, " · ").exact(style, format!("{by_itself} in {}", format_remaining(left)))
}

/// Adds the key for the next request of a list.
pub(super) fn with_others(row: StyledLine, others: usize) -> StyledLine {
    match others {
        0 => row,
        others => row.exact(PLAIN, " · ").exact(BOLD, "Esc").exact(PLAIN, format!(": next ({others} more)")),
    }
}

/// Returns the last row while early keys are discarded.
pub(super) fn settling_row() -> StyledLine {
    corner().exact(DIM, "…")
}

pub(super) fn answered_row(effect: Effect) -> StyledLine {
    match effect {
        Effect::AllowOnce => corner().exact(GREEN, "✓ allowed once"),
        Effect::AllowAlways => corner().exact(GREEN, "✓ allowed for this session"),
        Effect::Deny => corner().exact(RED, "✗ denied"),
        Effect::DenyAlways => corner().exact(RED, "✗ denied for this session"),
    }
}

pub(super) fn timed_out_row(default: DefaultDecision) -> StyledLine {
    match default {
        DefaultDecision::Allow => corner().exact(YELLOW, "✓ allowed by default: no answer in time"),
        DefaultDecision::Deny => corner().exact(RED, "✗ denied by default: no answer in time"),
    }
}

/// The row for an answer in another channel: what it was, by whom, and where.
pub(super) fn elsewhere_row(options: &[ApprovalOption], answer: &ApprovalAnswer) -> StyledLine {
    let by = describe_approver(answer.by.as_ref());
    match options.iter().find(|option| option.label == answer.label) {
        Some(option) => answered_row(option.effect).exact(DIM, format!(" {by}")),
        None => corner().exact(RED, "✗ denied").exact(DIM, format!(": unknown option `{}` {by}", answer.label)),
    }
}

/// An answer in another channel to a request that was not on the screen yet, as a line of text.
pub(super) fn describe_answer(options: &[ApprovalOption], answer: &ApprovalAnswer) -> String {
    let option = options.iter().find(|option| option.label == answer.label);
    let word = if option.is_some_and(|option| option.effect.allows()) { "allowed" } else { "denied" };
    format!("{word} {}", describe_approver(answer.by.as_ref()))
}

/// The row for a decision that was made without this process.
pub(super) fn decided_row(decision: &ApprovalDecision) -> StyledLine {
    let (style, word) = if decision.granted { (GREEN, "✓ allowed") } else { (RED, "✗ denied") };
    corner().exact(style, word).exact(DIM, format!(" {}", describe_basis(decision)))
}

/// The row for a request that is left open.
pub(super) fn open_row() -> StyledLine {
    corner().exact(DIM, "○ not answered here")
}

pub(super) fn withdrawn_row() -> StyledLine {
    corner().exact(DIM, "○ withdrawn: the operation was cancelled")
}

pub(super) fn denied_row() -> StyledLine {
    corner().exact(RED, "✗ denied")
}

/// Returns the option for a key: its number, or the first letter of its label if that is unique.
pub(super) fn find_option(options: &[ApprovalOption], key: char) -> Option<&ApprovalOption> {
    let options = offered_options(options);
    let number = key.to_digit(10).and_then(|digit| usize::try_from(digit).ok());
    match number {
        Some(number) => options.get(number.checked_sub(1)?),
        None => {
            let key = key.to_lowercase().next()?;
            let mut meant = options.iter().filter(|option| first_letter(option) == Some(key));
            meant.next().filter(|_| meant.next().is_none())
        }
    }
}

/// Returns the option that denies, preferably only once.
pub(super) fn find_denial(options: &[ApprovalOption]) -> Option<&ApprovalOption> {
    let with = |effect| options.iter().find(|option| option.effect == effect);
    with(Effect::Deny).or_else(|| with(Effect::DenyAlways))
}

fn offered_options(options: &[ApprovalOption]) -> &[ApprovalOption] {
    &options[..options.len().min(MAX_OPTIONS)]
}

fn first_letter(option: &ApprovalOption) -> Option<char> {
    option.label.chars().next()?.to_lowercase().next().filter(|letter| letter.is_alphabetic())
}

fn letters(options: &[ApprovalOption]) -> Vec<char> {
    let mut count = HashMap::new();
    let letters: Vec<_> = options.iter().filter_map(first_letter).collect();
    for letter in &letters {
        *count.entry(*letter).or_insert(0) += 1;
    }
    letters.into_iter().filter(|letter| count.get(letter) == Some(&1)).collect()
}

fn hook_text(head: StyledLine, text: &str, room: usize) -> Vec<StyledLine> {
    let mut lines = text.split('\n').enumerate();
    let first = lines.next().map(|(_, line)| head.exact(PLAIN, line));
    let all = first.into_iter().chain(lines.map(|(_, line)| StyledLine::new().exact(PLAIN, line)));
    let rows = all.flat_map(|line| line.wrap(room - 2, Break::Words)).enumerate();
    rows.map(|(row, line)| if row == 0 { line } else { StyledLine::new().exact(PLAIN, "  ").then(&line) }).collect()
}

/// Returns the options with their effects, because the kernel applies the effect and never the label.
fn options(request: &ApprovalRequest, room: usize) -> Vec<StyledLine> {
    let offered = offered_options(&request.options);
    let labels: Vec<StyledLine> =
        offered.iter().map(|option| StyledLine::new().exact(BOLD, &option.label).truncate(30)).collect();
    let widest = labels.iter().map(StyledLine::width).max().unwrap_or(0);
    let mut rows = Vec::new();
    for (number, (option, label)) in (1..).zip(offered.iter().zip(&labels)) {
        let padding = " ".repeat(widest - label.width() + 3);
        let head = StyledLine::new().exact(BOLD, format!("{number}  ")).then(label).exact(PLAIN, padding);
        let indent = head.width();
        let style = if option.effect.allows() { GREEN } else { RED };
        let chooses = option.effect == Effect::AllowAlways && !request.offers.is_empty();
        let effect = if chooses { CHOICE } else { describe_effect(option.effect) };
        let effect = StyledLine::new().exact(style, effect);
        for (row, line) in effect.wrap(room.saturating_sub(indent).max(16), Break::Words).iter().enumerate() {
            let head = if row == 0 { head.clone() } else { StyledLine::new().exact(PLAIN, " ".repeat(indent)) };
            rows.push(head.then(line));
        }
    }
    let more = request.options.len() - offered.len();
    if more > 0 {
        rows.push(StyledLine::new().exact(YELLOW, format!("… {more} more, not available in the terminal")));
    }
    rows
}

fn describe_effect(effect: Effect) -> &'static str {
    match effect {
        Effect::AllowOnce => "allow this once",
        Effect::AllowAlways => "allow, and don't ask this again in this session",
        Effect::Deny => "deny this once",
        Effect::DenyAlways => "deny, and don't ask this again in this session",
    }
}

/// Splits a line into rows. Continuation rows are marked, so that they cannot imitate separate lines.
pub(super) fn mark_rows(mark: &str, line: &StyledLine, room: usize) -> Vec<StyledLine> {
    let rows = line.wrap(room - 2, Break::Anywhere).into_iter().enumerate();
    rows.map(|(row, line)| StyledLine::new().exact(DIM, if row == 0 { mark } else { "↪ " }).then(&line)).collect()
}

pub(super) fn bar(space: &str) -> StyledLine {
    StyledLine::new().exact(YELLOW, "│").exact(PLAIN, space)
}

pub(super) fn corner() -> StyledLine {
    StyledLine::new().exact(YELLOW, "╰─ ")
}

/// Formats a duration as hours, minutes and seconds, rounded up to a second.
pub(super) fn format_remaining(left: Duration) -> String {
    let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use amplifier_agent::tool::Workspace;
    use amplifier_core::OpenRequest;
    use amplifier_core::{
        Approval, Coordinator, EventData, HookRegistry, HookResult, TOOL_PRE, approval_channel, data,
    };
    use serde_json::json;

    use super::*;

    const SIZE: Size = Size { columns: 80, rows: 24 };

    /// The request that the kernel makes of a hook's question about a command.
    async fn request(command: &str, reason: &str, approval: Approval) -> Arc<OpenRequest> {
        requested(data! { "tool_name": "Bash", "tool_input": { "command": command } }, reason, approval).await
    }

    /// The same about any call, in a workspace with a file `notes.txt` of three lines.
    async fn requested(data: EventData, reason: &str, approval: Approval) -> Arc<OpenRequest> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("notes.txt"), "one\ntwo\nthree\n").unwrap();
        let (approvals, mut inbox) = approval_channel();
        let hooks = HookRegistry::new();
        let result = HookResult::ask(approval).because(reason);
        hooks.hook(TOOL_PRE).named("guard").run(move |_| result.clone());
        let session =
            Coordinator::builder(hooks).approvals(approvals).previews(Workspace::new(folder.path()).unwrap()).build();
        let emission = tokio::spawn(async move { session.emit(TOOL_PRE, data).await });
        let question = inbox.next().await.unwrap();
        let request = question.request.clone();
        drop(question);
        let _ = emission.await.unwrap();
        request
    }

    fn text(request: &ApprovalRequest, all: bool) -> String {
        let lines: Vec<_> = rows(request, SIZE, all).iter().map(|row| row.render(false)).collect();
        lines.join("\n")
    }

    fn three() -> Approval {
        Approval::new("Publish?\x1b[2K").options(["Allow once", "Allow always", "Deny"])
    }

    #[tokio::test]
    async fn a_question_shows_the_action_the_words_of_the_hook_and_what_each_option_does() {
        let request = request("cargo publish", "It cannot\nbe undone.", three()).await;
        let expected = "\
╭─ approval needed  hook guard asks at tool:pre
│ Bash
│   cargo publish
│
│ hook guard says: Publish?␛[2K
│ Reason: It cannot
│   be undone.
│
│ 1  Allow once     allow this once
│ 2  Allow always   allow, and don't ask this again in this session
│ 3  Deny           deny this once";
        assert_eq!(text(&request, false), expected);
    }

    /// The rows between the head and the words of the hook.
    async fn shown(data: EventData) -> String {
        let request = requested(data, "", Approval::new("?")).await;
        let text = text(&request, true);
        let (_, shown) = text.split_once('\n').unwrap();
        shown.split("\n│\n").next().unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_change_is_drawn_with_what_is_removed_added_and_left() {
        let input = json!({ "file_path": "notes.txt", "content": "one\n2\nthree" });
        let expected = "\
│ Write  notes.txt  +2 −2
│   @@ -1,3 +1,3 @@
│    one
│   -two
│   -three
│   +2
│   +three
│   \\ no line break at the end of the file";
        assert_eq!(shown(data! { "tool_name": "Write", "tool_input": input }).await, expected);
    }

    #[tokio::test]
    async fn what_will_be_refused_or_is_too_large_is_said_first() {
        let input = json!({ "command": "make \u{202e}all\x1b[1A", "timeout": 601 });
        let expected = "\
│ Bash
│ ! will be refused: invalid input of `Bash`: `timeout` is 601, and must be bet
│ ↪ ween 1 and 600 seconds
│   {
│     \"command\": \"make \\u{202e}all\\u001b[1A\",
│     \"timeout\": 601
│   }";
        assert_eq!(shown(data! { "tool_name": "Bash", "tool_input": input }).await, expected);
        let input = json!({ "command": "x".repeat(ActionPreview::LARGEST_BODY), "timeout": 60 });
        let drawn = shown(data! { "tool_name": "Bash", "tool_input": input }).await;
        assert!(drawn.starts_with("│ Bash\n│ ! this is too large to be shown in full: "), "{}", &drawn[..200]);
        assert!(drawn.ends_with("│ · timeout: 60"));
    }

    #[test]
    fn no_line_of_an_action_can_pass_for_a_word_about_it() {
        let line = |text: &str| StyledLine::new().exact(PLAIN, text);
        let rows: Vec<_> = [("  ", line("! x")), ("! ", line("x")), ("· ", line("x"))]
            .iter()
            .flat_map(|(mark, line)| mark_rows(mark, line, 20))
            .map(|row| row.render(false))
            .collect();
        assert_eq!(rows, ["  ! x", "! x", "· x"]);
    }

    #[tokio::test]
    async fn a_long_command_is_folded_until_all_of_it_is_asked_for() {
        let command: Vec<_> = (1..=30).map(|number| format!("step {number}")).collect();
        let request = request(&command.join("\n"), "", Approval::new("?")).await;
        let folded = text(&request, false);
        assert!(folded.contains("│   step 6\n│ … 21 more lines here, press + to see all …\n│   step 28\n"), "{folded}");
        let whole = text(&request, true);
        assert!(command.iter().all(|step| whole.contains(&format!("│   {step}\n"))), "{whole}");
    }

    #[tokio::test]
    async fn a_line_that_goes_on_does_not_pass_for_a_new_one() {
        let request = request(&"x".repeat(80), "", Approval::new("?")).await;
        let expected = format!("│   {}\n│ ↪ {}\n", "x".repeat(75), "x".repeat(5));
        assert!(text(&request, false).contains(&expected));
    }

    #[tokio::test]
    async fn an_option_does_what_the_kernel_says_whatever_its_label_promises() {
        let options = [ApprovalOption::new("Cancel", Effect::AllowAlways), ApprovalOption::new("Go\non", Effect::Deny)];
        let request = request("ls", "", Approval::new("?").options(options)).await;
        let expected = "\
│ 1  Cancel   allow, and don't ask this again in this session
│ 2  Go␊on    deny this once";
        assert!(text(&request, false).ends_with(expected), "{}", text(&request, false));
    }

    #[tokio::test]
    async fn no_more_options_are_offered_than_there_are_keys() {
        let options = (1..=11).map(|number| ApprovalOption::new(format!("option {number}"), Effect::Deny));
        let request = request("ls", "", Approval::new("?").options(options)).await;
        let expected = "│ 9  option 9   deny this once\n│ … 2 more, not available in the terminal";
        assert!(text(&request, false).ends_with(expected), "{}", text(&request, false));
        assert_eq!(waiting_row(&request, None, "").render(false), "╰─ press 1–9 · / denies with a reason");
    }

    #[tokio::test]
    async fn the_last_row_says_which_keys_count_and_what_time_will_decide() {
        let request = request("ls", "", three()).await;
        let shown = |left| waiting_row(&request, left, "").render(false);
        assert_eq!(shown(None), "╰─ press 1–3, d · / denies with a reason");
        let left = Duration::from_millis(298_500);
        assert_eq!(shown(Some(left)), "╰─ press 1–3, d · / denies with a reason · denies in 4:59");
        assert_eq!(
            shown(Some(Duration::from_secs(3661))),
            "╰─ press 1–3, d · / denies with a reason · denies in 1:01:01"
        );
    }

    #[tokio::test]
    async fn a_key_means_an_option_only_if_it_means_no_other() {
        let request = request("ls", "", three()).await;
        let label = |key| find_option(&request.options, key).map(|option| option.label.as_str());
        let meant = ['0', '1', '2', '3', '4', 'a', 'd', 'D', 'x', '+'].map(label);
        let (once, always, deny) = (Some("Allow once"), Some("Allow always"), Some("Deny"));
        assert_eq!(meant, [None, once, always, deny, None, None, deny, deny, None, None]);
    }

    #[test]
    fn a_refusal_for_this_time_goes_before_a_lasting_one() {
        let option = |label: &str| ApprovalOption::from(label);
        let label = |options: &[ApprovalOption]| find_denial(options).map(|option| option.label.clone());
        assert_eq!(label(&[option("Never"), option("No")]), Some("No".into()));
        assert_eq!(label(&[option("Yes"), option("Never")]), Some("Never".into()));
        assert_eq!(label(&[option("Yes")]), None);
    }
}
