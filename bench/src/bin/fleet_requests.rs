//! Prints what a hook and an answer cost over NATS, beside floors measured in the same run.
//!
//! `NATS_SERVER=$(.ci/nats-server) cargo run --profile dist -p amplifier-bench --features fleet --bin fleet-requests`

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use amplifier_audit::SigningKey;
use amplifier_core::{
    Approval, ApprovalAnswer, Coordinator, EventData, Hook, HookRegistry, HookResult, TOOL_PRE, Verdict, data,
};
use amplifier_fleet::{
    Connection, ConnectionOptions, Console, ConsoleKeys, FleetApprovals, FleetApprovalsOptions, FleetHooks,
    HookService, Replicas, create_streams,
};
use amplifier_modules::transport::{HttpHook, HttpOptions, NatsHook, NatsOptions};
use tokio::sync::watch;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The number of hook calls and of answers.
const CALLS: usize = 5_000;
const ANSWERS: usize = 500;

const ANSWER: &[u8] = br#"{"action":"continue"}"#;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(measure())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn measure() -> Result<()> {
    let program = std::env::var("NATS_SERVER").map_err(|_| "set `NATS_SERVER` to a NATS server: .ci/nats-server")?;
    let folder = tempfile::tempdir()?;
    println!("{:>34} {:>9} {:>9} {:>9} {:>9}", "", "p50", "p99", "ratio", "target");
    hooks(&Server::start(&program, &folder.path().join("hooks"), 1)?).await?;
    for (servers, replicas) in [(1, Replicas::One), (3, Replicas::Three)] {
        let server = Server::start(&program, &folder.path().join(servers.to_string()), servers)?;
        answers(&server, replicas).await?;
    }
    Ok(())
}

/// One call at a time, in turns, so that noise hits both alike.
async fn hooks(server: &Server) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || _ = answer_requests(stream).inspect_err(|error| eprintln!("{error}")));
        }
    });
    let http = HttpHook::new(HttpOptions::new("bench", format!("http://{address}/hook")))?;
    let service = "bench".parse()?;
    let quiet = |_| async { Ok(HookResult::proceed()) };
    let _service = HookService::start(&server.connect("service").await?, &service, quiet).await?;
    let services = Arc::new(FleetHooks::new(server.connect("m1").await?));
    let nats = NatsHook::new(NatsOptions::new("bench", "bench"), services)?;
    let content: String = "fn main() { println!(\"hello\"); }\n".repeat(12);
    let event = data! {
        "tool_name": "Write", "tool_call_id": "call-1", "session_id": "bench",
        "tool_input": { "file_path": "src/main.rs", "content": content },
    };
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        floor.push(time(call(&http, &event)).await?);
        ours.push(time(call(&nats, &event)).await?);
    }
    let floor = row("hook: http, keep-alive", floor, None);
    row("hook: nats", ours, Some((floor, 2.0)));
    Ok(())
}

async fn call(hook: &impl Hook, event: &EventData) -> Result<()> {
    hook.handle("tool:pre", event).await.map(drop).map_err(|error| error.to_string().into())
}

/// From the moment at which a console sends an answer to the kernel's decision. The floor is a stored message.
async fn answers(server: &Server, replicas: Replicas) -> Result<()> {
    let machine = server.connect("m1").await?;
    let started = Instant::now();
    while let Err(error) = create_streams(&machine, replicas, 1 << 30).await {
        if started.elapsed() > Duration::from_secs(60) {
            return Err(error.into());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let key = SigningKey::generate()?;
    let keys: ConsoleKeys = [("c1".parse()?, key.public())].into_iter().collect();
    let (_policy, consoles) = watch::channel(keys);
    let options = FleetApprovalsOptions { run: "run".parse()?, name: None, workspace: "/".into(), consoles };
    let approvals = FleetApprovals::start(machine.clone(), options).await?;
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("guard").run(|_| HookResult::ask(Approval::new("Go?").options(["Allow once", "Deny"])));
    let session = Coordinator::builder(hooks).session_id("s").approvals(approvals).build();
    let console = Console::start(server.connect("c1").await?, key);
    let name = "m1".parse()?;
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    for number in 0..ANSWERS {
        let subject = format!("answer.floor.s.r.{number}");
        let publish = async { Ok(machine.publish(&subject, Default::default(), "ann".into()).await.map(drop)?) };
        floor.push(time(publish).await?);
        let asking = session.clone();
        let operation =
            tokio::spawn(async move { asking.emit(TOOL_PRE, data! { "tool_name": "Bash", "tool_input": {} }).await });
        let request = loop {
            match console.open_requests().into_iter().find(|open| open.number == number as u64 + 1) {
                Some(open) => break open,
                None if operation.is_finished() => return Err("the hook did not request an approval".into()),
                None => tokio::time::sleep(Duration::from_micros(200)).await,
            }
        };
        let decided = async {
            let answer = ApprovalAnswer::by("Allow once", "ann", "console");
            let (sent, verdict) = tokio::join!(console.answer(&name, &request.id, answer), async {
                let verdict = operation.await;
                (Instant::now(), verdict)
            });
            sent?;
            match verdict {
                (at, Ok(Verdict::Proceed(_))) => Ok(at),
                (_, other) => Err(format!("not allowed: {other:?}").into()),
            }
        };
        let started = Instant::now();
        let at: Result<Instant> = decided.await;
        ours.push(at?.duration_since(started));
    }
    let servers = server.children.len();
    let floor = row(&format!("{servers} server: a stored message"), floor, None);
    row(&format!("{servers} server: console to kernel"), ours, Some((floor, 4.0)));
    Ok(())
}

async fn time(action: impl Future<Output = Result<()>>) -> Result<Duration> {
    let started = Instant::now();
    action.await?;
    Ok(started.elapsed())
}

/// Prints a row, and returns its median.
fn row(name: &str, mut times: Vec<Duration>, floor: Option<(Duration, f64)>) -> Duration {
    times.sort();
    let (half, most) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    let [p50, p99] = [half, most].map(|time| time.as_secs_f64() * 1e6);
    match floor {
        Some((floor, target)) => {
            let ratio = half.as_secs_f64() / floor.as_secs_f64();
            println!("{name:>34} {p50:>6.0} µs {p99:>6.0} µs {ratio:>8.2}x {target:>8.1}x");
        }
        None => println!("{name:>34} {p50:>6.0} µs {p99:>6.0} µs"),
    }
    half
}

/// An HTTP server that answers every request of a connection.
fn answer_requests(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", ANSWER.len());
    let answer = [head.as_bytes(), ANSWER].concat();
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

/// One server, or a cluster of three, all of which sync each message.
struct Server {
    children: Vec<Child>,
    urls: Vec<String>,
}

impl Server {
    fn start(program: &str, folder: &Path, count: usize) -> Result<Self> {
        let port = || Ok::<u16, std::io::Error>(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port());
        let routes: Vec<u16> = (0..count).map(|_| port()).collect::<std::result::Result<_, _>>()?;
        let addresses: Vec<String> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let mut server = Self { children: Vec::new(), urls: Vec::new() };
        for (index, route) in routes.iter().enumerate() {
            let (own, port) = (folder.join(index.to_string()), port()?);
            std::fs::create_dir_all(&own)?;
            let cluster = match count {
                1 => String::new(),
                _ => format!(
                    "server_name: s{index}\ncluster {{ name: bench, listen: 127.0.0.1:{route}, routes: [{}] }}",
                    addresses.join(", ")
                ),
            };
            let text = format!(
                "listen: 127.0.0.1:{port}\njetstream {{ store_dir: {own:?}, sync_interval: always }}\n{cluster}"
            );
            let configuration = own.join("nats.conf");
            std::fs::write(&configuration, text)?;
            let mut command = Command::new(program);
            command.arg("--config").arg(&configuration).stdout(Stdio::null()).stderr(Stdio::null());
            server.children.push(command.spawn()?);
            server.urls.push(format!("nats://127.0.0.1:{port}"));
        }
        Ok(server)
    }

    async fn connect(&self, name: &str) -> Result<Connection> {
        let started = Instant::now();
        loop {
            match Connection::open(ConnectionOptions::new(name.parse()?, self.urls.clone())).await {
                Ok(connection) => return Ok(connection),
                Err(error) if started.elapsed() > Duration::from_secs(30) => return Err(error.into()),
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for child in &mut self.children {
            // A server that has ended is no harm.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
