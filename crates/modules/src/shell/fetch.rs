//! Programs that fetch URLs: the hosts, and uploads.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::command::Command;
use super::options::Arguments;
use super::syntax;
use super::word::Word;

/// Effects of a program that fetches a URL.
#[derive(Debug, Default)]
pub(super) struct Fetch {
    pub(super) hosts: Vec<String>,
    /// `true` if all hosts are this machine.
    pub(super) is_local: bool,
    /// `true` if the program only reads.
    pub(super) reads: bool,
    /// `true` if the program asks a service to delete something.
    pub(super) deletes: bool,
}

/// Options of `curl` that send data, or read settings from elsewhere.
const CURL_SENDS: &[&str] = &[
    "data",
    "data-raw",
    "data-binary",
    "data-ascii",
    "data-urlencode",
    "json",
    "form",
    "form-string",
    "upload-file",
    "config",
    "url-query",
    "quote",
    "mail-from",
    "netrc-file",
];

/// Options of `curl` and `wget` that redirect requests to another host.
const DETOURS: &[&str] = &[
    "proxy",
    "preproxy",
    "socks4",
    "socks4a",
    "socks5",
    "socks5-hostname",
    "connect-to",
    "resolve",
    "config",
    "doh-url",
    "proxy1.0",
    "haproxy-clientip",
    "execute",
    "input-file",
];

/// Returns the effects of `curl`, `wget` or `http`; `expand` returns the text of a word with known variables.
pub(super) fn fetch(
    name: &str,
    command: &Command,
    arguments: &Arguments,
    expand: impl Fn(&Word) -> Option<String>,
) -> Fetch {
    let known = |word: &Word| word.literal().map(str::to_owned).or_else(|| expand(word));
    let words: Option<Vec<String>> = command.arguments().iter().map(known).collect();
    if matches!(name, "http" | "https" | "xh") {
        return words.map_or_else(Fetch::default, |words| httpie(&words));
    }
    let Some(operands) = operands(name, command) else { return Fetch::default() };
    let urls: Vec<Option<String>> = operands.into_iter().chain(arguments.values("", &["url"])).map(known).collect();
    let hosts: Vec<String> = urls.iter().flatten().filter_map(|url| host(url)).collect();
    let is_detour = arguments.may_have(if name == "curl" { "xK" } else { "ie" }, DETOURS);
    let is_local =
        !urls.is_empty() && hosts.len() == urls.len() && hosts.iter().all(|host| is_loopback(host)) && !is_detour;
    let (method, sends) = match name {
        "curl" => {
            let method = arguments.values("X", &["request"]).map(Word::plain).next();
            (method, arguments.may_have("dFTKQ", CURL_SENDS))
        }
        _ => {
            let method = arguments.values("", &["method"]).map(Word::plain).next();
            (
                method,
                arguments
                    .may_have("ie", &["post-data", "post-file", "body-data", "body-file", "input-file", "execute"]),
            )
        }
    };
    let is_get = method.is_none_or(|method| matches!(method.to_ascii_uppercase().as_str(), "GET" | "HEAD" | "OPTIONS"));
    let is_plain =
        words.is_some_and(|words| !words.iter().any(|word| word.starts_with("file:") || word.starts_with('@')));
    let is_sent = sends || !is_get;
    let deletes = method.is_some_and(|method| method.eq_ignore_ascii_case("DELETE"))
        || is_sent && urls.iter().flatten().any(|url| names_deletion(url));
    Fetch { reads: is_plain && is_get && !sends && !hosts.is_empty() && !is_detour, hosts, is_local, deletes }
}

/// Returns the words that are certainly neither options nor their values; `None` if an option is unknown.
fn operands<'a>(name: &str, command: &'a Command) -> Option<Vec<&'a Word>> {
    let syntax = syntax::for_program(name);
    let (mut operands, mut words, mut ended) = (Vec::new(), command.arguments().iter(), false);
    while let Some(word) = words.next() {
        match word.literal() {
            Some("--") => ended = true,
            Some(option) if option.starts_with('-') && option.len() > 1 && !ended => {
                if syntax.takes_next(option)? {
                    words.next();
                }
            }
            None if word.lead().starts_with('-') && !ended => {
                // Only the value is unknown, as in `-H"Authorization: $token"`.
                syntax.takes_next(word.lead()).filter(|takes| !takes)?;
            }
            _ => operands.push(word),
        }
    }
    Some(operands)
}

/// Returns `true` if an address requests a deletion, such as `_delete_by_query`.
fn names_deletion(url: &str) -> bool {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    let mut words = path.split(|c: char| !c.is_ascii_alphabetic()).skip(1).map(str::to_ascii_lowercase);
    words.any(|word| matches!(word.as_str(), "delete" | "destroy" | "purge" | "drop" | "truncate" | "wipe" | "flush"))
}

/// Reads `http [METHOD] URL [ITEM…]`; items are sent.
fn httpie(words: &[String]) -> Fetch {
    let has_option = words.iter().any(|word| word.starts_with('-') && word.contains("proxy"));
    const METHODS: &[&str] = &["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];
    let mut operands = words.iter().filter(|word| !word.starts_with('-')).peekable();
    let is_known = |word: &&String| METHODS.iter().any(|method| word.eq_ignore_ascii_case(method));
    let is_method = |word: &&String| is_known(word) || word.bytes().all(|b| b.is_ascii_uppercase());
    let method = operands.next_if(|word| is_method(word)).map(|method| method.to_ascii_uppercase());
    let url = operands.next().map(|url| if url.starts_with(':') { format!("localhost{url}") } else { url.clone() });
    let hosts: Vec<String> = url.as_deref().and_then(host).into_iter().collect();
    let sends = operands.any(|item| !item.contains("==") && item.contains(['=', '@']));
    let is_get = method.as_deref().is_none_or(|method| matches!(method, "GET" | "HEAD"));
    let is_deletion = (!is_get || sends) && url.as_deref().is_some_and(names_deletion);
    Fetch {
        is_local: !hosts.is_empty() && hosts.iter().all(|host| is_loopback(host)) && !has_option,
        reads: is_get && !sends && !hosts.is_empty() && !has_option,
        deletes: is_deletion || method.as_deref() == Some("DELETE"),
        hosts,
    }
}

/// Returns the host of a URL, or of an address such as `me@host:file`.
pub(super) fn host(url: &str) -> Option<String> {
    if url.contains(['\\', ' ', '{', '$', '`']) {
        return None;
    }
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    let name = match address.strip_prefix('[') {
        Some(address) => address.split(']').next()?,
        None => address.split(':').next()?,
    };
    (!name.is_empty()).then(|| name.to_ascii_lowercase())
}

/// Returns `true` if a name or an address is this machine.
pub(super) fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback() || address.is_unspecified())
        || host.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback())
}
