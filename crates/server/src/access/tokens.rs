//! Tokens: the owner's, and those that the owner has given to others.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_process::files::{
    AtomicFile, Durability, FileStatus, OpenOptionsExt, create_private_folder, exposed_mode, make_private, write_atomic,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::browsers::BrowserSessions;
use super::secret::{Digest, secret};
use super::{AccessError, AccessOptions, Browser, Credential, Identity, Role, check_name};

/// A token that was given to somebody, without the secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Token {
    /// Whose it is: the name under which its answers are recorded.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// When it was made.
    pub since: Timestamp,
    sha256: Digest,
}

/// The files with the tokens, in a folder that the person alone can enter. They can be changed while a server runs.
#[derive(Clone, Debug)]
pub struct TokenFiles {
    folder: PathBuf,
}

impl TokenFiles {
    /// Those in that folder, which is made if it is not there.
    ///
    /// # Errors
    /// If it cannot be made, or others can enter it.
    pub fn at(folder: impl Into<PathBuf>) -> Result<Self, AccessError> {
        let folder = folder.into();
        let problem = |source| AccessError::File { file: folder.clone(), source };
        create_private_folder(&folder).and_then(|()| make_private(&folder)).map_err(problem)?;
        Ok(Self { folder })
    }

    /// The owner's token, which allows everything. It is made if there is none.
    ///
    /// # Errors
    /// If it cannot be read or made, or others can read it.
    pub fn admin(&self) -> Result<String, AccessError> {
        let file = self.folder.join("token");
        let problem = |source| AccessError::File { file: file.clone(), source };
        if !file.try_exists().map_err(problem)? {
            // Whoever is first has made it: both then read the same.
            let mut new = AtomicFile::create(&file).map_err(problem)?;
            writeln!(new, "{}", secret().map_err(problem)?).map_err(problem)?;
            match new.create_new(Durability::Synced) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(problem(error)),
                _ => {}
            }
        }
        check_private(&file)?;
        let text = fs::read_to_string(&file).map_err(problem)?;
        let token = text.trim();
        // A file that was cut off must not become a token that is quickly guessed.
        if token.len() < 43 {
            return Err(AccessError::ShortToken(file));
        }
        Ok(token.to_owned())
    }

    /// The tokens that were given to others.
    ///
    /// # Errors
    /// If they cannot be read, or others can read them.
    pub fn list(&self) -> Result<Vec<Token>, AccessError> {
        let file = self.others();
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(AccessError::File { file, source }),
        };
        check_private(&file)?;
        serde_json::from_str(&text).map_err(|source| AccessError::Unreadable { file, source })
    }

    /// Makes a token, and gives its secret, which is not kept.
    ///
    /// # Errors
    /// If the name is taken or cannot be used, or the file cannot be changed.
    pub fn add(&self, name: &str, role: Role) -> Result<String, AccessError> {
        let name = check_name(name)?;
        let _lock = self.lock()?;
        let mut tokens = self.list()?;
        if tokens.iter().any(|token| token.name == name) {
            return Err(AccessError::NameTaken(name.to_owned()));
        }
        let secret = secret().map_err(|source| AccessError::File { file: self.others(), source })?;
        tokens.push(Token {
            name: name.to_owned(),
            role,
            since: Timestamp::now(),
            sha256: Digest::from_secret(&secret),
        });
        self.write(&tokens)?;
        Ok(secret)
    }

    /// Takes a token back. A running server refuses it from now on.
    ///
    /// # Errors
    /// If there is none of that name, or the file cannot be changed.
    pub fn revoke(&self, name: &str) -> Result<(), AccessError> {
        let _lock = self.lock()?;
        let mut tokens = self.list()?;
        let before = tokens.len();
        tokens.retain(|token| token.name != name);
        if tokens.len() == before {
            return Err(AccessError::NoToken(name.to_owned()));
        }
        self.write(&tokens)
    }

    /// The browsers that may come back when a server starts.
    ///
    /// # Errors
    /// If they cannot be read, or others can read them.
    pub fn browsers(&self) -> Result<Vec<Browser>, AccessError> {
        Ok(self.browser_sessions()?.list(Timestamp::now()))
    }

    /// Ends the browsers of that name while no server runs, and says how many there were. A server that runs has to be asked.
    ///
    /// # Errors
    /// If the file cannot be changed.
    pub fn end_browsers(&self, name: &str) -> Result<usize, AccessError> {
        let _lock = self.lock()?;
        let ended = self.browser_sessions()?.end(name, Timestamp::now());
        ended.map_err(|source| AccessError::File { file: self.folder.clone(), source })
    }

    fn browser_sessions(&self) -> Result<BrowserSessions, AccessError> {
        let AccessOptions { idle_limit, browsers, .. } = AccessOptions::default();
        BrowserSessions::open(&self.folder, idle_limit, browsers)
    }

    /// The folder that they are in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn others(&self) -> PathBuf {
        self.folder.join("tokens.json")
    }

    fn write(&self, tokens: &[Token]) -> Result<(), AccessError> {
        let file = self.others();
        let text = serde_json::to_string_pretty(tokens).map_err(io::Error::other);
        text.and_then(|text| write_atomic(&file, text.as_bytes(), Durability::Synced))
            .map_err(|source| AccessError::File { file, source })
    }

    /// One change at a time; given back when the file is closed.
    fn lock(&self) -> Result<File, AccessError> {
        let file = self.folder.join("tokens.lock");
        let opened = File::options().create(true).truncate(false).write(true).owner_only().open(&file);
        let locked = opened.and_then(|lock| lock.lock().map(|()| lock));
        locked.map_err(|source| AccessError::File { file, source })
    }
}

/// A file that holds secrets must be readable by the person alone.
pub(super) fn check_private(file: &Path) -> Result<(), AccessError> {
    let facts = fs::metadata(file).map_err(|source| AccessError::File { file: file.to_owned(), source })?;
    if exposed_mode(&facts).is_some() {
        return Err(AccessError::Exposed(file.to_owned()));
    }
    Ok(())
}

/// The tokens as a running server knows them.
#[derive(Debug)]
pub(super) struct Tokens {
    files: TokenFiles,
    owner: String,
    admin: Digest,
    // A std lock: nothing awaits while it is held.
    known: Mutex<CachedTokens>,
}

#[derive(Debug, Default)]
struct CachedTokens {
    /// Which file was read: files are replaced as a whole, by another one.
    stamp: Option<FileStatus>,
    tokens: Arc<Vec<Token>>,
}

impl Tokens {
    pub(super) fn open(files: TokenFiles, owner: String) -> Result<Self, AccessError> {
        let admin = Digest::from_secret(&files.admin()?);
        // What cannot be read is said at the start, rather than at the first request.
        files.list()?;
        Ok(Self { files, owner, admin, known: Mutex::default() })
    }

    /// Whose token that is. Every known token is looked at, in the same way.
    pub(super) fn identify(&self, presented: &str) -> Option<Identity> {
        let presented = Digest::from_secret(presented);
        let mut found = None;
        if bool::from(self.admin.matches(&presented)) {
            found = Some(Identity {
                name: self.owner.clone(),
                role: Role::Admin,
                via: "api",
                credential: Credential::Owner,
            });
        }
        for token in self.current().iter() {
            if bool::from(token.sha256.matches(&presented)) {
                let credential = Credential::Token(token.sha256);
                found = Some(Identity { name: token.name.clone(), role: token.role, via: "api", credential });
            }
        }
        found
    }

    /// Whether there still is such a token.
    pub(super) fn has(&self, sha256: &Digest, role: Role) -> bool {
        self.current().iter().any(|token| token.role == role && bool::from(token.sha256.matches(sha256)))
    }

    /// The tokens as the file has them now, so that one that is taken back ends at once.
    fn current(&self) -> Arc<Vec<Token>> {
        let stamp = FileStatus::from_path(&self.files.others()).ok();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.stamp != stamp || stamp.is_none() {
            // What cannot be read lets nobody in.
            let tokens = self.files.list().unwrap_or_else(|error| {
                tracing::error!(%error, "no token but the owner's is accepted");
                Vec::new()
            });
            *known = CachedTokens { stamp, tokens: Arc::new(tokens) };
        }
        known.tokens.clone()
    }
}
