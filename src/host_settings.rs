//! Parses the address of a server, and one entry of a setting that lists hosts or networks; defines the format descriptions
//! that error messages show.

use std::net::IpAddr;

use ipnet::IpNet;

/// The accepted format of a list of hosts.
pub const HOST_FORMAT: &str =
    "names and addresses without scheme and port, such as troupe.lan,my-host";

/// The accepted format of a list of networks.
pub const NETWORK_FORMAT: &str = "addresses and networks, such as 127.0.0.1,10.0.0.0/8";

/// The accepted format of the address of a server.
pub const ADDRESS_FORMAT: &str = "an address such as https://troupe.example";

/// Parses the address of a server with an optional path. Returns it without a trailing slash.
pub fn parse_address(text: &str) -> Option<String> {
    let is_http = ["http://", "https://"]
        .iter()
        .any(|it| text.starts_with(it));
    let is_bare = is_http && !text.contains(['?', '#', '@', ' ']);
    is_bare.then(|| text.trim_end_matches('/').to_owned())
}

/// Parses a host into lower case: a name, or an address without a port.
pub fn parse_host(text: &str) -> Option<String> {
    let is_name = |it: &str| {
        let fits = |it: char| it.is_ascii_alphanumeric() || "-_".contains(it);
        it.split('.')
            .all(|it| !it.is_empty() && it.chars().all(fits))
    };
    let fits = text.parse::<IpAddr>().is_ok() || is_name(text);
    fits.then(|| text.to_ascii_lowercase())
}

/// Parses a network; an address is a network of one host.
pub fn parse_network(text: &str) -> Option<IpNet> {
    let address = text.parse::<IpAddr>().map(IpNet::from);
    address.ok().or_else(|| text.parse().ok())
}
