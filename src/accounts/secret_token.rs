//! Generates the secret tokens of sessions, API keys and invites, and hashes them (SHA-256) for
//! storage.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::TryRng;
use rand::rngs::SysRng;
use sha2::{Digest, Sha256};

/// Returns 32 random bytes as text.
///
/// # Panics
/// Panics when the system has no source of random bytes, because no secret could be generated.
pub fn generate() -> String {
    let mut bytes = [0u8; 32];
    SysRng
        .try_fill_bytes(&mut bytes)
        .expect("every supported system has a source of random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns the hash to store. A token is long and random, so one round of hashing is enough.
pub fn hash(token: &str) -> String {
    hex::encode(Sha256::digest(token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::{generate, hash};

    #[test]
    fn tokens_are_long_and_unique() {
        let one = generate();

        assert_eq!(one.len(), 43);
        assert_ne!(one, generate());
    }

    #[test]
    fn the_hash_does_not_contain_the_token() {
        let token = generate();

        assert_eq!(hash(&token).len(), 64);
        assert_eq!(hash(&token), hash(&token));
        assert!(!hash(&token).contains(&token));
    }
}
