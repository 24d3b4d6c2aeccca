use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use amplifier_fleet::{Connection, ConnectionOptions};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The longest start of a server on a busy machine.
const START: Duration = Duration::from_secs(60);

/// Returns the server program of a variable. Without the variable, tests with servers do not run, and say so.
fn program(variable: &str, install: &str) -> Option<PathBuf> {
    let program = std::env::var_os(variable).map(PathBuf::from);
    if program.is_none() {
        eprintln!("not run: set `{variable}` to a NATS server, for example with `{variable}=$({install})`");
    }
    program
}

/// A supported server.
pub(crate) fn new_server() -> Option<PathBuf> {
    let program = program("NATS_SERVER", ".ci/nats-server");
    assert!(program.is_some() || std::env::var_os("CI").is_none(), "CI needs `NATS_SERVER`");
    program
}

/// A server that is too old.
pub(crate) fn old_server() -> Option<PathBuf> {
    program("NATS_SERVER_OLD", ".ci/nats-server old")
}

/// A running server, which is killed on drop.
pub(crate) struct Server {
    program: PathBuf,
    child: Child,
    port: u16,
    configuration: PathBuf,
    _folder: Option<TempDir>,
}

impl Server {
    /// Starts a single server with JetStream that syncs each message. `extra` is added to the configuration: users, permissions, limits.
    pub(crate) fn start(program: &Path, extra: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Self::start_in(program, folder.path(), free_port(), &format!("{extra}\n"), sync_of(program));
        server._folder = Some(folder);
        server
    }

    /// Starts a server in a folder, which outlives it.
    pub(crate) fn start_in(program: &Path, folder: &Path, port: u16, extra: &str, sync: &str) -> Self {
        let store = folder.join("store");
        let configuration = folder.join("nats.conf");
        let text = format!("listen: 127.0.0.1:{port}\njetstream {{\n store_dir: {store:?}\n {sync}\n}}\n{extra}");
        fs::write(&configuration, text).unwrap();
        let child = spawn(program, &configuration);
        let mut server = Self { program: program.to_owned(), child, port, configuration, _folder: None };
        server.wait_until_ready();
        server
    }

    /// Starts a server with a given configuration, in its folder.
    pub(crate) fn start_with(program: &Path, configuration: PathBuf, port: u16) -> Self {
        let child = spawn(program, &configuration);
        let mut server = Self { program: program.to_owned(), child, port, configuration, _folder: None };
        server.wait_until_ready();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Connects without an identity of the server's configuration.
    pub(crate) async fn connect(&self, name: &str) -> Connection {
        Connection::open(ConnectionOptions::new(name.parse().unwrap(), [self.url()])).await.unwrap()
    }

    /// Ends the server as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts a killed server again, with the same port and the same folder.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(&self.program, &self.configuration);
        self.wait_until_ready();
    }

    /// Stops the server without ending it: connections stay open, nothing replies.
    pub(crate) fn pause(&self) {
        kill_process(self.pid(), Signal::STOP).unwrap();
    }

    /// Continues a paused server.
    pub(crate) fn resume(&self) {
        kill_process(self.pid(), Signal::CONT).unwrap();
    }

    /// Lets the server read its configuration again.
    pub(crate) fn reload(&self) {
        kill_process(self.pid(), Signal::HUP).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().try_into().unwrap()).unwrap()
    }

    fn wait_until_ready(&mut self) {
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let is_over = self.child.try_wait().unwrap().is_some() || start.elapsed() > START;
            assert!(
                !is_over,
                "the server does not start: {}",
                fs::read_to_string(log_file(&self.configuration)).unwrap()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A killed server is an error here, and no harm.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Three servers with three copies of each message.
pub(crate) struct Cluster {
    pub(crate) servers: Vec<Server>,
    _folder: TempDir,
}

impl Cluster {
    /// Starts three servers. `extra` is added to each configuration.
    pub(crate) fn start(program: &Path, extra: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let routes: Vec<u16> = (0..3).map(|_| free_port()).collect();
        let addresses: Vec<String> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let start = |(index, route): (usize, &u16)| {
            let own = folder.path().join(format!("s{index}"));
            fs::create_dir(&own).unwrap();
            let cluster = format!(
                "server_name: s{index}\ncluster {{ name: test, listen: 127.0.0.1:{route}, routes: [{}] }}\n{extra}\n",
                addresses.join(", ")
            );
            Server::start_in(program, &own, free_port(), &cluster, "sync_interval: always")
        };
        let servers = routes.iter().enumerate().map(start).collect();
        Self { servers, _folder: folder }
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.servers.iter().map(Server::url).collect()
    }

    /// Connects to all servers.
    pub(crate) async fn connect(&self, name: &str) -> Connection {
        Connection::open(ConnectionOptions::new(name.parse().unwrap(), self.urls())).await.unwrap()
    }

    /// The index of the server that leads a stream.
    pub(crate) async fn leader(&self, connection: &Connection, stream: &str) -> usize {
        let context = async_nats::jetstream::new(connection.client().clone());
        let start = Instant::now();
        loop {
            assert!(start.elapsed() < START, "no leader");
            if let Ok(mut stream) = context.get_stream(stream).await
                && let Ok(info) = stream.info().await
                && let Some(leader) = info.cluster.as_ref().and_then(|cluster| cluster.leader.as_deref())
            {
                return leader.trim_start_matches('s').parse().unwrap();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

fn spawn(program: &Path, configuration: &Path) -> Child {
    let log = fs::File::options().create(true).append(true).open(log_file(configuration)).unwrap();
    let mut command = Command::new(program);
    // The names of certificates are relative to the current folder.
    command.current_dir(configuration.parent().unwrap());
    command.arg("--config").arg(configuration).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().unwrap()
}

fn log_file(configuration: &Path) -> PathBuf {
    configuration.with_extension("log")
}

/// The setting for a sync of each message, which the oldest server does not know.
pub(crate) fn sync_of(program: &Path) -> &'static str {
    if version_of(program).starts_with("2.9") { "" } else { "sync_interval: always" }
}

fn version_of(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.trim().rsplit(['v', ' ']).next().unwrap().to_owned()
}

/// A port that nothing listened on a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
