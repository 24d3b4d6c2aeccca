//! The list of rules that an answer may create, from narrow to wide.

use std::time::Duration;

use amplifier_core::{ApprovalOption, ApprovalRequest, ChosenRule, Effect, RuleOffer, RuleScope};

use super::line::{BOLD, Break, CYAN, DIM, GREEN, PLAIN, StyledLine};
use super::prompt::{bar, corner, format_remaining};

/// The key for the next scope.
pub(super) const SCOPE_KEY: char = 'p';
/// The largest number of rules on the screen: each has its own key.
const RULES: usize = 9;

/// An open list of the rules that a request offers, for one scope at a time.
pub(super) struct RuleMenu<'a> {
    request: &'a ApprovalRequest,
    option: &'a ApprovalOption,
    scope: RuleScope,
}

impl<'a> RuleMenu<'a> {
    /// Opens the list for an option that always allows; `None` if the option needs no list.
    pub(super) fn open(request: &'a ApprovalRequest, option: &'a ApprovalOption) -> Option<Self> {
        let first = request.offers.first().filter(|_| option.effect == Effect::AllowAlways)?;
        Some(Self { request, option, scope: first.scope })
    }

    /// The option that the user chose before.
    pub(super) fn option(&self) -> &'a ApprovalOption {
        self.option
    }

    /// Returns the rows of the list. Each rule has its description, and the name that files and lists have.
    pub(super) fn rows(&self, columns: usize) -> Vec<StyledLine> {
        let room = columns.saturating_sub(3).max(20);
        let mut rows = vec![bar("")];
        let title = StyledLine::new().exact(BOLD, &*self.option.label).exact(PLAIN, ": ");
        let title = title.exact(GREEN, format!("allow without asking, {}", place(self.scope)));
        rows.extend(title.wrap(room, Break::Words).iter().map(|row| bar(" ").then(row)));
        for (number, offer) in (1..).zip(self.offers()) {
            let head = StyledLine::new().exact(BOLD, format!("{number}  "));
            let label = StyledLine::new().exact(PLAIN, &*offer.label);
            rows.extend(behind(&head, &label, room));
            let names = offer
                .operations
                .iter()
                .fold(StyledLine::new().exact(DIM, "rule:"), |line, name| line.exact(PLAIN, " ").exact(CYAN, name));
            rows.extend(behind(&StyledLine::new().exact(PLAIN, "   "), &names, room));
        }
        rows
    }

    /// Returns the last row, with the keys that count.
    pub(super) fn waiting_row(&self, left: Option<Duration>, hint: &str) -> StyledLine {
        let count = self.offers().count();
        let numbers = if count == 1 { "1".to_owned() } else { format!("1–{count}") };
        let line = corner().exact(super::line::YELLOW, hint).exact(PLAIN, "press ").exact(BOLD, numbers);
        let line = match self.next_scope() {
            Some(scope) => {
                line.exact(PLAIN, " · ").exact(BOLD, SCOPE_KEY.to_string()).exact(PLAIN, format!(": {}", place(scope)))
            }
            None => line,
        };
        let line = line.exact(PLAIN, " · ").exact(BOLD, "Esc").exact(PLAIN, ": back");
        match left {
            Some(left) => line.exact(PLAIN, " · ").exact(DIM, format_remaining(left)),
            None => line,
        }
    }

    /// Returns the rule for a key: its number.
    pub(super) fn choose(&self, key: char) -> Option<ChosenRule> {
        let number = key.to_digit(10).and_then(|digit| usize::try_from(digit).ok())?;
        let offer = self.offers().nth(number.checked_sub(1)?)?;
        Some(ChosenRule { operations: offer.operations.clone(), scope: offer.scope })
    }

    /// Shows the rules of the next scope. Returns `false` if there is no other.
    pub(super) fn turn(&mut self) -> bool {
        let next = self.next_scope();
        self.scope = next.unwrap_or(self.scope);
        next.is_some()
    }

    /// Returns the last row after a rule was chosen.
    pub(super) fn chosen_row(&self, rule: &ChosenRule) -> StyledLine {
        let offer = self.request.offers.iter().find(|offer| offer.is_chosen(rule));
        let label = offer.map(|offer| offer.label.as_str()).unwrap_or_default();
        corner()
            .exact(GREEN, "✓ allowed from now on: ")
            .exact(GREEN, label)
            .exact(DIM, format!(" ({})", place(rule.scope)))
    }

    fn offers(&self) -> impl Iterator<Item = &'a RuleOffer> {
        let scope = self.scope;
        self.request.offers.iter().filter(move |offer| offer.scope == scope).take(RULES)
    }

    fn next_scope(&self) -> Option<RuleScope> {
        let mut scopes: Vec<RuleScope> = self.request.offers.iter().map(|offer| offer.scope).collect();
        scopes.dedup();
        let at = scopes.iter().position(|scope| *scope == self.scope)?;
        scopes.get((at + 1) % scopes.len()).copied().filter(|scope| *scope != self.scope)
    }
}

fn place(scope: RuleScope) -> &'static str {
    match scope {
        RuleScope::Session => "until this session ends",
        RuleScope::Project => "in all sessions in this folder",
        RuleScope::User => "in all your sessions",
    }
}

/// Returns a text behind a head. Further rows are indented.
fn behind(head: &StyledLine, text: &StyledLine, room: usize) -> Vec<StyledLine> {
    let indent = head.width();
    let rows = text.wrap(room.saturating_sub(indent).max(16), Break::Anywhere).into_iter().enumerate();
    let indented =
        |row| if row == 0 { head.clone() } else { StyledLine::new().exact(DIM, format!("{:>indent$}", "↪ ")) };
    rows.map(|(row, line)| bar(" ").then(&indented(row).then(&line))).collect()
}

#[cfg(test)]
mod tests {
    use amplifier_core::{
        Approval, Coordinator, HookRegistry, HookResult, OnError, OperationPart, OperationWidth, TOOL_PRE, ToolPre,
        approval_channel, data,
    };

    use super::*;

    async fn request() -> ApprovalRequest {
        let (approvals, mut inbox) = approval_channel();
        let hooks = HookRegistry::new();
        let ask = HookResult::ask(Approval::new("Run it?").options(["Allow once", "Allow always", "Deny"]));
        hooks.hook(TOOL_PRE).named("confirm").on_error(OnError::Deny).run(move |_| ask.clone());
        let part = OperationPart {
            widths: vec![
                OperationWidth::new("run cargo test", "exactly `cargo test\u{202e}`"),
                OperationWidth::new("run cargo test *", "`cargo test` with any arguments"),
            ],
        };
        let session = Coordinator::builder(hooks).approvals(approvals).operations(vec![part]).build();
        let emission = tokio::spawn(async move { session.emit(TOOL_PRE, ToolPre::new("Bash", data! {})).await });
        let question = inbox.next().await.unwrap();
        let mut request = question.request.request.clone();
        drop(question);
        let _ = emission.await.unwrap();
        let for_project = request.offers.iter().map(|offer| RuleOffer { scope: RuleScope::Project, ..offer.clone() });
        request.offers = request.offers.iter().cloned().chain(for_project).collect();
        request
    }

    fn text(menu: &RuleMenu<'_>) -> String {
        menu.rows(60).iter().map(|row| row.render(false)).collect::<Vec<_>>().join("\n")
    }

    #[tokio::test]
    async fn each_rule_is_shown_with_its_name_and_its_key() {
        let request = request().await;
        let menu = RuleMenu::open(&request, &request.options[1]).unwrap();
        let expected = "\
│
│ Allow always: allow without asking, until this session
│ ends
│ 1  exactly `cargo test\\u{202e}`
│    rule: run cargo test
│ 2  `cargo test` with any arguments
│    rule: run cargo test *";
        assert_eq!(text(&menu), expected);
        let last = menu.waiting_row(Some(Duration::from_secs(61)), "").render(false);
        assert_eq!(last, "╰─ press 1–2 · p: in all sessions in this folder · Esc: back · 1:01");
        assert!(RuleMenu::open(&request, &request.options[0]).is_none());
    }

    #[tokio::test]
    async fn a_number_chooses_the_rule_of_the_scope_on_the_screen() {
        let request = request().await;
        let mut menu = RuleMenu::open(&request, &request.options[1]).unwrap();
        let rule = |scope| ChosenRule { operations: vec!["run cargo test *".to_owned()], scope };
        assert_eq!(menu.choose('2'), Some(rule(RuleScope::Session)));
        assert!(menu.turn());
        assert_eq!(menu.choose('2'), Some(rule(RuleScope::Project)));
        for key in ['0', '3', 'a', 'p'] {
            assert_eq!(menu.choose(key), None, "{key}");
        }
        let row = menu.chosen_row(&rule(RuleScope::Project)).render(false);
        assert_eq!(row, "╰─ ✓ allowed from now on: `cargo test` with any arguments (in all sessions in this folder)");
        assert!(menu.turn());
        assert_eq!(menu.choose('2'), Some(rule(RuleScope::Session)));
    }
}
