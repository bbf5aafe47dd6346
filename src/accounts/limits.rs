//! How much is too much: counted in this process, in a window that slides.
//!
//! **Invariant:** what is older than its window is forgotten, so memory follows the traffic of the
//! last minutes and not of the server's life.

use crate::accounts::sockets::Sockets;
use crate::accounts::user;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::config;
use crate::ids::UserId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::hash::Hash;
use std::net::IpAddr;
use std::net::Ipv6Addr;

const MINUTE_MS: i64 = 60_000;

/// Below so many keys nothing is swept.
const SWEEP_FROM: usize = 1024;

/// Every limit of the house.
pub struct Limits {
    pub sign_ins: SignIns,
    /// New accounts per address, guests among them.
    pub registrations: Window<Address>,
    /// Tokens of invites that nobody made, per address.
    pub guesses: Window<Address>,
    /// Messages per person.
    pub posts: Window<UserId>,
    pub sockets: Sockets,
}

impl Limits {
    /// Nothing is counted yet.
    pub fn new(settings: &config::Limits, clock: &Clock) -> Self {
        let failures = settings.login_failures;
        Self {
            sign_ins: SignIns {
                by_address: Window::new(failures, 3 * MINUTE_MS, clock),
                by_name: Window::new(failures, 3 * MINUTE_MS, clock),
            },
            registrations: Window::new(settings.registrations_per_hour, 60 * MINUTE_MS, clock),
            guesses: Window::new(failures, 3 * MINUTE_MS, clock),
            posts: Window::new(settings.posts_per_minute, MINUTE_MS, clock),
            sockets: Sockets::new(settings.sockets_per_user, settings.sockets_per_address),
        }
    }
}

/// Seconds until it is worth another try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait(pub u64);

/// Where a caller is: one IPv4 address, or the network of an IPv6 one, which a home has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address(IpAddr);

impl Address {
    /// Whether it is this machine's own.
    pub fn is_loopback(self) -> bool {
        self.0.is_loopback()
    }
}

impl From<IpAddr> for Address {
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
pub struct SignIns {
    by_address: Window<Address>,
    by_name: Window<String>,
}

impl SignIns {
    /// Whether another try may be made now; `Err` says when.
    ///
    /// # Errors
    /// Too many have failed, from this address or for this name.
    pub fn check(&self, address: Option<Address>, username: &str) -> Result<(), Wait> {
        let by_address = address.and_then(|it| self.by_address.wait_for(&it));
        let by_name = self.by_name.wait_for(&key_of(username));
        match by_address.max(by_name) {
            Some(wait) => Err(Wait(wait)),
            None => Ok(()),
        }
    }

    /// A try has failed.
    pub fn failed(&self, address: Option<Address>, username: &str) {
        if let Some(address) = address {
            self.by_address.note(address);
        }
        self.by_name.note(key_of(username));
    }
}

/// No real name is longer, and nobody fills the memory with long ones.
fn key_of(username: &str) -> String {
    user::fold(&username.chars().take(64).collect::<String>())
}

/// At most `most` per key within the last `span_ms`; 0 is no limit.
pub struct Window<K> {
    most: usize,
    span_ms: i64,
    clock: Clock,
    seen: Mutex<Seen<K>>,
}

struct Seen<K> {
    by_key: HashMap<K, VecDeque<Timestamp>>,
    /// Sweeping doubles its threshold, so that its cost stays a small part of what was noted.
    sweep_at: usize,
}

impl<K: Eq + Hash> Window<K> {
    /// An empty window.
    pub fn new(most: u32, span_ms: i64, clock: &Clock) -> Self {
        Self {
            most: usize::try_from(most).unwrap_or(usize::MAX),
            span_ms,
            clock: clock.clone(),
            seen: Mutex::new(Seen {
                by_key: HashMap::new(),
                sweep_at: SWEEP_FROM,
            }),
        }
    }

    /// Takes one place in the window.
    ///
    /// # Errors
    /// The window is full.
    pub fn take(&self, key: K) -> Result<(), Wait> {
        let mut seen = self.seen.lock();
        match self.full_for(&mut seen, &key) {
            Some(wait) => Err(Wait(wait)),
            None => {
                self.push(&mut seen, key);
                Ok(())
            }
        }
    }

    /// Gives back the place that was taken last: what it was for did not happen.
    pub fn give_back(&self, key: &K) {
        if let Some(times) = self.seen.lock().by_key.get_mut(key) {
            times.pop_back();
        }
    }

    /// Seconds until there is a place; `None`: there is one now.
    pub fn wait_for(&self, key: &K) -> Option<u64> {
        self.full_for(&mut self.seen.lock(), key)
    }

    /// Counts one, whether there is a place or not.
    pub fn note(&self, key: K) {
        self.push(&mut self.seen.lock(), key);
    }

    fn full_for(&self, seen: &mut Seen<K>, key: &K) -> Option<u64> {
        if self.most == 0 {
            return None;
        }
        let now = self.clock.now();
        let times = seen.by_key.get_mut(key)?;
        forget(times, now, self.span_ms);
        let frees_next = *times.get(times.len().checked_sub(self.most)?)?;
        let ms = frees_next.plus_ms(self.span_ms).ms_since(now).max(1);
        Some(u64::try_from(ms).unwrap_or(0).div_ceil(1000))
    }

    fn push(&self, seen: &mut Seen<K>, key: K) {
        if self.most == 0 {
            return;
        }
        let now = self.clock.now();
        if seen.by_key.len() >= seen.sweep_at {
            seen.by_key.retain(|_, times| {
                forget(times, now, self.span_ms);
                !times.is_empty()
            });
            seen.sweep_at = (seen.by_key.len() * 2).max(SWEEP_FROM);
        }
        seen.by_key.entry(key).or_default().push_back(now);
    }
}

fn forget(times: &mut VecDeque<Timestamp>, now: Timestamp, span_ms: i64) {
    while times.front().is_some_and(|it| now.ms_since(*it) >= span_ms) {
        times.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::Address;
    use super::SWEEP_FROM;
    use super::SignIns;
    use super::Wait;
    use super::Window;
    use crate::clock::Clock;
    use std::net::IpAddr;

    #[test]
    fn a_window_slides() {
        let clock = Clock::manual();
        let window = Window::new(2, 60_000, &clock);

        assert_eq!(window.take("ann"), Ok(()));
        clock.advance_ms(30_000);
        assert_eq!(window.take("ann"), Ok(()));
        assert_eq!(window.take("ann"), Err(Wait(30)));
        assert_eq!(window.take("ben"), Ok(()));
        clock.advance_ms(29_999);
        assert_eq!(window.take("ann"), Err(Wait(1)));
        clock.advance_ms(1);
        assert_eq!(window.take("ann"), Ok(()));
        assert_eq!(window.take("ann"), Err(Wait(30)));
    }

    #[test]
    fn what_was_given_back_is_free() {
        let window = Window::new(1, 60_000, &Clock::manual());
        window.take("ann").unwrap();

        window.give_back(&"ann");

        assert_eq!(window.take("ann"), Ok(()));
    }

    #[test]
    fn zero_is_no_limit() {
        let window = Window::new(0, 60_000, &Clock::manual());

        assert!((0..1000).all(|_| window.take("ann").is_ok()));
        assert!(window.seen.lock().by_key.is_empty());
    }

    #[test]
    fn old_keys_are_swept() {
        let clock = Clock::manual();
        let window = Window::new(5, 1_000, &clock);
        for key in 0..SWEEP_FROM {
            window.note(key);
        }
        clock.advance_ms(1_000);

        window.note(SWEEP_FROM);

        assert_eq!(window.seen.lock().by_key.len(), 1);
    }

    #[test]
    fn ten_failures_lock_a_name_and_an_address_each() {
        let clock = Clock::manual();
        let sign_ins = SignIns {
            by_address: Window::new(10, 180_000, &clock),
            by_name: Window::new(10, 180_000, &clock),
        };
        let here = Some(Address::from(IpAddr::from([10, 0, 0, 1])));
        let there = Some(Address::from(IpAddr::from([10, 0, 0, 2])));
        for _ in 0..10 {
            assert_eq!(sign_ins.check(here, "ann"), Ok(()));
            sign_ins.failed(here, "ann");
        }

        assert_eq!(sign_ins.check(here, "ben"), Err(Wait(180)));
        assert_eq!(sign_ins.check(there, "ANN"), Err(Wait(180)));
        assert_eq!(sign_ins.check(there, "ben"), Ok(()));
        clock.advance_ms(180_000);
        assert_eq!(sign_ins.check(here, "ann"), Ok(()));
    }

    #[test]
    fn an_ipv6_home_is_one_address() {
        let of = |text: &str| Address::from(text.parse::<IpAddr>().unwrap());

        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:2:ffff::4"));
        assert_ne!(of("2001:db8:1:2::3"), of("2001:db8:1:3::3"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }
}
