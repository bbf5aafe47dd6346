//! Decides which IP addresses an outbound call may go to: public ones always, private ones if the
//! caller allows them, link-local, multicast, reserved and cloud metadata addresses never. No I/O.
//!
//! **Invariant:** an address that embeds another one (mapped, translated, tunneled) is checked as
//! the embedded address, and rejected if that cannot be read.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Cloud metadata services, which give secrets to the machine, as far as no rule below covers them:
/// Alibaba, Oracle, Azure.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];

/// The same over IPv6: Amazon, Google.
const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

/// Why an address must not be called. Each text is a sentence for users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressRejected {
    #[error(
        "The base URL is in a private network. Set TROUPE_ALLOW_PRIVATE_PROVIDERS=true to allow that."
    )]
    Private,
    #[error(
        "The base URL has an address that is never allowed: link-local, multicast, reserved, or a cloud's metadata service."
    )]
    Forbidden,
}

/// Checks whether a call may go to an address.
///
/// # Errors
/// Returns an error for private networks unless `allow_private`, and for addresses where no
/// provider can be.
pub fn check(ip: IpAddr, allow_private: bool) -> Result<(), AddressRejected> {
    match classify(ip) {
        AddressClass::Public => Ok(()),
        AddressClass::Private if allow_private => Ok(()),
        AddressClass::Private => Err(AddressRejected::Private),
        AddressClass::Forbidden => Err(AddressRejected::Forbidden),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddressClass {
    /// Reached over the Internet.
    Public,
    /// This machine or a private network; local models run here.
    Private,
    /// No model runs here, but calls to it could be abused (server-side request forgery).
    Forbidden,
}

fn classify(ip: IpAddr) -> AddressClass {
    match ip {
        IpAddr::V4(ip) => classify_v4(ip),
        IpAddr::V6(ip) => classify_v6(ip),
    }
}

fn classify_v4(ip: Ipv4Addr) -> AddressClass {
    let [a, b, c, _] = ip.octets();
    let is_special = matches!(
        (a, b, c),
        (100, 64..=127, _) | (198, 18..=19, _) | (192, 0, 0) | (192, 88, 99)
    );
    if matches!(a, 0 | 224..) || ip.is_link_local() || METADATA_V4.contains(&ip) {
        AddressClass::Forbidden
    } else if ip.is_loopback() || ip.is_private() || ip.is_documentation() || is_special {
        AddressClass::Private
    } else {
        AddressClass::Public
    }
}

fn classify_v6(ip: Ipv6Addr) -> AddressClass {
    if ip.is_loopback() {
        return AddressClass::Private;
    }
    if METADATA_V6.contains(&ip) {
        return AddressClass::Forbidden;
    }
    match ip.segments() {
        // Link-local, multicast.
        [0xfe80..=0xfebf | 0xff00.., ..] => AddressClass::Forbidden,
        // IPv4-compatible (including the unspecified address), -mapped and -translated; NAT64.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => classify_v4(v4_from_segments(high, low)),
        // 6to4, and ISATAP in any network.
        [0x2002, high, low, ..] | [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => {
            classify_v4(v4_from_segments(high, low))
        }
        // Local-use NAT64 and Teredo: the embedded address cannot be read reliably.
        [0x64, 0xff9b, ..] | [0x2001, 0, ..] => AddressClass::Forbidden,
        // Protocol assignments and documentation.
        [0x2001, ..0x200 | 0xdb8, ..] | [0x3fff, ..0x1000, ..] => AddressClass::Private,
        // Global unicast; everything else is unique local, site-local or unassigned.
        [0x2000..=0x3fff, ..] => AddressClass::Public,
        _ => AddressClass::Private,
    }
}

fn v4_from_segments(high: u16, low: u16) -> Ipv4Addr {
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::{AddressRejected, check};

    fn check_text(text: &str, allow_private: bool) -> Result<(), AddressRejected> {
        let ip: IpAddr = text.parse().unwrap_or_else(|_| panic!("{text}"));
        check(ip, allow_private)
    }

    #[test]
    fn public_addresses_are_allowed() {
        for ip in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "2001:4860::8888",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert_eq!(check_text(ip, false), Ok(()), "{ip}");
        }
    }

    #[test]
    fn private_networks_are_allowed_only_if_configured() {
        for ip in [
            "127.0.0.1",
            "127.255.255.254",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "100.127.255.255",
            "198.18.0.1",
            "192.0.2.1",
            "198.51.100.1",
            "203.0.113.1",
            "192.0.0.1",
            "192.88.99.1",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:0:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2a00::5efe:10.0.0.1",
            "2a00::200:5efe:10.0.0.1",
            "fc00::1",
            "fd12:3456::1",
            "fec0::1",
            "100::1",
            "2001:2::1",
            "2001:1ff::1",
            "2001:db8::1",
            "3fff:fff::1",
            "4000::1",
        ] {
            assert_eq!(check_text(ip, false), Err(AddressRejected::Private), "{ip}");
            assert_eq!(check_text(ip, true), Ok(()), "{ip}");
        }
    }

    #[test]
    fn forbidden_addresses_are_always_rejected() {
        for ip in [
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "169.254.0.1",
            "100.100.100.200",
            "192.0.0.192",
            "168.63.129.16",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::169.254.169.254",
            "::ffff:169.254.169.254",
            "::ffff:0:169.254.169.254",
            "::ffff:0.0.0.0",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b::",
            "64:ff9b:1::1",
            "2002:a9fe:a9fe::",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2a00::5efe:169.254.169.254",
            "fe80::1",
            "fe80::5efe:10.0.0.1",
            "febf::1",
            "ff02::1",
            "fd00:ec2::254",
            "fd20:ce::254",
        ] {
            assert_eq!(
                check_text(ip, false),
                Err(AddressRejected::Forbidden),
                "{ip}"
            );
            assert_eq!(
                check_text(ip, true),
                Err(AddressRejected::Forbidden),
                "{ip}"
            );
        }
    }
}
