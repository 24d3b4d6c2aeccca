//! The configuration of the servers at the centre.

use std::net::IpAddr;
use std::path::Path;

use super::EnrolError;

/// The address of a server.
pub(super) struct ServerAddress {
    pub(super) is_tls: bool,
    pub(super) host: String,
    pub(super) port: u16,
}

/// Reads the addresses of one or three servers. Without TLS, a server must be on this machine.
pub(super) fn addresses(servers: &[String]) -> Result<Vec<ServerAddress>, EnrolError> {
    let invalid = |cause: String| EnrolError::Servers { cause };
    if !matches!(servers.len(), 1 | 3) {
        return Err(invalid(format!("{} addresses", servers.len())));
    }
    servers
        .iter()
        .map(|server| {
            let parts = server.split_once("://").and_then(|(scheme, rest)| {
                let (host, port) = rest.rsplit_once(':').unwrap_or((rest, "4222"));
                Some((scheme, host, port.parse().ok()?))
            });
            let Some((scheme @ ("tls" | "nats"), host, port)) = parts else {
                return Err(invalid(format!("`{server}`")));
            };
            let is_host = !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || ".-_:[]".contains(c));
            let is_loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
            if !is_host || (scheme == "nats" && !is_loopback) {
                return Err(invalid(format!("`{server}`")));
            }
            Ok(ServerAddress { is_tls: scheme == "tls", host: host.trim_matches(['[', ']']).to_owned(), port })
        })
        .collect()
}

/// Returns the configuration of one server. Only the folder of its streams differs on its machine.
pub(super) fn server(number: usize, own: &ServerAddress, all: &[ServerAddress], store: &Path) -> String {
    let (port, store) = (own.port, store.display());
    let listen = if own.is_tls { "0.0.0.0" } else { "127.0.0.1" };
    let mut text = format!(
        "# A server of the fleet. Copy this folder to its machine, and start it with `nats-server --config nats-{0}.conf`.\n\
         server_name: amplifier-{0}\nlisten: \"{listen}:{port}\"\n\
         # The first line of a client has its identity with all permissions.\nmax_control_line: 64KB\n\
         jetstream {{\n  store_dir: \"{store}\"\n  # Without this, a power failure loses records.\n  sync_interval: always\n}}\n",
        number + 1
    );
    let files = "cert_file: \"./server.pem\", key_file: \"./server.key\", ca_file: \"./organisation.pem\"";
    if own.is_tls {
        text += "tls { cert_file: \"./server.pem\", key_file: \"./server.key\" }\n";
    }
    if all.len() > 1 {
        let cluster_port = |address: &ServerAddress| address.port.saturating_add(2000);
        let routes: Vec<String> =
            all.iter().map(|address| format!("\"nats://{}:{}\"", address.host, cluster_port(address))).collect();
        let tls = if own.is_tls { format!("\n  tls {{ {files} }}") } else { String::new() };
        text += &format!(
            "cluster {{\n  name: amplifier\n  listen: \"{listen}:{}\"\n  routes: [{}]{tls}\n}}\n",
            cluster_port(own),
            routes.join(", ")
        );
    }
    text + "include accounts.conf\n"
}

/// Returns the accounts: those of the organisation and of the servers themselves, each with its public key and JWT.
pub(super) fn accounts(operator: &str, account: (&str, &str), system: (&str, &str)) -> String {
    format!(
        "# Written by `amplifier fleet`. After a revocation, copy this file to each server, and run `nats-server --signal reload`.\n\
         operator: \"{operator}\"\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{\n  {}: \"{}\"\n  {}: \"{}\"\n}}\n",
        system.0, account.0, account.1, system.0, system.1
    )
}
