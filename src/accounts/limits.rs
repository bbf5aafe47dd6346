//! How much is too much, and what of it is counted.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use crate::accounts::limit::RateLimit;
use crate::accounts::socket_limit::SocketLimit;
use crate::accounts::user;
use crate::clock::Clock;
use crate::config;
use crate::ids::{ApiKeyId, UserId};
use crate::realtime::cluster::shared_counter::SharedCounter;

const MINUTE_MS: i64 = 60_000;
/// Invitations of unknown people: how many, within how many milliseconds. More would let one person
/// ask every account of the server.
const INVITATIONS: (u32, i64) = (30, 60 * MINUTE_MS);

/// Every limit of the house.
pub struct RateLimits {
    pub sign_ins: SignInLimit,
    /// New accounts per address, guests among them.
    pub registrations: RateLimit<ClientNetwork>,
    /// Tokens of invites that nobody made, per address.
    pub invite_guesses: RateLimit<ClientNetwork>,
    /// Invitations of people whom the inviter meets in no space, per inviter.
    pub invitations: RateLimit<UserId>,
    /// Messages per person.
    pub posts: RateLimit<UserId>,
    /// Responses per key.
    pub responses: RateLimit<ApiKeyId>,
    pub sockets: SocketLimit,
}

impl RateLimits {
    /// Nothing is counted yet; `everywhere` counts for all nodes together.
    pub fn new(settings: &config::LimitSettings, clock: &Clock, shared: &SharedCounter) -> Self {
        let failures = (settings.login_failures, 3 * MINUTE_MS);
        let registrations = (settings.registrations_per_hour, 60 * MINUTE_MS);
        let posts = (settings.posts_per_minute, MINUTE_MS);
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
            responses: RateLimit::new("response", responses, clock, shared),
            sockets: SocketLimit::new(per_user, per_address, shared),
        }
    }
}

/// Seconds until it is worth another try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter(pub u64);

/// Where a caller is: one IPv4 address, or the network of an IPv6 one, which a home has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientNetwork(IpAddr);

impl ClientNetwork {
    /// Whether it is this machine's own.
    pub fn is_loopback(self) -> bool {
        self.0.is_loopback()
    }
}

impl fmt::Display for ClientNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<IpAddr> for ClientNetwork {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(it) => {
                let [a, b, c, d, ..] = it.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            v4 => v4,
        })
    }
}

/// Failed sign-ins, per address and per name.
pub struct SignInLimit {
    by_address: RateLimit<ClientNetwork>,
    by_name: RateLimit<String>,
}

impl SignInLimit {
    /// Whether another try may be made now; `Err` says when.
    ///
    /// # Errors
    /// Too many have failed, from this address or for this name.
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

    /// A try has failed.
    pub fn record_failure(&self, address: Option<ClientNetwork>, username: &str) {
        if let Some(address) = address {
            self.by_address.record(address);
        }
        self.by_name.record(name_key(username));
    }
}

/// No real name is longer, and nobody fills the memory with long ones.
fn name_key(username: &str) -> String {
    user::normalize_username(&username.chars().take(64).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::{ClientNetwork, RetryAfter, SignInLimit};
    use crate::accounts::limit::RateLimit;
    use crate::clock::Clock;
    use crate::realtime::cluster::shared_counter::SharedCounter;

    #[tokio::test]
    async fn ten_failures_lock_a_name_and_an_address_each() {
        let clock = Clock::manual();
        let sign_ins = SignInLimit {
            by_address: RateLimit::new("test", (10, 180_000), &clock, &SharedCounter::none()),
            by_name: RateLimit::new("test", (10, 180_000), &clock, &SharedCounter::none()),
        };
        let here = Some(ClientNetwork::from(IpAddr::from([10, 0, 0, 1])));
        let there = Some(ClientNetwork::from(IpAddr::from([10, 0, 0, 2])));
        for _ in 0..10 {
            assert_eq!(sign_ins.check(here, "ann").await, Ok(()));
            sign_ins.record_failure(here, "ann");
        }

        assert_eq!(sign_ins.check(here, "ben").await, Err(RetryAfter(180)));
        assert_eq!(sign_ins.check(there, "ANN").await, Err(RetryAfter(180)));
        assert_eq!(sign_ins.check(there, "ben").await, Ok(()));
        clock.advance_ms(180_000);
        assert_eq!(sign_ins.check(here, "ann").await, Ok(()));
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let of = |text: &str| ClientNetwork::from(text.parse::<IpAddr>().unwrap());

        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:2:ffff::4"));
        assert_ne!(of("2001:db8:1:2::3"), of("2001:db8:1:3::3"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }
}
