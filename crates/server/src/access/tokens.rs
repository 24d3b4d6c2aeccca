//! Tokens of the owner and of other users.

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

/// A token of another user, without the secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Token {
    /// Name in records of its answers.
    pub name: String,
    /// Role.
    pub role: Role,
    /// Creation time.
    pub since: Timestamp,
    sha256: Digest,
}

/// The token files, in a folder that only the user can access. They can be changed while a server runs.
#[derive(Clone, Debug)]
pub struct TokenFiles {
    folder: PathBuf,
}

impl TokenFiles {
    /// Opens the folder, and creates it if it is missing.
    ///
    /// # Errors
    /// If the folder cannot be created, or other users can access it.
    pub fn at(folder: impl Into<PathBuf>) -> Result<Self, AccessError> {
        let folder = folder.into();
        let problem = |source| AccessError::File { file: folder.clone(), source };
        create_private_folder(&folder).and_then(|()| make_private(&folder)).map_err(problem)?;
        Ok(Self { folder })
    }

    /// Returns the owner's token, which allows everything. Creates the token if there is none.
    ///
    /// # Errors
    /// If the token cannot be read or created, or other users can read it.
    pub fn admin(&self) -> Result<String, AccessError> {
        let file = self.owner_file();
        let problem = |source| AccessError::File { file: file.clone(), source };
        if !file.try_exists().map_err(problem)? {
            // If two processes create the file, both read the one that was placed first.
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
        // A truncated file must not become a token that is quickly guessed.
        if token.len() < 43 {
            return Err(AccessError::ShortToken(file));
        }
        Ok(token.to_owned())
    }

    /// Returns the tokens of other users.
    ///
    /// # Errors
    /// If the file cannot be read, or other users can read it.
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

    /// Creates a token, and returns its secret, which is not stored.
    ///
    /// # Errors
    /// If the name is taken or invalid, or the file cannot be written.
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

    /// Revokes a token. A running server refuses it from then on.
    ///
    /// # Errors
    /// If no token has this name, or the file cannot be written.
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

    /// Returns the browsers that stay signed in when a server starts.
    ///
    /// # Errors
    /// If the file cannot be read, or other users can read it.
    pub fn browsers(&self) -> Result<Vec<Browser>, AccessError> {
        Ok(self.browser_sessions()?.list(Timestamp::now()))
    }

    /// Signs the browsers of this name out while no server runs, and returns their number. A running server has to be
    /// asked instead.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn end_browsers(&self, name: &str) -> Result<usize, AccessError> {
        let _lock = self.lock()?;
        let ended = self.browser_sessions()?.end(name, Timestamp::now());
        ended.map_err(|source| AccessError::File { file: self.folder.clone(), source })
    }

    fn browser_sessions(&self) -> Result<BrowserSessions, AccessError> {
        let AccessOptions { idle_limit, browsers, .. } = AccessOptions::default();
        BrowserSessions::open(&self.folder, idle_limit, browsers)
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn owner_file(&self) -> PathBuf {
        self.folder.join("token")
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

    /// Allows one change at a time; released when the file is closed.
    fn lock(&self) -> Result<File, AccessError> {
        let file = self.folder.join("tokens.lock");
        let opened = File::options().create(true).truncate(false).write(true).owner_only().open(&file);
        let locked = opened.and_then(|lock| lock.lock().map(|()| lock));
        locked.map_err(|source| AccessError::File { file, source })
    }
}

/// Checks that only the user can read a file with secrets.
pub(crate) fn check_private(file: &Path) -> Result<(), AccessError> {
    let facts = fs::metadata(file).map_err(|source| AccessError::File { file: file.to_owned(), source })?;
    if exposed_mode(&facts).is_some() {
        return Err(AccessError::Exposed(file.to_owned()));
    }
    Ok(())
}

/// The tokens of a running server, as the files have them now, so that a revoked or replaced one ends at once.
#[derive(Debug)]
pub(super) struct Tokens {
    files: TokenFiles,
    owner: String,
    // Std locks: nothing awaits while they are held.
    admin: Mutex<CachedFile<Option<Digest>>>,
    others: Mutex<CachedFile<Arc<Vec<Token>>>>,
}

/// The content of a file. Changes replace the whole file.
#[derive(Debug, Default)]
struct CachedFile<T> {
    status: Option<FileStatus>,
    content: T,
}

impl<T: Clone + Default> CachedFile<T> {
    fn current(cached: &Mutex<Self>, file: &Path, read: impl FnOnce() -> Result<T, AccessError>) -> T {
        let status = FileStatus::from_path(file).ok();
        let mut cached = cached.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.status != status || status.is_none() {
            let content = read().unwrap_or_else(|error| {
                tracing::error!(%error, "tokens are refused, because they cannot be read");
                T::default()
            });
            *cached = Self { status, content };
        }
        cached.content.clone()
    }
}

impl Tokens {
    pub(super) fn open(files: TokenFiles, owner: String) -> Result<Self, AccessError> {
        // An unreadable file is an error at the start rather than at the first request.
        files.admin()?;
        files.list()?;
        Ok(Self { files, owner, admin: Mutex::default(), others: Mutex::default() })
    }

    /// Returns the user of a token, in constant time: every token is compared.
    pub(super) fn identify(&self, presented: &str) -> Option<Identity> {
        let presented = Digest::from_secret(presented);
        let owner = self.owner(&presented);
        self.by_digest(&presented).or(owner)
    }

    /// Returns the owner, if this is the token.
    pub(super) fn owner(&self, sha256: &Digest) -> Option<Identity> {
        let read = || self.files.admin().map(|token| Some(Digest::from_secret(&token)));
        let token = CachedFile::current(&self.admin, &self.files.owner_file(), read)?;
        let credential = Credential::Owner(token);
        bool::from(token.matches(sha256)).then(|| Identity {
            name: self.owner.clone(),
            role: Role::Admin,
            via: "api",
            credential,
        })
    }

    /// Returns the user of a token that was not revoked, in constant time: every token is compared.
    pub(super) fn by_digest(&self, sha256: &Digest) -> Option<Identity> {
        let mut found = None;
        for token in self.current().iter() {
            if bool::from(token.sha256.matches(sha256)) {
                let credential = Credential::Token(token.sha256);
                found = Some(Identity { name: token.name.clone(), role: token.role, via: "api", credential });
            }
        }
        found
    }

    pub(super) fn has(&self, sha256: &Digest, role: Role) -> bool {
        self.current().iter().any(|token| token.role == role && bool::from(token.sha256.matches(sha256)))
    }

    fn current(&self) -> Arc<Vec<Token>> {
        CachedFile::current(&self.others, &self.files.others(), || self.files.list().map(Arc::new))
    }
}
