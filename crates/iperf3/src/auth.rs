//! Authorization as in iperf3: user names, passwords and RSA keys.
//!
//! A client encrypts `user`, password and the time with the server's public key. The server looks the user up
//! in a file of lines `user,SHA-256("{user}password")`, read again for each test, as iperf3 does. There is no
//! nonce, so a captured token could be replayed while its time is within the allowed skew. This server
//! therefore stores the tokens of that period and accepts none twice. Tokens accepted before a restart are
//! unknown, so tokens older than the start of this server are refused. This leaves a gap for a client whose
//! clock is ahead: as long as the difference, at most the allowed skew.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landspeed_sys::clock;
use landspeed_sys::trust::{self, Content, Policy, TrustError};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

#[cfg(feature = "rsa")]
mod rsa;
#[cfg(not(feature = "rsa"))]
mod rsa {
    //! Replacement for a build without RSA: keys cannot exist.
    pub enum Key {}
    pub use Key as Public;
    pub use Key as Private;

    impl Key {
        pub fn from_pem(_: &[u8]) -> Option<Self> {
            None
        }

        pub fn encrypt(&self, _: &[u8], _: bool) -> Option<Vec<u8>> {
            match *self {}
        }

        pub fn decrypt(&self, _: &[u8], _: bool) -> Option<Vec<u8>> {
            match *self {}
        }
    }
}

/// Default for the maximum difference between the clocks of client and server, seconds.
pub const DEFAULT_SKEW_S: u64 = 10;
/// Maximum number of stored tokens; only an attack produces more in one window, and then the oldest are
/// discarded.
const MAX_TOKENS: usize = 65_536;
/// Maximum length of a token in Base64, bytes: enough for a key of 16,384 bits.
const MAX_TOKEN_BYTES: usize = 4096;
const SECOND_NS: u64 = 1_000_000_000;
/// Maximum size of the user file, bytes.
const MAX_USER_FILE_BYTES: u64 = 16 << 20;

/// Reason why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or is not trusted.
    #[error(transparent)]
    File(#[from] TrustError),
    /// The file does not contain a usable key.
    #[error("{} holds no RSA {kind} of 2048 to 8192 bits in PEM", path.display())]
    Key {
        /// Path of the key file.
        path: PathBuf,
        /// `public key` or `private key`.
        kind: &'static str,
    },
    /// This build has no RSA.
    #[error("cannot use {}: this landspeed was built without RSA (Cargo feature `rsa`)", path.display())]
    WithoutRsa {
        /// Path of the key file.
        path: PathBuf,
    },
}

/// Reads a key from a PEM file.
fn open_key<K>(
    path: &Path,
    kind: &'static str,
    content: Content,
    policy: Policy,
    parse: impl FnOnce(&[u8]) -> Option<K>,
) -> Result<K, KeyError> {
    if cfg!(not(feature = "rsa")) {
        return Err(KeyError::WithoutRsa { path: path.to_owned() });
    }
    let text = trust::read(path, kind, content, policy)?;
    parse(&text).ok_or_else(|| KeyError::Key { path: path.to_owned(), kind })
}

/// A server's public key.
#[derive(Clone)]
pub struct PublicKey(Arc<rsa::Public>);

impl PublicKey {
    /// Reads a public key file as written by `openssl rsa -pubout`.
    pub fn open(path: &Path, policy: Policy) -> Result<Self, KeyError> {
        open_key(path, "public key", Content::Public, policy, rsa::Public::from_pem).map(|key| Self(Arc::new(key)))
    }

    /// Returns a token for a user with the current time.
    ///
    /// # Errors
    /// If user name and password are too long for the key; the error is a message.
    pub fn token(&self, user: &str, password: &str, pkcs1: bool) -> Result<String, String> {
        let now_s = clock::realtime_ns() / 1_000_000_000;
        let plain = format!("user: {user}\npwd:  {password}\nts:   {now_s}");
        let hidden = self.0.encrypt(plain.as_bytes(), pkcs1);
        hidden
            .map(|token| STANDARD.encode(token))
            .ok_or_else(|| "the user name and the password are too long for the server's key".to_owned())
    }
}

/// Users of a server, and its private key.
#[derive(Clone)]
pub struct Users(Arc<Table>);

struct Table {
    key: rsa::Private,
    file: PathBuf,
    policy: Policy,
    skew_s: u64,
    pkcs1: bool,
    /// The second in which the server started; only tokens of later seconds are accepted.
    opened_s: u64,
    seen: Mutex<VecDeque<(u64, [u8; 32])>>,
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Users({})", self.0.file.display())
    }
}

impl Users {
    /// Loads the server's private key (PKCS#8 or PKCS#1, PEM, not encrypted) and the user file. `pkcs1` accepts
    /// tokens with PKCS#1 padding, which clients before 3.17 send, instead of OAEP.
    ///
    /// Waits for the next second of the clock: tokens contain whole seconds, and one of the current second may have
    /// been used with a previous server process.
    pub fn open(key: &Path, users: &Path, skew_s: u64, pkcs1: bool, policy: Policy) -> Result<Self, KeyError> {
        let private = open_key(key, "private key", Content::Secret, policy, rsa::Private::from_pem)?;
        read_users(users, policy)?;
        let now_ns = clock::realtime_ns();
        let opened_s = now_ns / SECOND_NS;
        clock::sleep_until(clock::monotonic_ns() + SECOND_NS - now_ns % SECOND_NS);
        let seen = Mutex::default();
        Ok(Self(Arc::new(Table { key: private, file: users.to_owned(), policy, skew_s, pkcs1, opened_s, seen })))
    }

    /// Checks a token; returns the user's name if authorized.
    ///
    /// # Errors
    /// The reason, for the server's log only.
    pub fn check(&self, token: &str) -> Result<String, String> {
        let hidden = (token.len() <= MAX_TOKEN_BYTES).then(|| STANDARD.decode(token.trim()).ok()).flatten();
        let hidden = hidden.ok_or("the token is malformed")?;
        let plain = self.0.key.decrypt(&hidden, self.0.pkcs1).ok_or("the token is not for this server's key")?;
        let plain = String::from_utf8(plain).map_err(|_| "the token is not text")?;
        let said = TokenContents::read(&plain).ok_or("the token does not say who, with what password, when")?;
        if said.time_s <= self.0.opened_s {
            return Err(format!("the token is {} s older than this server", self.0.opened_s + 1 - said.time_s));
        }
        let now_s = clock::realtime_ns() / SECOND_NS;
        if now_s.abs_diff(said.time_s) > self.0.skew_s {
            return Err(format!("the clocks differ by {} s, or the token is old", now_s.abs_diff(said.time_s)));
        }
        let users = read_users(&self.0.file, self.0.policy).map_err(|error| match error {
            TrustError::Untrusted(why) => why.cause(),
            error @ TrustError::Io { .. } => error.to_string(),
        })?;
        let known = users.lines().filter_map(|line| line.trim().split_once(',')).find(|(name, _)| *name == said.user);
        let digest = Sha256::digest(format!("{{{}}}{}", said.user, said.password));
        // An unknown user takes the same time as a wrong password.
        let expected = known.map_or([0; 32], |(_, digits)| from_hex(digits.trim()).unwrap_or([0; 32]));
        if !bool::from(digest.as_slice().ct_eq(&expected)) {
            return Err(format!("{} may not test", landspeed_flow::control::printable(said.user, 40)));
        }
        if !self.insert_token(said.time_s, Sha256::digest(&hidden).into(), now_s) {
            return Err("the token has been used already".to_owned());
        }
        Ok(landspeed_flow::control::printable(said.user, 40))
    }

    /// Stores the encrypted token; returns whether it is new. Two tokens of the same user and second differ in
    /// their padding; an eavesdropper cannot pad one again.
    fn insert_token(&self, time_s: u64, digest: [u8; 32], now_s: u64) -> bool {
        let mut seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|(time, _)| time + 2 * self.0.skew_s + 1 >= now_s);
        if seen.iter().any(|entry| *entry == (time_s, digest)) {
            return false;
        }
        if seen.len() >= MAX_TOKENS {
            seen.pop_front();
        }
        seen.push_back((time_s, digest));
        true
    }
}

fn read_users(path: &Path, policy: Policy) -> Result<String, TrustError> {
    const WHAT: &str = "user file";
    let file = trust::open(path, WHAT, Content::Public, &[], policy)?;
    landspeed_sys::file::read_text_from(file, MAX_USER_FILE_BYTES).map_err(|cause| TrustError::Io {
        operation: "read",
        what: WHAT,
        path: path.to_owned(),
        cause,
    })
}

/// Contents of a decrypted token.
struct TokenContents<'a> {
    user: &'a str,
    password: &'a str,
    time_s: u64,
}

impl<'a> TokenContents<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (user, rest) = text.strip_prefix("user: ")?.split_once('\n')?;
        let (password, rest) = rest.strip_prefix("pwd:  ")?.split_once('\n')?;
        let time_s = rest.strip_prefix("ts:   ")?.trim_end_matches(['\0', '\n']).parse().ok()?;
        Some(Self { user, password, time_s })
    }
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    landspeed_flow::control::preface::Token::from_hex(text).map(|token| token.0)
}
