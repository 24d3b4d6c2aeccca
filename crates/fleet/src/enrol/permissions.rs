//! The subjects that an identity may use.

use std::time::Duration;

use serde_json::{Value, json};

use super::FleetRole;
use crate::{FleetName, subjects};

/// The longest time in which a service may reply.
const REPLY_LIMIT: Duration = Duration::from_mins(5);

/// The subjects that an identity may use. All others are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Subjects of messages and requests.
    pub publish: Vec<String>,
    /// Subjects of subscriptions.
    pub subscribe: Vec<String>,
    /// `true` for one reply to each request.
    pub replies: bool,
}

impl Permissions {
    /// Returns the permissions of an identity with these roles.
    pub fn new(name: &FleetName, roles: &[FleetRole]) -> Self {
        let mut all = Self { subscribe: vec![format!("{}.>", subjects::inbox(name))], ..Self::default() };
        for role in roles {
            match role {
                FleetRole::Machine => all.add_machine(name),
                FleetRole::Console => all.add_console(),
                FleetRole::Collector => all.add_collector(name),
                FleetRole::Service => all.add_service(name),
                FleetRole::Admin => all.add_admin(),
            }
        }
        all
    }

    fn add_machine(&mut self, name: &FleetName) {
        let own = |kind: &str| format!("{kind}.{name}.>");
        self.publish.extend([own("audit"), own("blob"), own("ask"), subjects::status(name)]);
        self.publish.extend(["hook.>", "hookall.>"].map(str::to_owned));
        // Only requests with the subject in their own subject: any other request could read the messages of all machines.
        let read = |stream: &str, subject: &str| subjects::last_message(stream, subject);
        self.publish.extend([
            read(subjects::AUDIT, &own("audit")),
            read(subjects::BLOBS, &own("blob")),
            read(subjects::RECEIPT, &own("receipt")),
            read(subjects::ASK, &own("ask")),
            read(subjects::ANSWER, &own("answer")),
            read(subjects::POLICY, "$KV.policy.pointer.>"),
            read(&subjects::bundle_stream(), &subjects::bundle_part("*", "*")),
        ]);
        self.subscribe.extend([own("answer"), own("receipt"), "$KV.policy.pointer.>".to_owned()]);
    }

    fn add_console(&mut self) {
        self.publish.push("answer.>".to_owned());
        for stream in [subjects::ASK, subjects::ANSWER, subjects::STATUS, subjects::RECEIPT, subjects::AUDIT] {
            self.read_all(stream);
        }
        self.subscribe.extend(["ask.>", "answer.>", "receipt.>", "$KV.status.>"].map(str::to_owned));
    }

    fn add_collector(&mut self, name: &FleetName) {
        self.publish.push(format!("receipt.*.*.{name}"));
        for stream in [subjects::AUDIT, subjects::BLOBS, subjects::RECEIPT, subjects::STATUS] {
            self.read_all(stream);
        }
        self.subscribe.extend(["audit.>", "blob.>", "receipt.>"].map(str::to_owned));
    }

    fn add_service(&mut self, name: &FleetName) {
        self.subscribe.extend([format!("hook.{name}.> {}", subjects::HOOK_QUEUE), format!("hookall.{name}.>")]);
        self.replies = true;
    }

    fn add_admin(&mut self) {
        let bundles = format!("$O.{}.>", subjects::BUNDLES);
        self.publish.extend(["$JS.API.>".to_owned(), "$KV.policy.>".to_owned(), bundles]);
    }

    /// Adds the requests of readers of a whole stream.
    fn read_all(&mut self, stream: &str) {
        let api = ["STREAM.INFO", "CONSUMER.CREATE", "DIRECT.GET"];
        self.publish.extend(api.map(|request| format!("$JS.API.{request}.{stream}")));
        let api = ["CONSUMER.CREATE", "CONSUMER.INFO", "CONSUMER.DELETE", "CONSUMER.MSG.NEXT", "DIRECT.GET"];
        self.publish.extend(api.map(|request| format!("$JS.API.{request}.{stream}.>")));
        self.publish.extend(["$JS.ACK", "$JS.FC"].map(|kind| format!("{kind}.{stream}.>")));
    }

    /// Returns the permissions as claims of a user.
    pub(super) fn claims(&self) -> Value {
        // An empty list would allow everything.
        let publish = match self.publish.is_empty() {
            true => json!({ "deny": [">"] }),
            false => json!({ "allow": self.publish }),
        };
        let mut claims = json!({ "pub": publish, "sub": { "allow": self.subscribe } });
        if self.replies {
            claims["resp"] = json!({ "max": 1, "ttl": REPLY_LIMIT.as_nanos() as u64 });
        }
        claims
    }
}
