//! TLS.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

use amplifier_server::access::Role;
use amplifier_server::client::{Address, Client};
use amplifier_server::{ServeError, ServerOptions, TlsFiles};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use super::place::{LIMIT, Place, exchange, generous};

/// A certificate for `localhost`, in files.
fn certificate(folder: &TempDir) -> (TlsFiles, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let write = |name: &str, text: String| -> PathBuf {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file
    };
    let files = TlsFiles {
        certificate: write("cert.pem", made.cert.pem()),
        key: write("key.pem", made.signing_key.serialize_pem()),
    };
    (files, made.cert.der().clone())
}

async fn place() -> (Place, CertificateDer<'static>) {
    let folder = tempfile::tempdir().unwrap();
    let (tls, certificate) = certificate(&folder);
    let mut options = ServerOptions::new(([127, 0, 0, 1], 0).into());
    options.tls = Some(tls);
    options.hosts = vec!["localhost".to_owned()];
    (Place::start(folder, generous(), options).await.unwrap(), certificate)
}

/// Sends a request as a browser that trusts the certificate.
fn ask(place: &Place, certificate: CertificateDer<'static>, request: &str) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let session = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
    let stream = TcpStream::connect(place.address()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let mut stream = StreamOwned::new(session, stream);
    let host = format!("localhost:{}", place.address().port());
    stream.write_all(request.replace("HOST", &host).as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_gets_in_over_tls_with_a_cookie_for_tls_alone() {
    let (place, certificate) = place().await;
    assert_eq!(place.running.url, format!("https://localhost:{}", place.address().port()));
    let link = place.running.link("bob", Role::Viewer).unwrap();
    let path = link.strip_prefix(&place.running.url).unwrap();
    let entered =
        ask(&place, certificate.clone(), &format!("GET {path} HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n"));
    let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let name = format!("__Host-amplifier_{}=", place.address().port());
    assert!(cookie.starts_with(&name) && cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/; Secure"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let (_, key) = entered.split_once("name=\"amplifier-key\" content=\"").unwrap();
    let key = key.split('"').next().unwrap();
    let me = |origin: &str| {
        let head = format!(
            "GET /api/me HTTP/1.1\r\nHost: HOST\r\nCookie: {cookie}\r\nX-Amplifier-Key: {key}\r\nOrigin: {origin}\r\nConnection: close\r\n\r\n"
        );
        ask(&place, certificate.clone(), &head)
    };
    assert!(me("https://HOST").ends_with(r#"{"name":"bob","role":"viewer"}"#));
    assert!(me("http://HOST").starts_with("HTTP/1.1 403 "), "the same name without TLS is another origin");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_tls_a_tls_server_answers_nothing() {
    let (place, _) = place().await;
    let request = format!("GET /health HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", place.address());
    let reply = exchange(TcpStream::connect(place.address()).unwrap(), request.as_bytes());
    assert_eq!(reply.status, 0, "{reply:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owners_commands_trust_the_certificate_of_the_server_and_no_other() {
    let (place, certificate) = place().await;
    let folder = place.folder.path().join("server");
    let link = Client::find(&folder).unwrap().link("bob", Role::Viewer).await.unwrap();
    let path = link.url.strip_prefix(&place.running.url).unwrap();
    let entered = ask(&place, certificate, &format!("GET {path} HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n"));
    assert!(entered.starts_with("HTTP/1.1 200 "), "{entered}");
    // As if another program had taken the port.
    let mut address: Address = serde_json::from_str(&fs::read_to_string(folder.join("address")).unwrap()).unwrap();
    address.certificate = Some("another".to_owned());
    fs::write(folder.join("address"), serde_json::to_string(&address).unwrap()).unwrap();
    let error = Client::find(&folder).unwrap().link("bob", Role::Viewer).await.unwrap_err().to_string();
    assert!(error.contains("unreachable: invalid peer certificate"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_no_certificate_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (good, _) = certificate(&folder);
    let (other, _) = certificate(&tempfile::tempdir_in(folder.path()).unwrap());
    let empty = folder.path().join("empty.pem");
    fs::write(&empty, "").unwrap();
    let missing = folder.path().join("missing.pem");
    for (certificate, key, named) in [
        (&empty, &good.key, &empty),
        (&missing, &good.key, &missing),
        (&good.certificate, &empty, &empty),
        (&good.certificate, &good.certificate, &good.certificate),
        (&good.certificate, &other.key, &other.key),
    ] {
        let mut options = ServerOptions::new(([127, 0, 0, 1], 0).into());
        options.tls = Some(TlsFiles { certificate: certificate.clone(), key: key.clone() });
        let error = Place::start(tempfile::tempdir().unwrap(), generous(), options).await.err().unwrap();
        assert!(matches!(&error, ServeError::Tls { file, .. } if file == named), "{error}");
    }
}
