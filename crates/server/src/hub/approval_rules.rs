//! Approval rules: of sessions, and in files.

use amplifier_core::{Actor, ApprovalRule, RuleScope};
use amplifier_link::{MachineReply, MachineRequest, RuleList, ServerMessage, UnreadableFile};

use super::machine_calls::unexpected;
use super::{Hub, HubError, HubErrorCode, HubEvent, NoReply, PATIENCE};
use crate::api_types::{ApprovalRules, ListedRule};

impl Hub {
    /// Returns the approval rules of sessions, of projects and of the user, and the files that cannot be read.
    ///
    /// # Errors
    /// If the machine does not reply.
    pub async fn rules(&self) -> Result<ApprovalRules, HubError> {
        let list = match self.has_machine() {
            true => match self.ask_about_rules(MachineRequest::ListRules).await? {
                MachineReply::Rules(list) => list,
                reply => return Err(unexpected(reply)),
            },
            false => RuleList::default(),
        };
        self.take_rules(list.clone());
        let mut rules = self.state().rules();
        rules.extend(list.rules.into_iter().map(ListedRule::from));
        Ok(ApprovalRules { rules, unreadable: list.unreadable })
    }

    /// Adds an approval rule. Sessions read the rule files at each request.
    ///
    /// # Errors
    /// If the rule is invalid, or cannot be written or recorded.
    pub async fn add_rule(&self, rule: ApprovalRule) -> Result<ListedRule, HubError> {
        rule.check().map_err(|invalid| HubError::new(HubErrorCode::InvalidRule, invalid.to_string()))?;
        let rule = ApprovalRule { event: None, created_at: None, ..rule };
        if rule.scope == RuleScope::Session {
            let none = || HubError::new(HubErrorCode::InvalidRule, "missing `session` for a rule of this scope");
            let session = rule.session.clone().ok_or_else(none)?;
            let rule = ApprovalRule { project: None, ..rule };
            let id = rule.id();
            self.change_rule(&session, |reference| ServerMessage::AddRule { reference, rule: Box::new(rule) }).await?;
            let added = self.state().rules().into_iter().find(|rule| rule.id == id);
            return added.ok_or_else(|| {
                HubError::new(
                    HubErrorCode::Failed,
                    "the session took the rule but does not list it; check its rules before adding it again",
                )
            });
        }
        match self.ask_about_rules(MachineRequest::AddRule { rule }).await? {
            MachineReply::RuleAdded { rule, list } => {
                self.announce_rules(list);
                Ok(ListedRule::from(ApprovalRule { by: None, ..rule }))
            }
            reply => Err(unexpected(reply)),
        }
    }

    /// Revokes an approval rule.
    ///
    /// # Errors
    /// If the rule is not found, or the change cannot be written or recorded.
    pub async fn revoke(&self, id: &str, by: Actor) -> Result<(), HubError> {
        let rules = self.state().rules();
        let found = rules.into_iter().find(|rule| rule.id == id);
        let rule = id.to_owned();
        if let Some(session) = found.and_then(|found| found.rule.session) {
            return self.change_rule(&session, |reference| ServerMessage::RevokeRule { reference, rule, by }).await;
        }
        let unknown = || HubError::new(HubErrorCode::NotFound, format!("unknown rule `{id}`"));
        if !self.has_machine() {
            return Err(unknown());
        }
        let (found, list) = match self.ask_about_rules(MachineRequest::RevokeRule { rule, by }).await? {
            MachineReply::RuleRevoked { found, list } => (found, list),
            reply => return Err(unexpected(reply)),
        };
        match list.unreadable.first() {
            _ if found => {}
            None => return Err(unknown()),
            // The rule may be in the unreadable file.
            Some(UnreadableFile { file, reason }) => {
                let message = format!("rule `{id}` not found, and `{file}` cannot be read: {reason}");
                return Err(HubError::new(HubErrorCode::NotFound, message));
            }
        }
        self.announce_rules(list);
        Ok(())
    }

    /// Announces a change of rule files that was made here. The machine's later message about it changes nothing.
    fn announce_rules(&self, list: RuleList) {
        self.take_rules(list);
        self.announce(vec![HubEvent::Rules]);
    }

    /// Changes a rule of a session, and waits for the session's reply.
    async fn change_rule(&self, session: &str, message: impl FnOnce(u64) -> ServerMessage) -> Result<(), HubError> {
        let ((link, connection), reference) = {
            let mut state = self.state();
            (state.claim_link(session, false)?, state.next_reference())
        };
        let reply = self.shared.rule_changes.ask(&link, connection, reference, message(reference), PATIENCE).await;
        reply.unwrap_or_else(|failure| {
            Err(match failure {
                NoReply::NotSent | NoReply::Disconnected => HubError::offline(session),
                NoReply::TimedOut => {
                    HubError::new(HubErrorCode::TimedOut, "the session did not confirm the rule change in time")
                }
            })
        })
    }
}
