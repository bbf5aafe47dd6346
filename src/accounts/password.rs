//! Passwords: hashed and checked, a few at a time.
//!
//! **Invariant:** a check takes the same time whether the account exists or not.

use crate::accounts::names::Password;
use anyhow::Context;
use argon2::Algorithm;
use argon2::Argon2;
use argon2::Params;
use argon2::PasswordHasher;
use argon2::PasswordVerifier;
use argon2::Version;
use argon2::password_hash::phc::PasswordHash;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;

/// Each takes 19 MiB while it works: more than this at once would cost memory, not save time.
const AT_ONCE: usize = 4;

/// Hashes and checks. Cloning gives another handle on the same few places.
#[derive(Clone)]
pub struct Passwords {
    places: Arc<Semaphore>,
}

/// A place at work, free again when this value is gone and the work in it is done.
#[derive(Clone)]
pub struct Place {
    _permit: Arc<OwnedSemaphorePermit>,
}

impl Passwords {
    /// Nobody waits yet.
    pub fn new() -> Self {
        Self {
            places: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// What to keep of a password.
    ///
    /// # Errors
    /// When the hash cannot be computed, for want of memory or random bytes.
    pub async fn hash(&self, password: Password) -> anyhow::Result<String> {
        in_place(&self.place().await?, move || {
            let hash = argon2()?.hash_password(password.expose().as_bytes());
            Ok(hash.context("the password cannot be hashed")?.to_string())
        })
        .await
    }

    /// Waits for a place to check in.
    ///
    /// # Errors
    /// Never, as long as the server runs.
    pub async fn place(&self) -> anyhow::Result<Place> {
        let permit = self.places.clone().acquire_owned().await?;
        Ok(Place {
            _permit: Arc::new(permit),
        })
    }

    /// Whether this is the password behind `hash`. Without a hash (nobody has that name, or a
    /// guest has it) the answer is no, after the same work.
    ///
    /// # Errors
    /// When the check cannot be made, or the stored hash is damaged.
    pub async fn check(
        &self,
        place: &Place,
        attempt: String,
        hash: Option<String>,
    ) -> anyhow::Result<bool> {
        in_place(place, move || match hash {
            Some(hash) => {
                let hash = PasswordHash::new(&hash).context("a stored hash is damaged")?;
                Ok(argon2()?.verify_password(attempt.as_bytes(), &hash).is_ok())
            }
            None => {
                let mut out = [0u8; 32];
                argon2()?
                    .hash_password_into(attempt.as_bytes(), b"nobody is here..", &mut out)
                    .context("the password cannot be hashed")?;
                Ok(false)
            }
        })
        .await
    }
}

async fn in_place<T: Send + 'static>(
    place: &Place,
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    // Held until the work is done, also when the one who asked has left.
    let held = place.clone();
    tokio::task::spawn_blocking(move || {
        let _held = held;
        work()
    })
    .await?
}

impl Default for Passwords {
    fn default() -> Self {
        Self::new()
    }
}

fn argon2() -> anyhow::Result<Argon2<'static>> {
    let params = Params::new(19 * 1024, 2, 1, None).context("the cost of a hash")?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

#[cfg(test)]
mod tests {
    use super::Passwords;
    use crate::accounts::names::Password;

    async fn check(
        passwords: &Passwords,
        attempt: &str,
        hash: Option<String>,
    ) -> anyhow::Result<bool> {
        let place = passwords.place().await?;
        passwords.check(&place, attempt.to_owned(), hash).await
    }

    #[tokio::test]
    async fn the_right_password_opens_and_no_other() {
        let passwords = Passwords::new();
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
    async fn two_people_with_one_password_have_two_hashes() {
        let passwords = Passwords::new();
        let password = Password::parse("correct horse").unwrap();

        let one = passwords.hash(password.clone()).await.unwrap();

        assert_ne!(one, passwords.hash(password).await.unwrap());
    }

    #[tokio::test]
    async fn a_damaged_hash_is_an_error_and_not_a_wrong_password() {
        let checked = check(&Passwords::new(), "x", Some("$argon2id$x".into())).await;

        assert!(checked.is_err());
    }

    #[tokio::test]
    async fn four_are_at_work_and_the_fifth_waits() {
        let passwords = Passwords::new();
        let mut working = Vec::new();
        for _ in 0..4 {
            working.push(passwords.place().await.unwrap());
        }

        let fifth = passwords.place();
        tokio::pin!(fifth);
        assert!(futures::poll!(&mut fifth).is_pending());
        working.pop();

        assert!(fifth.await.is_ok());
    }
}
