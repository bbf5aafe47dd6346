//! Defines `RateLimits`: all rate limits of the server, such as those of sign-ins, registrations
//! and messages, with the keys by which they count.

use base::clock::Clock;
use base::ids::{ApiKeyId, UserId};
use realtime::cluster::shared_counter::SharedCounter;

use crate::accounts::username_password;
use crate::limit_settings::LimitSettings;
use crate::rate_limit::client_network::ClientNetwork;
use crate::rate_limit::keyed_limit::RateLimit;
use crate::rate_limit::sliding_window::RetryAfter;
use crate::rate_limit::socket_limit::SocketLimit;

const MINUTE_MS: i64 = 60_000;
/// Invitations of users that the inviter shares no space with: maximum number, and window in
/// milliseconds. Without it, one user could invite every account of the server.
const INVITATIONS: (u32, i64) = (30, 60 * MINUTE_MS);
/// Changes of reactions and bookmarks: maximum number, and window in milliseconds. A person who taps
/// quickly stays below it.
const REACTIONS: (u32, i64) = (120, MINUTE_MS);
/// Requests for translations that are not stored: maximum number, and window in milliseconds. A person who
/// scrolls through a translated conversation stays below it.
const TRANSLATIONS: (u32, i64) = (300, MINUTE_MS);

/// All rate limits of the server.
pub struct RateLimits {
    pub sign_ins: SignInLimit,
    /// New accounts per address, including guests.
    pub registrations: RateLimit<ClientNetwork>,
    /// Attempts with invite tokens that do not exist, per address.
    pub invite_guesses: RateLimit<ClientNetwork>,
    /// Invitations of users that the inviter shares no space with, per inviter.
    pub invitations: RateLimit<UserId>,
    /// Messages per user.
    pub posts: RateLimit<UserId>,
    /// Edits and selections of swipes per user.
    pub edits: RateLimit<UserId>,
    /// Uploads of pictures per user.
    pub uploads: RateLimit<UserId>,
    /// Reactions and bookmarks per user.
    pub reactions: RateLimit<UserId>,
    /// Translations to make, per user.
    pub translations: RateLimit<UserId>,
    /// Responses per API key.
    pub responses: RateLimit<ApiKeyId>,
    pub sockets: SocketLimit,
}

impl RateLimits {
    /// Creates the limits without counted events; `shared` counts for all nodes together.
    pub fn new(settings: &LimitSettings, clock: &Clock, shared: &SharedCounter) -> Self {
        let failures = (settings.login_failures, 3 * MINUTE_MS);
        let registrations = (settings.registrations_per_hour, 60 * MINUTE_MS);
        let posts = (settings.posts_per_minute, MINUTE_MS);
        // A message has at most four pictures.
        let uploads = (settings.posts_per_minute.saturating_mul(4), MINUTE_MS);
        let responses = (settings.responses_per_minute, MINUTE_MS);
        let (per_user, per_address) = (settings.sockets_per_user, settings.sockets_per_address);
        Self {
            sign_ins: SignInLimit {
                by_address: RateLimit::new("sign_in_from", failures, clock, shared),
                by_name: RateLimit::new("sign_in_as", failures, clock, shared),
            },
            registrations: RateLimit::new("registration", registrations, clock, shared),
            invite_guesses: RateLimit::new("guess", failures, clock, shared),
            invitations: RateLimit::new("invitation", INVITATIONS, clock, shared),
            posts: RateLimit::new("post", posts, clock, shared),
            edits: RateLimit::new("edit", posts, clock, shared),
            uploads: RateLimit::new("upload", uploads, clock, shared),
            reactions: RateLimit::new("reaction", REACTIONS, clock, shared),
            translations: RateLimit::new("translation", TRANSLATIONS, clock, shared),
            responses: RateLimit::new("response", responses, clock, shared),
            sockets: SocketLimit::new(per_user, per_address, shared),
        }
    }
}

/// Limits failed sign-ins, per address and per username.
pub struct SignInLimit {
    by_address: RateLimit<ClientNetwork>,
    by_name: RateLimit<String>,
}

impl SignInLimit {
    /// Checks whether another attempt is allowed.
    ///
    /// # Errors
    /// Returns `RetryAfter` when too many attempts from this address or for this username have
    /// failed.
    pub async fn check(
        &self,
        address: Option<ClientNetwork>,
        username: &str,
    ) -> Result<(), RetryAfter> {
        let by_address = match address {
            Some(address) => self.by_address.retry_after(&address).await,
            None => None,
        };
        let by_name = self.by_name.retry_after(&name_key(username)).await;
        match by_address.max(by_name) {
            Some(wait) => Err(RetryAfter(wait)),
            None => Ok(()),
        }
    }

    /// Counts a failed attempt.
    pub fn record_failure(&self, address: Option<ClientNetwork>, username: &str) {
        if let Some(address) = address {
            self.by_address.record(address);
        }
        self.by_name.record(name_key(username));
    }
}

/// Truncates the name, so that long names cannot fill the memory; valid usernames are shorter.
fn name_key(username: &str) -> String {
    username_password::normalize_username(&username.chars().take(64).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use base::clock::Clock;
    use realtime::cluster::shared_counter::SharedCounter;

    use super::{ClientNetwork, RateLimit, RetryAfter, SignInLimit};

    #[tokio::test]
    async fn ten_failures_lock_a_name_and_an_address_each() {
        let clock = Clock::manual();
        let sign_ins = SignInLimit {
            by_address: RateLimit::new("test", (10, 180_000), &clock, &SharedCounter::none()),
            by_name: RateLimit::new("test", (10, 180_000), &clock, &SharedCounter::none()),
        };
        let network = Some(ClientNetwork::from(IpAddr::from([10, 0, 0, 1])));
        let other_network = Some(ClientNetwork::from(IpAddr::from([10, 0, 0, 2])));
        for _ in 0..10 {
            assert_eq!(sign_ins.check(network, "ann").await, Ok(()));
            sign_ins.record_failure(network, "ann");
        }

        assert_eq!(sign_ins.check(network, "ben").await, Err(RetryAfter(180)));
        assert_eq!(
            sign_ins.check(other_network, "ANN").await,
            Err(RetryAfter(180))
        );
        assert_eq!(sign_ins.check(other_network, "ben").await, Ok(()));
        clock.advance_ms(180_000);
        assert_eq!(sign_ins.check(network, "ann").await, Ok(()));
    }
}
