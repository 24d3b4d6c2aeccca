//! A component that tries what `data.try` says, and answers with what came of it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

wit_bindgen::generate!({ path: "../../wit", world: "hook" });

struct Tried;

static CALLS: AtomicU32 = AtomicU32::new(0);

impl Guest for Tried {
    fn handle(request: String) -> Result<String, String> {
        let request: Value = serde_json::from_str(&request).map_err(|error| error.to_string())?;
        let data = &request["data"];
        let text = |name: &str| data[name].as_str().unwrap_or_default();
        let said = match text("try") {
            "count" => (CALLS.fetch_add(1, Ordering::Relaxed) + 1).to_string(),
            "environment" => format!("{:?}", std::env::vars().collect::<Vec<_>>()),
            "arguments" => format!("{:?}", std::env::args().collect::<Vec<_>>()),
            "input" => outcome(std::io::read_to_string(std::io::stdin())),
            "list" => outcome(list(text("path"))),
            "read" => outcome(std::fs::read_to_string(text("path"))),
            "write" => outcome(std::fs::write(text("path"), text("text")).map(|()| "written".to_owned())),
            "remove" => outcome(std::fs::remove_file(text("path")).map(|()| "removed".to_owned())),
            "connect" => outcome(connect(text("path"))),
            "listen" => outcome(TcpListener::bind(text("path")).map(|_| "listening".to_owned())),
            "datagram" => outcome(UdpSocket::bind(text("path")).map(|_| "bound".to_owned())),
            "stderr" => {
                eprint!("{}", text("text"));
                "said".to_owned()
            }
            "stdout" => {
                println!("{}", text("text"));
                "said".to_owned()
            }
            "flood" => loop {
                // Whoever ignores the error goes on for ever.
                let _ = std::io::stderr().write_all(&[b'x'; 4096]);
            },
            "sleep" => {
                std::thread::sleep(Duration::from_secs(3600));
                "slept".to_owned()
            }
            "thread" => outcome(std::thread::Builder::new().spawn(|| ()).map(|_| "started".to_owned())),
            "process" => outcome(std::process::Command::new("/bin/sh").spawn().map(|_| "started".to_owned())),
            "panic" => panic!("no more"),
            "exit" => std::process::exit(0),
            "memory" => vec![1_u8; data["bytes"].as_u64().unwrap_or_default() as usize].len().to_string(),
            other => return Err(format!("nobody knows how to try `{other}`")),
        };
        Ok(json!({ "user_message": said }).to_string())
    }
}

export!(Tried);

fn outcome(tried: std::io::Result<String>) -> String {
    tried.unwrap_or_else(|error| format!("{:?}", error.kind()))
}

fn list(path: &str) -> std::io::Result<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names.join(" "))
}

fn connect(address: &str) -> std::io::Result<String> {
    let mut connection = TcpStream::connect(address)?;
    connection.write_all(b"hello\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    Ok(answer)
}
