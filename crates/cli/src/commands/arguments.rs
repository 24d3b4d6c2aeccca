//! Values of arguments, with messages that say what to write.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The port of the server, unless another one is given.
const DEFAULT_PORT: u16 = 7878;

/// Parses a count or the number of a record.
pub(crate) fn whole_number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a whole number from 0, such as `20`".to_owned())
}

/// Parses the address of a server.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if text.parse::<u16>().is_ok() {
        return Err(format!("missing address; write `127.0.0.1:{text}`"));
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Err(format!("missing port; write `{}`", SocketAddr::new(ip, DEFAULT_PORT)));
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(format!("expected ADDRESS:PORT; write `127.0.0.1:{DEFAULT_PORT}`"));
    };
    if port.parse::<u16>().is_err() {
        return Err(format!("invalid port `{port}`; expected 0 to 65535"));
    }
    match host {
        "" => Err(format!("missing address; write `127.0.0.1:{port}`")),
        _ => Err(format!("expected an IP address, not `{host}`; for this machine, write `127.0.0.1:{port}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_not_complete_is_completed_in_the_message() {
        let check = |text: &str, expected: &str| assert_eq!(listen_address(text).unwrap_err(), expected, "{text}");
        check("7879", "missing address; write `127.0.0.1:7879`");
        check(":7879", "missing address; write `127.0.0.1:7879`");
        check("localhost:7999", "expected an IP address, not `localhost`; for this machine, write `127.0.0.1:7999`");
        check("0.0.0.0", "missing port; write `0.0.0.0:7878`");
        check("::1", "missing port; write `[::1]:7878`");
        check("127.0.0.1:99999", "invalid port `99999`; expected 0 to 65535");
        check(":99999", "invalid port `99999`; expected 0 to 65535");
        check("here", "expected ADDRESS:PORT; write `127.0.0.1:7878`");
        assert_eq!(listen_address("[::1]:0").unwrap().port(), 0);
    }
}
