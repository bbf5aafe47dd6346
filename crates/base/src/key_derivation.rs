//! Derives a key of 32 bytes for each purpose from the server's secret: the SHA-256 hash of a label
//! and the secret.
//!
//! **Invariant:** the secret itself never encrypts or signs anything, so a key that leaks from one
//! purpose is of no use for another.

use sha2::{Digest, Sha256};

/// Returns the key for one purpose. Labels must never change: data that was encrypted under the old
/// label could not be decrypted.
pub fn derive_key(secret: &str, label: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(label);
    hash.update([0]);
    hash.update(secret.as_bytes());
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::derive_key;

    #[test]
    fn each_purpose_and_each_secret_has_its_own_key() {
        let key = derive_key("a secret", b"this");

        assert_eq!(key, derive_key("a secret", b"this"));
        assert_ne!(key, derive_key("a secret", b"that"));
        assert_ne!(key, derive_key("another secret", b"this"));
    }
}
