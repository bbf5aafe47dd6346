//! Keys from the server's one secret, each for one purpose.
//!
//! **Invariant:** the secret itself enciphers and marks nothing, so what one purpose gives away is
//! of no use to another.

use sha2::Digest;
use sha2::Sha256;

/// The key that serves this purpose, and no other. The label stands for good: with another one,
/// what was sealed does not open.
pub fn for_purpose(secret: &str, label: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(label);
    hash.update([0]);
    hash.update(secret.as_bytes());
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::for_purpose;

    #[test]
    fn each_purpose_and_each_secret_has_a_key_of_its_own() {
        let key = for_purpose("a secret", b"this");

        assert_eq!(key, for_purpose("a secret", b"this"));
        assert_ne!(key, for_purpose("a secret", b"that"));
        assert_ne!(key, for_purpose("another secret", b"this"));
    }
}
