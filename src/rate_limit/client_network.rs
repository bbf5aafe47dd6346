//! Defines `ClientNetwork`, the key of limits per address: an IPv4 address, or the /64 network of
//! an IPv6 address.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The network of a client: one IPv4 address, or an IPv6 network, because an internet provider
/// usually assigns a whole IPv6 network to each customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientNetwork(IpAddr);

impl ClientNetwork {
    /// Returns whether the address is a loopback address.
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

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::ClientNetwork;

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let of = |text: &str| ClientNetwork::from(text.parse::<IpAddr>().unwrap());

        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:2:ffff::4"));
        assert_ne!(of("2001:db8:1:2::3"), of("2001:db8:1:3::3"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }
}
