//! The servers: processes of their own, so that what they take is theirs alone.

use std::fmt;
use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use amplifier_audit::Log;
use amplifier_server::LinkListener;
use amplifier_server::access::{Access, AccessOptions};
use amplifier_server::client::Address;
use amplifier_server::feed::Feed;
use amplifier_server::{App, Hub, Server, ServerOptions};
use tokio::time::sleep;

use crate::http::Reach;
use crate::{Result, floor, runtime};

/// What a process is started with to be a server.
const SERVER: &str = "--be-the-server";
const FLOOR: &str = "--be-the-floor";

/// Where the floor says where it is.
const FLOOR_ADDRESS: &str = "floor-address";

/// Any port of this machine, and nobody else's.
pub(crate) const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Is a server, if that is a role of one, until whoever started it is gone.
pub(crate) fn serve(role: &str, folder: &Path) -> Option<Result<()>> {
    match role {
        SERVER => Some(serve_all(folder)),
        FLOOR => Some(serve_floor(folder)),
        _ => None,
    }
}

fn serve_all(folder: &Path) -> Result<()> {
    runtime(2)?.block_on(async {
        let own = folder.join("server");
        let app = App {
            hub: Hub::new(),
            feed: Feed::open(&folder.join("audit"), None)?,
            access: Access::open(&own, AccessOptions::default())?,
            log: Log::at(folder.join("audit"), folder.join("audit.key")).open()?,
        };
        let hub = app.hub.clone();
        let running = Server::start(app, ServerOptions::new(LOOPBACK)).await?;
        let _door = LinkListener::open(&own, hub)?;
        alone().await?;
        running.stop().await;
        Ok(())
    })
}

fn serve_floor(folder: &Path) -> Result<()> {
    runtime(2)?.block_on(async {
        let listener = tokio::net::TcpListener::bind(LOOPBACK).await?;
        let address = listener.local_addr()?.to_string();
        fs::write(folder.join("new"), address)?;
        fs::rename(folder.join("new"), folder.join(FLOOR_ADDRESS))?;
        tokio::spawn(floor::echo(listener));
        alone().await
    })
}

/// Returns when whoever started this process is gone, or has had enough.
async fn alone() -> Result<()> {
    let waited = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await?;
    Ok(waited.map(drop)?)
}

/// A server that runs. It ends with this.
pub(crate) struct Child {
    process: std::process::Child,
    folder: PathBuf,
}

impl Child {
    pub(crate) fn server(folder: &Path) -> Result<Self> {
        Self::start(SERVER, folder)
    }

    pub(crate) fn floor(folder: &Path) -> Result<Self> {
        Self::start(FLOOR, folder)
    }

    fn start(role: &str, folder: &Path) -> Result<Self> {
        let process = Command::new(std::env::current_exe()?).arg(role).arg(folder).stdin(Stdio::piped()).spawn()?;
        Ok(Self { process, folder: folder.to_owned() })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Where it is, as soon as it says so.
    pub(crate) async fn reach(&self) -> Result<Reach> {
        for _ in 0..200 {
            if self.folder.join("server/socket").exists()
                && let Some(found) = Address::find(&self.folder.join("server"))?
            {
                return Ok(Reach::new(found.reach));
            }
            if let Ok(address) = fs::read_to_string(self.folder.join(FLOOR_ADDRESS)) {
                return Ok(Reach::new(address.parse()?));
            }
            sleep(Duration::from_millis(50)).await;
        }
        Err("the server does not start".into())
    }

    /// Looks at its memory from now on.
    pub(crate) fn watch_memory(&self) -> MemoryWatch {
        let (id, is_over) = (self.id(), Arc::new(AtomicBool::new(false)));
        let over = is_over.clone();
        let watching = std::thread::spawn(move || {
            let first = resident(id);
            let mut memory = Memory { first, most: first, last: first };
            while !over.load(Ordering::Relaxed) {
                memory.last = resident(id);
                memory.most = memory.most.max(memory.last);
                std::thread::sleep(Duration::from_millis(100));
            }
            memory
        });
        MemoryWatch { is_over, watching }
    }

    pub(crate) fn end(mut self) {
        // It ends when nobody is left to read from.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What of a process is in memory, in bytes; nothing if it is gone.
fn resident(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) << 10
}

pub(crate) struct MemoryWatch {
    is_over: Arc<AtomicBool>,
    watching: JoinHandle<Memory>,
}

impl MemoryWatch {
    pub(crate) fn end(self) -> Memory {
        self.is_over.store(true, Ordering::Relaxed);
        self.watching.join().unwrap_or_default()
    }
}

/// What a process had in memory, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) first: u64,
    pub(crate) most: u64,
    pub(crate) last: u64,
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, most, last] = [self.first, self.most, self.last].map(|bytes| bytes / 1_000_000);
        write!(f, "{first} {most} {last} MB")
    }
}

/// The processor time of a process, in hundredths of a second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage(u64);

impl Usage {
    pub(crate) fn of(id: u32) -> Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
        // The name of the program may have spaces in it.
        let (_, fields) = stat.rsplit_once(") ").ok_or("the kernel says something else")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        Ok(Self([11, 12].into_iter().filter_map(|place| fields.get(place)?.parse::<u64>().ok()).sum()))
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self(self.0 - before.0)
    }

    pub(crate) fn seconds(self) -> f64 {
        self.0 as f64 / 100.0
    }
}
