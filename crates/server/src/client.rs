//! The client with which other commands of the same user reach the running server.

mod approvals;

use std::fs::{self, File, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use amplifier_process::locks::FileLock;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use axum::http::{Method, Request, Response, StatusCode};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, SignatureScheme};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

pub use self::approvals::{ApprovalStream, ApprovalUpdate};
use crate::access::{AccessError, Role, TokenFiles};
use crate::api_types::{Browser, Browsers, ErrorResponse, SignInLink, SignedOutBrowsers};

/// Time limit for a response.
const LIMIT: Duration = Duration::from_secs(10);

/// The address of a running server, as written to the file `address`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Address {
    /// URL for browsers.
    pub url: String,
    /// Socket address on this machine.
    pub reach: SocketAddr,
    /// Name of the server's owner.
    pub owner: String,
    /// Process id.
    pub pid: u32,
    /// SHA-256 of the certificate, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
}

impl Address {
    /// Returns the address of the server of this folder, if one is running.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn find(folder: &Path) -> Result<Option<Self>, ClientError> {
        // The lock proves that the server is running: after a crash, a leftover file could lead to a program of another
        // user on the same port.
        let lock = folder.join("lock");
        match File::open(&lock).map(|lock| lock.try_lock_shared()) {
            Ok(Err(TryLockError::WouldBlock)) => {}
            Ok(Ok(())) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Ok(Err(TryLockError::Error(source))) | Err(source) => return Err(ClientError::File { file: lock, source }),
        }
        let file = folder.join("address");
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            // The server is starting or stopping.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(ClientError::File { file, source }),
        };
        let address = serde_json::from_str(&text).map_err(|error| ClientError::File { file, source: error.into() })?;
        Ok(Some(address))
    }
}

/// The reason why a request to the server failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No server is running.
    #[error("no server is running; start one with `amplifier serve`")]
    NotRunning,
    /// A file cannot be read.
    #[error("`{file}`: {source}")]
    File {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The token cannot be read.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The server is unreachable.
    #[error("server at `{address}` unreachable: {problem}")]
    Unreachable {
        /// The address.
        address: SocketAddr,
        /// The cause.
        problem: String,
    },
    /// The server returned an error.
    #[error("the server returned an error: {0}")]
    Refused(String),
}

/// A client with the owner's token.
#[derive(Debug)]
pub struct Client {
    address: Address,
    token: String,
}

impl Client {
    /// Returns a client of this folder's server.
    ///
    /// # Errors
    /// If no server is running, or the token cannot be read.
    pub fn find(folder: &Path) -> Result<Self, ClientError> {
        let address = Address::find(folder)?.ok_or(ClientError::NotRunning)?;
        Ok(Self { address, token: TokenFiles::at(folder)?.admin()? })
    }

    /// Returns the server's address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns a one-time link that signs one browser in.
    ///
    /// # Errors
    /// If the server is unreachable, or returns an error.
    pub async fn link(&self, name: &str, role: Role) -> Result<SignInLink, ClientError> {
        let answer = self.ask(Method::POST, "/api/links", &json!({ "name": name, "role": role })).await?;
        decode(answer)
    }

    /// Sends a request.
    ///
    /// # Errors
    /// If the server is unreachable, or returns an error.
    pub async fn ask(&self, method: Method, path: &str, body: &Value) -> Result<Value, ClientError> {
        let answered = timeout(LIMIT, async {
            let (response, _connection) = self.send(method, path, body).await?;
            collect(response).await
        });
        let answered = answered.await.map_err(|_| self.unreachable("no response in time"))?;
        let (status, bytes) = answered.map_err(|error| self.unreachable(error))?;
        if !status.is_success() {
            return Err(refusal(status, &bytes));
        }
        serde_json::from_slice(&bytes).map_err(|error| self.unreachable(error))
    }

    fn unreachable(&self, problem: impl ToString) -> ClientError {
        ClientError::Unreachable { address: self.address.reach, problem: problem.to_string() }
    }

    /// Sends a request, and returns the head of the response, with the connection that its body needs.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<(Response<Incoming>, ConnectionTask), BoxError> {
        let host = self.address.url.split_once("://").map_or("", |(_, host)| host);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, host)
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body.to_string())))?;
        let stream = TcpStream::connect(self.address.reach).await?;
        match &self.address.certificate {
            None => exchange(stream, request).await,
            Some(certificate) => {
                let provider = Arc::new(ring::default_provider());
                let config = ClientConfig::builder_with_provider(provider.clone())
                    .with_safe_default_protocol_versions()?
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(PinnedCertificate {
                        certificate: certificate.clone(),
                        provider,
                    }))
                    .with_no_client_auth();
                let name = ServerName::from(self.address.reach.ip());
                exchange(TlsConnector::from(Arc::new(config)).connect(name, stream).await?, request).await
            }
        }
    }
}

/// Returns the error in a response.
fn refusal(status: StatusCode, body: &[u8]) -> ClientError {
    let failure = serde_json::from_slice::<ErrorResponse>(body);
    ClientError::Refused(failure.map_or_else(|_| status.to_string(), |failure| failure.error.message))
}

/// Returns the signed-in browsers, from the running server or from the file of the last one.
///
/// # Errors
/// If neither can be read.
pub async fn browsers(folder: &Path) -> Result<Vec<Browser>, ClientError> {
    let files = TokenFiles::at(folder)?;
    if let Some(_lock) = lock_if_stopped(folder)? {
        return Ok(files.browsers()?);
    }
    let answer = Client::find(folder)?.ask(Method::GET, "/api/browsers", &json!({})).await?;
    let Browsers { browsers } = decode(answer)?;
    Ok(browsers)
}

/// Signs the browsers of this name out, also while no server is running. Returns their number.
///
/// # Errors
/// If the request fails, or the file cannot be written.
pub async fn end_browsers(folder: &Path, name: &str) -> Result<usize, ClientError> {
    let files = TokenFiles::at(folder)?;
    if let Some(_lock) = lock_if_stopped(folder)? {
        return Ok(files.end_browsers(name)?);
    }
    let path = format!("/api/browsers/{}", percent_encoded(name));
    let SignedOutBrowsers { ended } = decode(Client::find(folder)?.ask(Method::DELETE, &path, &json!({})).await?)?;
    Ok(usize::try_from(ended).unwrap_or(usize::MAX))
}

/// Locks the folder if no server is running, so that none starts meanwhile. Returns `None` if one is running.
fn lock_if_stopped(folder: &Path) -> Result<Option<FileLock>, ClientError> {
    let file = folder.join("lock");
    FileLock::try_lock_shared(&file).map_err(|source| ClientError::File { file, source })
}

fn decode<T: DeserializeOwned>(answer: Value) -> Result<T, ClientError> {
    serde_json::from_value(answer).map_err(|error| ClientError::Refused(format!("unreadable response: {error}")))
}

/// Encodes a text as a segment of a path.
fn percent_encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b if b.is_ascii_alphanumeric() || b == b'-' || b == b'_' => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    };
    text.bytes().map(one).collect()
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Ends the connection of a request when it is dropped.
#[derive(Debug)]
struct ConnectionTask(JoinHandle<hyper::Result<()>>);

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn exchange<T>(stream: T, request: Request<Full<Bytes>>) -> Result<(Response<Incoming>, ConnectionTask), BoxError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = ConnectionTask(tokio::spawn(connection));
    Ok((sender.send_request(request).await?, connection))
}

async fn collect(response: Response<Incoming>) -> Result<(StatusCode, Bytes), BoxError> {
    let status = response.status();
    let body = Limited::new(response.into_body(), 16 * 1024 * 1024).collect().await?;
    Ok((status, body.to_bytes()))
}

/// Returns the SHA-256 of a certificate.
pub(crate) fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(certificate))
}

/// Trusts only the certificate from the address file, which only the owner can write. Names and authorities are not
/// checked.
#[derive(Debug)]
struct PinnedCertificate {
    certificate: String,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if fingerprint(certificate) != self.certificate {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
