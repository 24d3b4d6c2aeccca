//! Prints what a hook in another process costs, beside floors measured in the same run.
//!
//! `cargo run --profile dist -p amplifier-bench --bin transports`. The program at the other end is this one, started with the name of a part
//! to play; both sides of a row talk to the same one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use amplifier_core::{EventData, Hook, data};
use amplifier_modules::transport::{
    CommandHook, CommandOptions, HookRequest, HttpHook, HttpOptions, Program, WorkerHook, WorkerOptions,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// How long each measurement takes at least, and how often it is made: the middle one counts.
const ROUND: Duration = Duration::from_millis(200);
const ROUNDS: usize = 11;

const ANSWER: &[u8] = br#"{"action":"continue"}"#;

fn main() -> ExitCode {
    let done = match std::env::args().nth(1).as_deref() {
        Some("command") => answer_once(),
        Some("worker") => answer_lines(),
        _ => measure(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// A command hook: reads all, answers, ends.
fn answer_once() -> Result<()> {
    let mut request = Vec::new();
    std::io::stdin().read_to_end(&mut request)?;
    Ok(std::io::stdout().write_all(ANSWER)?)
}

/// A worker: answers every line, with the number that it was asked with.
fn answer_lines() -> Result<()> {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        let number = number(&line).unwrap_or_default();
        writeln!(output, r#"{{"id":{number},"result":{{"action":"continue"}}}}"#)?;
        output.flush()?;
        line.clear();
    }
    Ok(())
}

/// The id of a request, without reading the rest of it as JSON: the other end is to cost as little as it can.
fn number(line: &[u8]) -> Option<&str> {
    let at = line.windows(5).position(|part| part == br#""id":"#)? + 5;
    let digits = line[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&line[at..at + digits]).ok()
}

/// A server: answers every request of a connection.
fn answer_requests(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let answer = [
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", ANSWER.len())
            .as_bytes(),
        ANSWER,
    ]
    .concat();
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        stream.write_all(&answer)?;
    }
}

fn measure() -> Result<()> {
    let myself = std::env::current_exe()?.to_string_lossy().into_owned();
    let content: String = "fn main() { println!(\"hello\"); }\n".repeat(24);
    let event = data! {
        "tool_name": "Write", "tool_call_id": "call-1", "session_id": "bench",
        "tool_input": { "file_path": "src/main.rs", "content": content },
    };
    let request = HookRequest::new("bench", "tool:pre", &event, None);
    let request = serde_json::to_vec(&request)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!(
        "What a hook in another process costs, with {} bytes of request. Median of {ROUNDS} rounds.\n",
        request.len()
    );
    println!("{:>34} {:>10} {:>10} {:>7} {:>8}", "", "floor", "ours", "ratio", "target");

    let command = CommandHook::new(CommandOptions::new("bench", Program::new([myself.as_str(), "command"])))?;
    let spawn = || spawned(&myself, &request);
    row("command, spawned", 1.2, spawn, || runtime.block_on(asked(&command, &event)));
    // What fork would have to copy the page tables of.
    let ballast = vec![1_u8; 1 << 30];
    row("the same with 1 GiB in the parent", 1.2, spawn, || runtime.block_on(asked(&command, &event)));
    drop(std::hint::black_box(ballast));

    for (name, program) in
        [("worker, Rust", vec![myself.as_str(), "worker"]), ("worker, Python", vec!["python3", "-c", PYTHON])]
    {
        let worker = WorkerHook::new(WorkerOptions::new("bench", Program::new(program.clone())))?;
        let mut child =
            Command::new(program[0]).args(&program[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("no pipes".into());
        };
        let mut output = BufReader::new(output);
        let line = [&request[..request.len() - 1], br#","id":1}"#, b"\n"].concat();
        let mut answer = Vec::new();
        let exchange = || {
            input.write_all(&line)?;
            answer.clear();
            output.read_until(b'\n', &mut answer)?;
            Ok(())
        };
        row(name, 2.0, exchange, || runtime.block_on(asked(&worker, &event)));
        drop(input);
        child.wait()?;
    }

    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || _ = answer_requests(stream).inspect_err(|error| eprintln!("{error}")));
        }
    });
    let http = HttpHook::new(HttpOptions::new("bench", format!("http://{address}/hook")))?;
    let mut stream = runtime.block_on(tokio::net::TcpStream::connect(address))?;
    stream.set_nodelay(true)?;
    let head = format!("POST /hook HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n\r\n", request.len());
    let whole = [head.as_bytes(), &request].concat();
    let mut answer = [0; 4096];
    // On the same runtime: an agent does not block while it waits.
    let exchange = || {
        runtime.block_on(async {
            stream.write_all(&whole).await?;
            let mut read = 0;
            while !answer[..read].ends_with(ANSWER) {
                read += stream.read(&mut answer[read..]).await?;
            }
            Ok(())
        })
    };
    row("http, keep-alive", 1.5, exchange, || runtime.block_on(asked(&http, &event)));
    Ok(())
}

/// The least that a worker in Python does.
const PYTHON: &str = r#"
import sys
for line in sys.stdin.buffer:
    at = line.find(b'"id":') + 5
    end = at
    while line[end:end + 1].isdigit(): end += 1
    sys.stdout.buffer.write(b'{"id":' + line[at:end] + b',"result":{"action":"continue"}}\n')
    sys.stdout.buffer.flush()
"#;

async fn asked(hook: &impl Hook, event: &EventData) -> Result<()> {
    hook.handle("tool:pre", event).await.map(drop).map_err(|error| error.to_string().into())
}

/// The least that a process for each event costs: spawned, asked, heard, waited for.
fn spawned(program: &str, request: &[u8]) -> Result<()> {
    let mut child = Command::new(program)
        .arg("command")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (Some(mut input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("no pipes".into());
    };
    input.write_all(request)?;
    drop(input);
    let mut answer = Vec::new();
    output.read_to_end(&mut answer)?;
    if child.wait()?.success() && answer == ANSWER { Ok(()) } else { Err("the floor got no answer".into()) }
}

/// Measures both in turns, so that noise hits both alike, and compares those of the same round.
fn row(name: &str, target: f64, mut floor: impl FnMut() -> Result<()>, mut ours: impl FnMut() -> Result<()>) {
    let rounds = (0..ROUNDS).map(|_| {
        let (floor, ours) = (time(&mut floor), time(&mut ours));
        [floor, ours, ours / floor]
    });
    let rounds: Vec<[f64; 3]> = rounds.collect();
    let [floor, ours, ratio] = [0, 1, 2].map(|column| {
        let mut values: Vec<f64> = rounds.iter().map(|round| round[column]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    });
    println!("{name:>34} {floor:>7.1} µs {ours:>7.1} µs {ratio:>6.2}x {target:>7.1}x");
}

/// How many microseconds one takes.
fn time(exchange: &mut impl FnMut() -> Result<()>) -> f64 {
    let begun = Instant::now();
    let mut count = 0;
    while begun.elapsed() < ROUND {
        if let Err(error) = exchange() {
            eprintln!("{error}");
            return f64::NAN;
        }
        count += 1;
    }
    begun.elapsed().as_secs_f64() * 1e6 / f64::from(count)
}
