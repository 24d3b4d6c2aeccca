//! NATS servers in a temporary folder.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use amplifier_fleet::{Connection, ConnectionOptions, Replicas, create_streams};
use tempfile::TempDir;

use super::{LIMIT, Result};

/// The most bytes of all records.
const AUDIT_BYTES: i64 = 2 << 30;

/// One server or three, which end with the value.
pub(crate) struct Centre {
    servers: Vec<Child>,
    urls: Vec<String>,
    _folder: TempDir,
}

impl Centre {
    pub(crate) fn start(program: &Path, servers: usize) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut centre = Self { servers: Vec::new(), urls: Vec::new(), _folder: folder };
        let routes = (0..servers).map(|_| free_port()).collect::<Result<Vec<u16>>>()?;
        let all: Vec<String> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        for (index, route) in routes.iter().enumerate() {
            let own = centre._folder.path().join(index.to_string());
            fs::create_dir(&own)?;
            let port = free_port()?;
            let cluster = match servers {
                1 => String::new(),
                _ => format!("cluster {{ name: bench, listen: 127.0.0.1:{route}, routes: [{}] }}", all.join(", ")),
            };
            let text = format!(
                "server_name: s{index}\nlisten: 127.0.0.1:{port}\njetstream {{ store_dir: {own:?}, sync_interval: always }}\n{cluster}\n"
            );
            let configuration = own.join("nats.conf");
            fs::write(&configuration, text)?;
            let mut command = Command::new(program);
            command.arg("--config").arg(configuration).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            centre.servers.push(command.spawn()?);
            centre.urls.push(format!("nats://127.0.0.1:{port}"));
        }
        Ok(centre)
    }

    /// Connects, and creates the streams as soon as a leader is elected.
    pub(crate) async fn create_streams(&self) -> Result<Connection> {
        let replicas = if self.servers.len() == 1 { Replicas::One } else { Replicas::Three };
        let begun = Instant::now();
        loop {
            let options = ConnectionOptions::new("bench".parse()?, self.urls.clone());
            let created = match Connection::open(options).await {
                Ok(connection) => create_streams(&connection, replicas, AUDIT_BYTES).await.map(|()| connection),
                Err(error) => Err(error),
            };
            match created {
                Ok(connection) => return Ok(connection),
                Err(error) if begun.elapsed() > LIMIT => return Err(error.into()),
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
    }

    pub(crate) fn stop(&mut self) {
        for server in &mut self.servers {
            // A server that has ended already is no failure.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

impl Drop for Centre {
    fn drop(&mut self) {
        self.stop();
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
