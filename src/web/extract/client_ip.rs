//! Determines the IP address of the client, also behind trusted proxies, for limits per address.
//!
//! **Invariant:** headers that a caller writes are ignored. Only the proxies in
//! `TROUPE_TRUSTED_PROXIES` are trusted, and only as far back as the chain of such proxies reaches.

use std::net::{IpAddr, SocketAddr};

use actix_web::HttpRequest;
use actix_web::http::header::{HeaderMap, HeaderName};
use actix_web::web::Data;
use ipnet::IpNet;

use crate::app::App;
use crate::rate_limit::client_network::ClientNetwork;

/// Returns the caller's address; without one (a test request has none) nothing is counted.
pub fn client_ip(request: &HttpRequest) -> Option<ClientNetwork> {
    let peer = request.peer_addr()?.ip();
    let app = request.app_data::<Data<App>>();
    let trusted = app.map_or(&[][..], |it| &it.config.trusted_proxies);
    Some(resolve_client(peer, request.headers(), trusted).into())
}

/// Returns the nearest address that is not a trusted proxy: each proxy appends its peer's address
/// at the right.
fn resolve_client(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |ip: IpAddr| trusted.iter().any(|it| it.contains(&ip));
    let forwarded_for = HeaderName::from_static("x-forwarded-for");
    let lines: Vec<_> = headers.get_all(&forwarded_for).collect();
    let mut hops = lines.iter().rev().flat_map(|line| {
        let line = line.to_str().unwrap_or_default();
        line.rsplit(',').map(|it| parse_address(it.trim()))
    });
    let mut nearest = peer.to_canonical();
    while is_trusted(nearest) {
        // An unreadable entry ends the chain: the last readable address is used.
        let Some(Some(next)) = hops.next() else {
            break;
        };
        nearest = next;
    }
    nearest
}

/// Parses an address; some proxies add the port.
fn parse_address(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let ip = bare.parse().ok();
    let with_port = || text.parse::<SocketAddr>().map(|it| it.ip()).ok();
    ip.or_else(with_port).map(|it: IpAddr| it.to_canonical())
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
    use ipnet::IpNet;

    use super::resolve_client;

    fn resolved(peer: &str, lines: &[&'static str], trusted: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(
                HeaderName::from_static("x-forwarded-for"),
                HeaderValue::from_static(line),
            );
        }
        let trusted: Vec<IpNet> = trusted.iter().map(|it| it.parse().unwrap()).collect();
        resolve_client(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn only_trusted_proxies_may_name_the_client() {
        assert_eq!(resolved("9.9.9.9", &["1.2.3.4"], &[]), "9.9.9.9");
        assert_eq!(
            resolved("9.9.9.9", &["1.2.3.4"], &["10.0.0.0/8"]),
            "9.9.9.9"
        );
        assert_eq!(
            resolved("10.0.0.1", &["1.2.3.4"], &["10.0.0.0/8"]),
            "1.2.3.4"
        );
        assert_eq!(
            resolved("::ffff:10.0.0.1", &["1.2.3.4"], &["10.0.0.0/8"]),
            "1.2.3.4"
        );
    }

    #[test]
    fn addresses_before_the_first_untrusted_hop_are_ignored() {
        let trusted = ["10.0.0.0/8", "::1/128"];

        assert_eq!(
            resolved("10.0.0.1", &["6.6.6.6, 1.2.3.4"], &trusted),
            "1.2.3.4"
        );
        assert_eq!(
            resolved("10.0.0.1", &["6.6.6.6", "1.2.3.4"], &trusted),
            "1.2.3.4"
        );
        assert_eq!(
            resolved("10.0.0.1", &["6.6.6.6, 1.2.3.4, 10.0.0.2"], &trusted),
            "1.2.3.4"
        );
        assert_eq!(resolved("::1", &["2a00::5,10.9.9.9"], &trusted), "2a00::5");
    }

    #[test]
    fn after_an_unreadable_entry_the_last_readable_address_is_used() {
        let trusted = ["10.0.0.0/8"];

        assert_eq!(resolved("10.0.0.1", &[], &trusted), "10.0.0.1");
        assert_eq!(resolved("10.0.0.1", &[""], &trusted), "10.0.0.1");
        assert_eq!(
            resolved("10.0.0.1", &["1.2.3.4, unknown"], &trusted),
            "10.0.0.1"
        );
        assert_eq!(
            resolved("10.0.0.1", &["10.0.0.3, 10.0.0.2"], &trusted),
            "10.0.0.3"
        );
        assert_eq!(resolved("10.0.0.1", &["1.2.3.4:5678"], &trusted), "1.2.3.4");
        assert_eq!(
            resolved("10.0.0.1", &["[2a00::5]:5678"], &trusted),
            "2a00::5"
        );
        assert_eq!(resolved("10.0.0.1", &["[2a00::5]"], &trusted), "2a00::5");
    }
}
