//! Counts the open HTTP connections, limits them per address, and reports when the process has used
//! more than half of those it can hold.
//!
//! **Invariant:** a connection counts from accept to close; its permit is stored with the
//! connection.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use parking_lot::Mutex;

use crate::config::Config;
use crate::rate_limit::client_network::ClientNetwork;

/// Maximum number of open connections, even if the system allows more.
const MAX_CONNECTIONS: usize = 50_000;

/// Files reserved for other uses: the database, calls to providers, uploads.
const RESERVED_FILES: usize = 96;

/// Counts the connections of this process.
pub struct Connections {
    /// Limit per address; 0 means no limit.
    per_address: usize,
    /// Limit for all addresses together.
    capacity: usize,
    trusted_proxies: Vec<IpNet>,
    /// Whether connections from loopback addresses are exempt from the limit per address.
    is_loopback_exempt: bool,
    open: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    n_open: usize,
    by_address: HashMap<ClientNetwork, usize>,
}

/// One open connection. Dropping it ends its count.
pub struct ConnectionPermit {
    connections: Arc<Connections>,
    /// `None`: exempt from the limit per address.
    address: Option<ClientNetwork>,
}

impl Connections {
    /// Creates the counter with the limits of these settings. `n_files` is the maximum number of
    /// open files of the process, if the system reports it.
    pub fn new(config: &Config, n_files: Option<usize>) -> Self {
        let capacity = n_files.map_or(MAX_CONNECTIONS, |n| {
            let available = n.saturating_sub(RESERVED_FILES).max(n / 2);
            available.clamp(2, MAX_CONNECTIONS)
        });
        // One address never gets more than half of the capacity.
        let per_address = match config.limits.connections_per_address as usize {
            0 => 0,
            n => n.min(capacity / 2),
        };
        Self {
            per_address,
            capacity,
            trusted_proxies: config.trusted_proxies.clone(),
            is_loopback_exempt: true,
            open: Mutex::default(),
        }
    }

    /// Makes loopback connections count like all others; for tests.
    pub fn with_loopback_limit(mut self) -> Self {
        self.is_loopback_exempt = false;
        self
    }

    /// Admits a connection from this address. Returns `None` if the address has reached its limit.
    pub fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<ConnectionPermit> {
        let address = (!self.is_exempt(peer.to_canonical())).then(|| ClientNetwork::from(peer));
        let mut open = self.open.lock();
        if let Some(address) = address {
            let n = open.by_address.entry(address).or_default();
            if *n >= self.per_address {
                return None;
            }
            *n += 1;
        }
        open.n_open += 1;
        Some(ConnectionPermit {
            connections: self.clone(),
            address,
        })
    }

    fn is_exempt(&self, peer: IpAddr) -> bool {
        let is_own = self.is_loopback_exempt && peer.is_loopback();
        let is_proxy = self.trusted_proxies.iter().any(|net| net.contains(&peer));
        self.per_address == 0 || is_own || is_proxy
    }

    /// Returns how many connections the process can hold.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns whether more than half of the capacity is in use.
    pub fn is_crowded(&self) -> bool {
        self.open.lock().n_open > self.capacity / 2
    }

    /// Returns the number of open connections.
    pub fn n_open(&self) -> usize {
        self.open.lock().n_open
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock();
        open.n_open -= 1;
        let Some(address) = self.address else {
            return;
        };
        if let Some(n) = open.by_address.get_mut(&address) {
            *n -= 1;
            if *n == 0 {
                open.by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;

    use super::Connections;
    use crate::config::Config;

    fn connections(env: &[(&'static str, &str)], n_files: Option<usize>) -> Arc<Connections> {
        let config = Config::read(|name| {
            let found = env.iter().find(|it| it.0 == name);
            found.map(|it| it.1.to_owned())
        });
        Arc::new(Connections::new(&config.unwrap(), n_files))
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn connections_are_limited_for_each_address() {
        let limited = connections(&[("LIMIT_CONNECTIONS_PER_ADDRESS", "2")], None);

        let first = limited.admit(ip("192.0.2.1"));
        let second = limited.admit(ip("::ffff:192.0.2.1"));
        assert!(first.is_some() && second.is_some());
        assert!(limited.admit(ip("192.0.2.1")).is_none());
        let other = limited.admit(ip("192.0.2.2"));
        assert!(other.is_some());
        assert_eq!(limited.n_open(), 3);
        drop(second);

        assert!(limited.admit(ip("192.0.2.1")).is_some());
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_as_one() {
        let limited = connections(&[("LIMIT_CONNECTIONS_PER_ADDRESS", "1")], None);

        let _first = limited.admit(ip("2001:db8::1"));

        assert!(limited.admit(ip("2001:db8::2")).is_none());
        assert!(limited.admit(ip("2001:db8:0:1::1")).is_some());
    }

    #[test]
    fn loopback_and_trusted_proxies_are_exempt_and_zero_is_no_limit() {
        let env = [
            ("LIMIT_CONNECTIONS_PER_ADDRESS", "1"),
            ("TROUPE_TRUSTED_PROXIES", "10.0.0.0/8"),
        ];
        let limited = connections(&env, None);
        let unlimited = connections(&[("LIMIT_CONNECTIONS_PER_ADDRESS", "0")], None);

        for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.1.2.3"] {
            let all: Vec<_> = (0..10).map(|_| limited.admit(ip(address))).collect();
            assert!(all.iter().all(Option::is_some), "{address}");
        }
        let all: Vec<_> = (0..10).map(|_| unlimited.admit(ip("192.0.2.1"))).collect();
        assert!(all.iter().all(Option::is_some));
    }

    #[test]
    fn one_address_never_gets_more_than_half_of_the_capacity() {
        let limited = connections(&[], Some(256));

        let all: Vec<_> = (0..256).map(|_| limited.admit(ip("192.0.2.1"))).collect();

        assert_eq!(limited.capacity(), 160);
        assert_eq!(all.iter().flatten().count(), 80);
        assert!(!limited.is_crowded());
        let _one_more = limited.admit(ip("192.0.2.2"));
        assert!(limited.is_crowded());
    }
}
