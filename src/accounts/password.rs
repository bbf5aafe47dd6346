//! Hashes and verifies passwords, with a limit on concurrent hashes.
//!
//! **Invariant:** a check takes the same time whether the account exists or not, unless the account's
//! password was hashed with another value of `PASSWORD_HASH_KIB`.

use std::sync::Arc;

use anyhow::Context;
use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::accounts::username_password::Password;

/// Maximum number of passwords hashed at once. Each hash uses `PASSWORD_HASH_KIB` KiB of memory; a
/// higher limit would not increase the throughput.
const MAX_CONCURRENT_HASHES: usize = 4;

/// The minimum capacity of the memory for computing one hash, of which only the used part becomes
/// resident. The allocator of glibc takes requests over 32 MiB from the system, and returns them
/// when they are freed; smaller ones it retains, for each thread (measured: 2.3 GiB after 200
/// sign-ins).
const BUFFER_BYTES: usize = 33 * 1024 * 1024;

/// Hashes and verifies passwords. Cheap to clone; clones share permits.
#[derive(Clone)]
pub struct Passwords {
    permits: Arc<Semaphore>,
    /// The cost of new hashes. A stored hash is checked with the cost recorded in it.
    cost: Params,
}

/// A permit to compute hashes. It is released when the value is dropped and its work has ended.
#[derive(Clone)]
pub struct HashPermit {
    _permit: Arc<OwnedSemaphorePermit>,
}

impl Passwords {
    /// Creates the pool with all permits available. A new hash uses `memory_kib` KiB of memory.
    ///
    /// # Errors
    /// Returns an error when `memory_kib` is below 8, the minimum of Argon2.
    pub fn new(memory_kib: u32) -> anyhow::Result<Self> {
        Ok(Self {
            permits: Arc::new(Semaphore::new(MAX_CONCURRENT_HASHES)),
            cost: Params::new(memory_kib, 2, 1, None).context("invalid hash cost")?,
        })
    }

    /// Returns the hash to store for a password.
    ///
    /// # Errors
    /// Returns an error when the hash cannot be computed, for example for lack of memory or random
    /// bytes.
    pub async fn hash(&self, password: Password) -> anyhow::Result<String> {
        let cost = self.cost.clone();
        run_blocking(&self.acquire_permit().await?, move || {
            let (argon2, salt) = (argon2(cost), Salt::generate());
            let output = digest(&argon2, password.expose(), &salt)?;
            let hash = PasswordHash {
                algorithm: Algorithm::Argon2id.ident(),
                version: Some(Version::V0x13.into()),
                params: ParamsString::try_from(argon2.params()).context("invalid hash cost")?,
                salt: Some(salt),
                hash: Some(output),
            };
            Ok(hash.to_string())
        })
        .await
    }

    /// Waits for a permit.
    ///
    /// # Errors
    /// Returns an error when the semaphore is closed, which does not happen while the server runs.
    pub async fn acquire_permit(&self) -> anyhow::Result<HashPermit> {
        let permit = self.permits.clone().acquire_owned().await?;
        Ok(HashPermit {
            _permit: Arc::new(permit),
        })
    }

    /// Returns whether `attempt` matches `hash`. Without a hash (an unknown username, or a guest)
    /// it does the same work and returns `false`.
    ///
    /// # Errors
    /// Returns an error when the check cannot be computed, or the stored hash is damaged.
    pub async fn check(
        &self,
        permit: &HashPermit,
        attempt: String,
        hash: Option<String>,
    ) -> anyhow::Result<bool> {
        let cost = self.cost.clone();
        run_blocking(permit, move || match hash {
            Some(hash) => {
                let hash = PasswordHash::new(&hash).context("the stored hash is damaged")?;
                let (Some(salt), Some(known)) = (&hash.salt, &hash.hash) else {
                    anyhow::bail!("the stored hash is damaged");
                };
                let cost = Params::try_from(&hash).context("the stored hash is damaged")?;
                Ok(digest(&argon2(cost), &attempt, salt)? == *known)
            }
            None => {
                let salt = Salt::new(b"nobody is here..").context("invalid salt")?;
                digest(&argon2(cost), &attempt, &salt)?;
                Ok(false)
            }
        })
        .await
    }
}

async fn run_blocking<T: Send + 'static>(
    permit: &HashPermit,
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    // Held until the work is done, even if the caller is canceled.
    let held = permit.clone();
    tokio::task::spawn_blocking(move || {
        let done = work();
        drop(held);
        done
    })
    .await?
}

/// Returns the Argon2 output for a password. Comparing two outputs takes constant time.
fn digest(argon2: &Argon2<'_>, password: &str, salt: &Salt) -> anyhow::Result<Output> {
    let params = argon2.params();
    let n_blocks = params.block_count();
    let mut blocks = Vec::with_capacity(n_blocks.max(BUFFER_BYTES / Block::SIZE));
    blocks.resize(n_blocks, Block::default());
    let mut out = [0; Output::MAX_LENGTH];
    let out = out
        .get_mut(..params.output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN))
        .context("invalid hash length")?;
    argon2
        .hash_password_into_with_memory(password.as_bytes(), salt, out, &mut blocks)
        .context("failed to hash the password")?;
    Output::new(out).context("invalid hash length")
}

fn argon2(cost: Params) -> Argon2<'static> {
    Argon2::new(Algorithm::Argon2id, Version::V0x13, cost)
}

#[cfg(test)]
mod tests {
    use super::Passwords;
    use crate::accounts::username_password::Password;

    fn passwords() -> Passwords {
        Passwords::new(19_456).unwrap()
    }

    async fn check(
        passwords: &Passwords,
        attempt: &str,
        hash: Option<String>,
    ) -> anyhow::Result<bool> {
        let permit = passwords.acquire_permit().await?;
        passwords.check(&permit, attempt.to_owned(), hash).await
    }

    #[tokio::test]
    async fn only_the_right_password_is_accepted() {
        let passwords = passwords();
        let hash = passwords
            .hash(Password::parse("correct horse").unwrap())
            .await
            .unwrap();

        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        let right = check(&passwords, "correct horse", Some(hash.clone())).await;
        assert!(right.unwrap());
        assert!(
            !check(&passwords, "correct horsf", Some(hash))
                .await
                .unwrap()
        );
        assert!(!check(&passwords, "correct horse", None).await.unwrap());
    }

    #[tokio::test]
    async fn a_hash_made_by_the_library_is_accepted() {
        // Hashes from the library's own API, which earlier versions of this program stored.
        let hash = {
            use argon2::PasswordHasher;
            let made = super::argon2(passwords().cost).hash_password(b"correct horse");
            made.unwrap().to_string()
        };

        let passwords = passwords();

        assert!(
            check(&passwords, "correct horse", Some(hash.clone()))
                .await
                .unwrap()
        );
        assert!(!check(&passwords, "correct hors", Some(hash)).await.unwrap());
    }

    #[tokio::test]
    async fn a_password_hashed_with_another_cost_is_accepted() {
        let cheap = Passwords::new(8).unwrap();
        let hash = cheap.hash(Password::parse("correct horse").unwrap()).await;
        let hash = hash.unwrap();

        assert!(hash.starts_with("$argon2id$v=19$m=8,t=2,p=1$"));
        let checked = check(&passwords(), "correct horse", Some(hash)).await;
        assert!(checked.unwrap());
    }

    #[tokio::test]
    async fn equal_passwords_have_different_hashes() {
        let passwords = passwords();
        let password = Password::parse("correct horse").unwrap();

        let one = passwords.hash(password.clone()).await.unwrap();

        assert_ne!(one, passwords.hash(password).await.unwrap());
    }

    #[tokio::test]
    async fn a_damaged_hash_is_an_error_and_not_a_wrong_password() {
        let checked = check(&passwords(), "x", Some("$argon2id$x".into())).await;

        assert!(checked.is_err());
    }

    #[tokio::test]
    async fn four_hashes_run_concurrently_and_the_fifth_waits() {
        let passwords = passwords();
        let mut working = Vec::new();
        for _ in 0..4 {
            working.push(passwords.acquire_permit().await.unwrap());
        }

        let fifth = passwords.acquire_permit();
        tokio::pin!(fifth);
        assert!(futures::poll!(&mut fifth).is_pending());
        working.pop();

        assert!(fifth.await.is_ok());
    }
}
