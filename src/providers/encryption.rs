//! Encrypts and decrypts the stored keys of providers with the server's secret, and creates the
//! file of the secret if it is missing.
//!
//! **Invariant:** each value is bound to its row and cannot be decrypted for another one, so a
//! value that was copied to another row in the database is unusable there.

use std::fs;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use base::key_derivation;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use llm::secret::Secret;
use rand::TryRng;
use rand::rngs::SysRng;

/// Version of the stored format; another format gets another prefix.
const FORMAT_PREFIX: &str = "v1:";

/// Key derivation label of this purpose; no other purpose uses it.
const PURPOSE: &[u8] = b"troupe: keys of providers at rest";

const NONCE_BYTES: usize = 24;

/// File name of the secret if the environment sets none.
pub const SECRET_FILE: &str = "secret.key";

/// Why a stored value cannot be decrypted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DecryptError {
    #[error("it has a format that this version does not know")]
    UnknownFormat,
    #[error("it was encrypted with another TROUPE_SECRET_KEY, or for another row")]
    OtherSecret,
}

/// Encrypts and decrypts secrets. Cheap to clone; clones share the key.
#[derive(Clone)]
pub struct SecretCipher {
    cipher: Arc<XChaCha20Poly1305>,
}

impl SecretCipher {
    /// Creates a cipher from the server's secret.
    pub fn new(secret: &str) -> Self {
        let key = key_derivation::derive_key(secret, PURPOSE);
        Self {
            cipher: Arc::new(XChaCha20Poly1305::new(&Key::from(key))),
        }
    }

    /// Creates a cipher from the secret in the data directory, which is created if it is missing.
    ///
    /// # Errors
    /// Returns an error when the file cannot be read or created, or is damaged.
    pub fn from_data_dir(dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join(SECRET_FILE);
        let secret = match fs::read_to_string(&path) {
            Ok(secret) => secret,
            Err(error) if error.kind() == ErrorKind::NotFound => create_secret_file(&path)
                .with_context(|| format!("cannot create {}", path.display()))?,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let secret = secret.trim();
        anyhow::ensure!(
            secret.len() >= 16,
            "{} is damaged: restore it from a backup, or remove it and enter the provider keys again",
            path.display()
        );
        Ok(Self::new(secret))
    }

    /// Encrypts a key for `context`, such as `llm_providers/7/api_key`.
    ///
    /// # Panics
    /// Panics when the system has no source of random bytes.
    pub fn encrypt(&self, secret: &Secret, context: &str) -> String {
        let mut nonce = [0u8; NONCE_BYTES];
        fill_random(&mut nonce);
        let sealed = self
            .cipher
            .encrypt(
                &XNonce::from(nonce),
                Payload {
                    msg: secret.expose().as_bytes(),
                    aad: context.as_bytes(),
                },
            )
            .expect("only a text of 256 GiB is too long to encrypt");
        format!(
            "{FORMAT_PREFIX}{}",
            STANDARD.encode([nonce.as_slice(), &sealed].concat())
        )
    }

    /// Decrypts a value that was encrypted for `context`.
    ///
    /// # Errors
    /// Returns `UnknownFormat` when the format is not known, and `OtherSecret` when the value was
    /// encrypted with another secret or for another context.
    pub fn decrypt(&self, sealed: &str, context: &str) -> Result<Secret, DecryptError> {
        let text = sealed
            .strip_prefix(FORMAT_PREFIX)
            .ok_or(DecryptError::UnknownFormat)?;
        let bytes = STANDARD
            .decode(text)
            .map_err(|_| DecryptError::UnknownFormat)?;
        let (nonce, sealed) = bytes
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or(DecryptError::UnknownFormat)?;
        let payload = Payload {
            msg: sealed,
            aad: context.as_bytes(),
        };
        let open = self
            .cipher
            .decrypt(&XNonce::from(*nonce), payload)
            .map_err(|_| DecryptError::OtherSecret)?;
        let open = String::from_utf8(open).map_err(|_| DecryptError::OtherSecret)?;
        Ok(Secret::new(&open))
    }
}

fn create_secret_file(path: &Path) -> std::io::Result<String> {
    let mut bytes = [0u8; 32];
    fill_random(&mut bytes);
    let secret = STANDARD.encode(bytes);
    let mut options = OpenOptions::new();
    // Never overwrites an existing file, because its secret would be lost.
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    writeln!(file, "{secret}")?;
    file.sync_all()?;
    Ok(secret)
}

fn fill_random(bytes: &mut [u8]) {
    SysRng
        .try_fill_bytes(bytes)
        .expect("every supported system has a source of random bytes");
}

#[cfg(test)]
mod tests {
    use std::fs;

    use llm::secret::Secret;

    use super::{DecryptError, SECRET_FILE, SecretCipher};

    #[test]
    fn an_encrypted_key_decrypts_in_its_context() {
        let sealer = SecretCipher::new("a secret of some length");

        let sealed = sealer.encrypt(&Secret::new("sk-planted"), "llm_providers/7");

        assert!(sealed.starts_with("v1:") && !sealed.contains("planted"));
        let opened = sealer.decrypt(&sealed, "llm_providers/7").unwrap();
        assert_eq!(opened.expose(), "sk-planted");
    }

    #[test]
    fn a_key_decrypts_with_no_other_context_or_secret() {
        let sealer = SecretCipher::new("a secret of some length");
        let sealed = sealer.encrypt(&Secret::new("sk-planted"), "llm_providers/7");

        let other = SecretCipher::new("a secret of some lengths");

        assert_eq!(
            sealer.decrypt(&sealed, "llm_providers/8"),
            Err(DecryptError::OtherSecret)
        );
        assert_eq!(
            other.decrypt(&sealed, "llm_providers/7"),
            Err(DecryptError::OtherSecret)
        );
        for broken in ["", "sk-planted", "v2:AAAA", "v1:AAAA", "v1:%"] {
            assert_eq!(
                sealer.decrypt(broken, "llm_providers/7"),
                Err(DecryptError::UnknownFormat)
            );
        }
    }

    #[test]
    fn encrypting_a_key_twice_gives_different_ciphertexts() {
        let sealer = SecretCipher::new("a secret of some length");
        let key = Secret::new("sk-planted");

        assert_ne!(sealer.encrypt(&key, "x"), sealer.encrypt(&key, "x"));
    }

    #[test]
    fn the_secret_file_is_created_once_and_readable_only_by_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let sealed = SecretCipher::from_data_dir(dir.path())
            .unwrap()
            .encrypt(&Secret::new("sk-planted"), "x");

        let again = SecretCipher::from_data_dir(dir.path()).unwrap();

        assert_eq!(again.decrypt(&sealed, "x").unwrap().expose(), "sk-planted");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(dir.path().join(SECRET_FILE))
                .unwrap()
                .permissions();
            assert_eq!(mode.mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn an_empty_secret_file_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(SECRET_FILE), "\n").unwrap();

        assert!(SecretCipher::from_data_dir(dir.path()).is_err());
    }
}
