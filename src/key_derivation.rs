//! Keys from the server's one secret, each for one purpose.
//!
//! **Invariant:** the secret itself enciphers and marks nothing, so what one purpose gives away is
//! of no use to another.

use sha2::{Digest, Sha256};

/// The key that serves this purpose, and no other. The label stands for good: with another one,
/// what was sealed does not open.
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
    fn each_purpose_and_each_secret_has_a_key_of_its_own() {
        let key = derive_key("a secret", b"this");

        assert_eq!(key, derive_key("a secret", b"this"));
        assert_ne!(key, derive_key("a secret", b"that"));
        assert_ne!(key, derive_key("another secret", b"this"));
    }
}
