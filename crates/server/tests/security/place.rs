//! A server for tests, and a client that sends exact bytes.

#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use amplifier_audit::Log;
use amplifier_core::Rate;
use amplifier_link::MachineReply;
use amplifier_server::access::{Access, AccessOptions, Role, TokenFiles};
use amplifier_server::feed::Feed;
use amplifier_server::{App, Hub, RunningServer, ServeError, Server, ServerOptions};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::machine;

/// Test time limit, longer than any operation here.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// A server and its credentials.
pub(crate) struct Place {
    pub(crate) running: RunningServer,
    pub(crate) folder: TempDir,
    pub(crate) tokens: BTreeMap<Role, String>,
    pub(crate) hub: Hub,
}

/// Limits that no test reaches by accident.
pub(crate) fn generous() -> AccessOptions {
    let plenty = Rate { burst: 1_000_000, every: Duration::from_micros(1) };
    AccessOptions { owner: "ada".to_owned(), requests: plenty, failures: plenty, ..AccessOptions::default() }
}

impl Place {
    pub(crate) async fn new() -> Self {
        Self::with(generous(), |_| ()).await
    }

    pub(crate) async fn with(access: AccessOptions, change: impl FnOnce(&mut ServerOptions)) -> Self {
        let mut options = ServerOptions::new(([127, 0, 0, 1], 0).into());
        change(&mut options);
        Self::start(tempfile::tempdir().unwrap(), access, options).await.unwrap()
    }

    pub(crate) async fn start(
        folder: TempDir,
        access: AccessOptions,
        options: ServerOptions,
    ) -> Result<Self, ServeError> {
        let server = folder.path().join("server");
        let files = TokenFiles::at(&server).unwrap();
        let mut tokens = BTreeMap::from([(Role::Admin, files.admin().unwrap())]);
        for role in [Role::Viewer, Role::Approver] {
            if files.list().unwrap().iter().all(|token| token.role != role) {
                tokens.insert(role, files.add(role.as_str(), role).unwrap());
            }
        }
        let app = Self::app(folder.path(), access);
        let hub = app.hub.clone();
        machine(&hub, |_| MachineReply::Invalid { error: "this test has neither sessions nor bundles".to_owned() })
            .await;
        Ok(Self { running: Server::start(app, options).await?, folder, tokens, hub })
    }

    fn app(folder: &Path, access: AccessOptions) -> App {
        App {
            hub: Hub::new(),
            feed: Feed::open(&folder.join("audit"), None).unwrap(),
            access: Access::open(&folder.join("server"), access).unwrap(),
            log: Log::at(folder.join("audit"), folder.join("key")).open().unwrap(),
        }
    }

    /// A server with this folder.
    pub(crate) async fn server(
        folder: &Path,
        access: AccessOptions,
        options: ServerOptions,
    ) -> Result<RunningServer, ServeError> {
        Server::start(Self::app(folder, access), options).await
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.running.address
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address())
    }

    pub(crate) fn bearer(&self, role: Role) -> String {
        format!("Bearer {}", self.tokens[&role])
    }

    /// A signed-in browser.
    pub(crate) fn browser(&self, role: Role) -> Browser {
        self.enter(&self.running.link(role.as_str(), role).unwrap())
    }

    /// Follows a link.
    pub(crate) fn enter(&self, link: &str) -> Browser {
        let entered = self.get(link.strip_prefix(&self.running.url).unwrap());
        assert_eq!(entered.status, 200, "{entered:?}");
        entered.check_protected();
        assert_eq!(entered.header("cache-control"), Some("no-store"));
        let (_, key) = entered.body.split_once("name=\"amplifier-key\" content=\"").unwrap();
        Browser {
            cookie: entered.header("set-cookie").unwrap().split(';').next().unwrap().to_owned(),
            key: key.split('"').next().unwrap().to_owned(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.ask(&Asked::new("GET", path))
    }

    /// Sends a request unchanged, with the right `Host` unless it has one.
    pub(crate) fn ask(&self, asked: &Asked) -> Reply {
        exchange(TcpStream::connect(self.address()).unwrap(), &asked.bytes(&self.address().to_string()))
    }
}

/// Sends bytes, and reads until the server closes. For an endless stream, reads the head and the data that came with
/// it.
pub(crate) fn exchange(mut stream: TcpStream, bytes: &[u8]) -> Reply {
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    // A server that refuses early may close before the whole request is sent.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => {
                answer.extend(&piece[..n]);
                if Reply::read(&answer).is_stream() {
                    break;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            // A stopped process that continues.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => panic!("{error}"),
        }
    }
    Reply::read(&answer)
}

/// Credentials of a signed-in browser: the `Cookie` header, and the key of its pages.
#[derive(Clone, Debug)]
pub(crate) struct Browser {
    pub(crate) cookie: String,
    pub(crate) key: String,
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<String>,
}

impl Asked {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self { method: method.to_uppercase(), path: path.to_owned(), headers: Vec::new(), body: None }
    }

    /// One more header.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// As the console sends it.
    pub(crate) fn by(self, Browser { cookie, key }: &Browser) -> Self {
        self.with("Cookie", cookie).with("X-Amplifier-Key", key)
    }

    /// A header with another value, or without any.
    pub(crate) fn set(mut self, name: &str, value: Option<&str>) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub(crate) fn json(self, body: &str) -> Self {
        let mut asked = self.set("Content-Type", Some("application/json"));
        asked.body = Some(body.to_owned());
        asked
    }

    fn bytes(&self, host: &str) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        let has = |name: &str| self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        if !has("Host") {
            text.push_str(&format!("Host: {host}\r\n"));
        }
        for (name, value) in self.headers.iter().filter(|(_, value)| value != "\0") {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = self.body.as_ref().filter(|_| !has("Transfer-Encoding") && !has("Content-Length")) {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        text.push_str("Connection: close\r\n\r\n");
        text.push_str(self.body.as_deref().unwrap_or_default());
        text.into_bytes()
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0);
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        Self { status, headers, body: body.to_owned() }
    }

    /// `true` if the response has no end.
    fn is_stream(&self) -> bool {
        self.status == 101 || self.header("content-type") == Some("application/x-ndjson")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The error code.
    pub(crate) fn code(&self) -> String {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        let error = &body["error"];
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "no error body: {self:?}");
        error["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Checks the headers of every response.
    pub(crate) fn check_protected(&self) {
        let policy = self.header("content-security-policy").unwrap_or_default();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; ") && !policy.contains("unsafe"),
            "{self:?}"
        );
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(self.header(name), Some(value), "{self:?}");
        }
        assert!(self.header("permissions-policy").is_some(), "{self:?}");
        assert!(self.header("cache-control").is_some(), "{self:?}");
        assert!(!self.headers.iter().any(|(name, _)| name.starts_with("access-control-")), "{self:?}");
    }
}
