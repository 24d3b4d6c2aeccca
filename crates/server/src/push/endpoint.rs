//! Rules for the addresses of push services. A browser names them, so they must not lead to the machine or its network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Url};

use super::client::limited_client;

/// Largest length of an endpoint, in bytes.
const LONGEST: usize = 2048;

/// The clients for push services: one for those on the internet, and one for those that the owner allows by name.
pub(super) struct PushServices {
    /// Origins of the owner's own push services, such as `https://push.example`.
    own: Vec<String>,
    public: Client,
    private: Client,
}

impl PushServices {
    /// Creates the clients without connecting.
    ///
    /// # Errors
    /// If an origin is invalid, or TLS is not available.
    pub(super) fn new(own: &[String]) -> Result<Self, String> {
        let own = own.iter().map(|origin| parse_origin(origin)).collect::<Result<_, _>>()?;
        let problem = |error: reqwest::Error| format!("cannot create a client for push services: {error}");
        Ok(Self {
            own,
            public: limited_client()
                .https_only(true)
                // A proxy would resolve the name itself.
                .no_proxy()
                .dns_resolver(Arc::new(PublicResolver))
                .build()
                .map_err(problem)?,
            private: limited_client().no_proxy().build().map_err(problem)?,
        })
    }

    /// Checks an endpoint, and returns it with the client for it. Names are resolved and checked when it is used.
    ///
    /// # Errors
    /// The reason why the endpoint is refused.
    pub(super) fn check(&self, endpoint: &str) -> Result<(Url, &Client), String> {
        if endpoint.len() > LONGEST {
            return Err(format!("longer than {LONGEST} bytes"));
        }
        let url = Url::parse(endpoint).map_err(|error| error.to_string())?;
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err("has a user name, a password or a fragment".to_owned());
        }
        if self.own.contains(&url.origin().ascii_serialization()) {
            return Ok((url, &self.private));
        }
        match url.domain() {
            _ if url.scheme() != "https" => Err("expected `https`".to_owned()),
            _ if url.port().is_some() => Err("expected the usual port 443".to_owned()),
            Some(domain) if is_public_name(domain) => Ok((url, &self.public)),
            _ => Err("expected the public name of a push service".to_owned()),
        }
    }
}

fn parse_origin(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| format!("invalid push service `{text}`: {error}"))?;
    let origin = url.origin().ascii_serialization();
    if !matches!(url.scheme(), "http" | "https") || origin != text.trim_end_matches('/') {
        return Err(format!("invalid push service `{text}`; expected an origin such as `https://push.example`"));
    }
    Ok(origin)
}

/// Returns `true` for a name that is meant for the internet. Its addresses are checked by the resolver.
fn is_public_name(name: &str) -> bool {
    const PRIVATE: [&str; 7] = ["local", "localhost", "internal", "intranet", "lan", "home", "arpa"];
    let name = name.strip_suffix('.').unwrap_or(name);
    name.rsplit_once('.').is_some_and(|(_, last)| !PRIVATE.iter().any(|private| last.eq_ignore_ascii_case(private)))
}

/// Resolves names to public addresses only. The client connects to these and asks nobody else, so a name that changes
/// its addresses in between gains nothing.
struct PublicResolver;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err("the name has no public address".into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation();
    // "This network", shared addresses of providers, protocol assignments, benchmarks, and everything reserved.
    let reserved = match address.octets() {
        [0, ..] | [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] | [240..=255, ..] => true,
        [100, second, ..] => (64..128).contains(&second),
        _ => false,
    };
    !special && !reserved
}

/// Only global unicast addresses, without those that lead to IPv4 addresses or are reserved.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        [0x2001, 0x0db8, ..] | [0x2001, 0..=0x01ff, ..] | [0x2002, ..] | [0x3fff, 0..=0x0fff, ..] => false,
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_https_names_and_the_owners_services_are_used() {
        let services = PushServices::new(&["http://127.0.0.1:9".to_owned(), "https://push.lan/".to_owned()]).unwrap();
        for endpoint in [
            "https://fcm.googleapis.com/fcm/send/abc",
            "https://updates.push.services.mozilla.com/wpush/v2/abc",
            "https://web.push.apple.com/abc",
            "http://127.0.0.1:9/any",
            "https://push.lan/any",
        ] {
            assert!(services.check(endpoint).is_ok(), "{endpoint}");
        }
        let long = format!("https://push.example/{}", "x".repeat(LONGEST));
        for endpoint in [
            "",
            "push.example",
            "http://push.example/",
            "ftp://push.example/",
            "file:///etc/passwd",
            "https://push.example:8443/",
            "https://user@push.example/",
            "https://user:word@push.example/",
            "https://push.example/#x",
            "https://127.0.0.1/",
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://93.184.216.34/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://localhost/",
            "https://box/",
            "https://box.local/",
            "https://box.local./",
            "https://metadata.google.internal/",
            "http://127.0.0.1:8/",
            "https://127.0.0.1:9/",
            "https://push.lan:8443/",
            &long,
        ] {
            assert!(services.check(endpoint).is_err(), "{endpoint}");
        }
    }

    #[test]
    fn origins_of_own_services_are_checked() {
        for origin in ["push.example", "https://push.example/path", "ftp://push.example", "https://u@push.example"] {
            assert!(PushServices::new(&[origin.to_owned()]).is_err(), "{origin}");
        }
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_this_machine_is_not_connected_to() {
        let found = PublicResolver.resolve("localhost".parse().unwrap()).await;
        assert_eq!(found.err().unwrap().to_string(), "the name has no public address");
    }

    #[test]
    fn only_global_addresses_are_public() {
        let verdict = |address: &str| is_public(address.parse().unwrap());
        for address in ["93.184.216.34", "8.8.8.8", "100.128.0.1", "2606:2800:220:1::1", "2a00:1450::1"] {
            assert!(verdict(address), "{address}");
        }
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.8",
            "192.168.1.1",
            "198.18.0.1",
            "203.0.113.7",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:8.8.8.8",
            "64:ff9b::a00:1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "2002:a00:1::",
        ] {
            assert!(!verdict(address), "{address}");
        }
    }
}
