//! A model server on loopback that plays one call.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::LiveCall;
use super::wire::{Turn, Wire};

/// The largest request of a client.
const MAX_REQUEST: u64 = 64 << 20;

/// A model that asks for one call, and then says that it is done. It serves until the process ends.
pub(super) struct ScriptedModel {
    port: u16,
    script: Arc<ModelScript>,
}

struct ModelScript {
    call: LiveCall,
    requests: AtomicU64,
    was_called: AtomicBool,
    has_result: AtomicBool,
}

impl ScriptedModel {
    /// Starts the server.
    pub(super) fn start(call: LiveCall) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let script = Arc::new(ModelScript {
            call,
            requests: AtomicU64::new(0),
            was_called: AtomicBool::new(false),
            has_result: AtomicBool::new(false),
        });
        let shared = script.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let script = shared.clone();
                // A client that closes its connection early shows in its own result.
                thread::spawn(move || script.serve(stream));
            }
        });
        Ok(Self { port, script })
    }

    /// Returns the address.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns `true` if the client sent the prompt.
    pub(super) fn was_called(&self) -> bool {
        self.script.was_called.load(Ordering::SeqCst)
    }

    /// Returns `true` if the client sent the result of the call.
    pub(super) fn has_result(&self) -> bool {
        self.script.has_result.load(Ordering::SeqCst)
    }
}

impl ModelScript {
    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut first = String::new();
        reader.read_line(&mut first)?;
        let path = first.split(' ').nth(1).and_then(|target| target.split('?').next()).unwrap_or_default().to_owned();
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) =
                line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            {
                length = value.trim().parse().map_err(|_| io::Error::other(format!("invalid `{name}`")))?;
            }
        }
        let mut body = Vec::new();
        reader.take(MAX_REQUEST.min(length)).read_to_end(&mut body)?;
        let (status, kind, body) = self.answer(&path, &body);
        let mut stream = stream;
        write!(
            stream,
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )?;
        stream.flush()
    }

    fn answer(&self, path: &str, body: &[u8]) -> (&'static str, &'static str, String) {
        let json = "application/json";
        if path.ends_with("count_tokens") || path.ends_with("countTokens") {
            return ("200 OK", json, r#"{"input_tokens":10,"totalTokens":10}"#.to_owned());
        }
        if path.ends_with("/models") {
            return ("200 OK", json, r#"{"object":"list","data":[{"id":"scripted","object":"model"}]}"#.to_owned());
        }
        let Some(wire) = Wire::of(path) else {
            return ("404 Not Found", json, r#"{"error":{"message":"unknown path"}}"#.to_owned());
        };
        let request: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        let text = request.to_string();
        let has_tools = request.get("tools").and_then(|tools| tools.as_array()).is_some_and(|tools| !tools.is_empty());
        // Titles and summaries are requests without the prompt or without tools.
        let turn = match (has_tools && text.contains(&self.call.nonce), wire.has_result(&text)) {
            (false, _) => Turn::Text("a title"),
            (true, false) => {
                self.was_called.store(true, Ordering::SeqCst);
                Turn::Call(&self.call)
            }
            (true, true) => {
                self.has_result.store(true, Ordering::SeqCst);
                Turn::Text("done")
            }
        };
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        let is_stream = wire.is_stream(path, &request);
        let kind = if is_stream { "text/event-stream" } else { json };
        ("200 OK", kind, wire.write(&turn, &request, number, is_stream))
    }
}
