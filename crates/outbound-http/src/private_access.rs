//! Defines `PrivateAccess`, the policy of one `OutboundClient`: decides which hosts in private
//! networks it may call (none, all, or the names and single addresses in a list).
//!
//! **Invariant:** providers of admins and addresses from members have separate policies. The policy
//! for members allows only the hosts that an admin lists, whatever address the server binds to.

use std::net::IpAddr;
use std::sync::Arc;

/// The policy of one client. Addresses that are forbidden by `address_policy::check` stay forbidden
/// under each policy.
#[derive(Clone, Debug)]
pub enum PrivateAccess {
    /// No host in a private network.
    Denied,
    /// Every host in a private network.
    Allowed,
    /// Only these hosts.
    Listed(Arc<[ListedHost]>),
}

/// A host in an admin's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListedHost {
    /// In lower case, without a trailing dot.
    Name(String),
    Address(IpAddr),
}

impl PrivateAccess {
    /// Allows the hosts of a list: names, and addresses without a port.
    pub fn from_list(hosts: &[String]) -> Self {
        Self::Listed(hosts.iter().map(|host| ListedHost::parse(host)).collect())
    }

    /// Returns whether a host of a URL, or a name to be resolved, may be in a private network.
    ///
    /// A listed name does not allow its addresses when a URL contains them directly.
    pub fn allows(&self, host: &str) -> bool {
        match self {
            Self::Denied => false,
            Self::Allowed => true,
            Self::Listed(hosts) => hosts.contains(&ListedHost::parse(host)),
        }
    }
}

impl ListedHost {
    fn parse(host: &str) -> Self {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse() {
            Ok(address) => Self::Address(address),
            Err(_) => Self::Name(bare.trim_end_matches('.').to_ascii_lowercase()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PrivateAccess;

    #[test]
    fn a_list_allows_only_its_hosts_in_any_spelling() {
        let hosts = ["tools.lan", "192.168.1.5", "fd00::0:7"].map(str::to_owned);
        let access = PrivateAccess::from_list(&hosts);

        for host in [
            "tools.lan",
            "TOOLS.lan.",
            "192.168.1.5",
            "[fd00::7]",
            "fd00::7",
        ] {
            assert!(access.allows(host), "{host}");
        }
        for host in [
            "other.lan",
            "x.tools.lan",
            "tools.lan.example",
            "192.168.1.6",
            "[::ffff:192.168.1.5]",
            "",
        ] {
            assert!(!access.allows(host), "{host}");
        }
    }
}
