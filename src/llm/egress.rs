//! The way out to model providers: one client for all calls, and the check of where it may go.
//!
//! The check looks at the address as it is written. The outbound guard, which resolves a name
//! itself, looks at every address it stands for and connects to the one it looked at, belongs
//! here too: as the client's resolver, built on [`is_internal`]. Until then a public name that
//! points to an internal address is not noticed.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use reqwest::Url;
use reqwest::redirect::Policy;

use crate::llm::error::LlmError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The client for model calls; cloning it shares its connections.
///
/// It follows no redirect, as that would carry a key elsewhere, reads no proxy from the
/// environment, unpacks nothing, and has no limit on the whole call: `generation/` has one.
pub fn client() -> Result<Client, LlmError> {
    let unusable = |message: String| LlmError::Unusable { message };
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    // The crypto provider is named here, so that nothing depends on a process-wide choice.
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(format!("TLS cannot be set up: {error}.")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        .referer(false)
        .no_proxy()
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .user_agent(concat!("troupe/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| unusable(format!("The HTTP client cannot be set up: {error}.")))
}

/// Reads a provider's base URL. Without `allow_private` it must not name this machine or an
/// address that only exists inside a network.
pub fn check_base_url(text: &str, allow_private: bool) -> Result<Url, LlmError> {
    let refuse = |message: &str| {
        Err(LlmError::Unusable {
            message: message.to_owned(),
        })
    };
    let Ok(mut url) = Url::parse(text.trim()) else {
        return refuse("The base URL is not a URL, such as https://api.example.com/v1.");
    };
    if !matches!(url.scheme(), "http" | "https") {
        return refuse("The base URL must begin with http:// or https://.");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refuse("The base URL must not carry a user name or a password.");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return refuse("The base URL must end with its path, without ? or #.");
    }
    if !allow_private && is_internal_host(&url) {
        return refuse("The base URL must not point into a private network.");
    }
    let path = url.path().trim_end_matches('/');
    let path = path
        .strip_suffix("/chat/completions")
        .unwrap_or(path)
        .to_owned();
    url.set_path(&path);
    Ok(url)
}

/// The address of an endpoint below a checked base URL.
pub fn endpoint(base_url: &Url, path: &str) -> Url {
    let mut url = base_url.clone();
    url.set_path(&format!("{}{path}", base_url.path().trim_end_matches('/')));
    url
}

fn is_internal_host(url: &Url) -> bool {
    // The parser has turned every spelling of an IPv4 address, such as 127.1, into the usual one.
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return is_internal(ip);
    }
    let name = host.trim_end_matches('.');
    name.is_empty() || name == "localhost" || name.ends_with(".localhost")
}

/// Whether an address is not one of the public Internet, or hides one that is not.
pub fn is_internal(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_internal_v4(ip),
        IpAddr::V6(ip) => is_internal_v6(ip),
    }
}

fn is_internal_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || ip.is_documentation()
        || matches!(
            (a, b, c),
            (0, ..) | (192, 0, 0) | (192, 88, 99) | (224.., ..)
        )
        || matches!((a, b), (100, 64..=127) | (198, 18..=19))
}

fn is_internal_v6(ip: Ipv6Addr) -> bool {
    if let Some(mapped) = ip.to_ipv4() {
        return is_internal_v4(mapped);
    }
    match ip.segments() {
        // NAT64 and 6to4 carry an IPv4 address.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_internal_v4(v4(high, low)),
        [0x2002, high, low, ..] => is_internal_v4(v4(high, low)),
        [0x64, 0xff9b, ..] => true,
        // Teredo, documentation, and all that is not global unicast: ULA, link-local, multicast.
        [0x2001, 0 | 0xdb8, ..] => true,
        [first, ..] => first & 0xe000 != 0x2000,
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use super::check_base_url;
    use super::client;
    use super::endpoint;

    #[test]
    fn a_public_base_url_is_taken_however_it_ends() {
        for text in [
            "https://api.example.com/v1",
            "https://api.example.com/v1/",
            " https://api.example.com/v1/chat/completions ",
        ] {
            let url = check_base_url(text, false).unwrap();

            assert_eq!(
                endpoint(&url, "/models").as_str(),
                "https://api.example.com/v1/models"
            );
        }
        let bare = check_base_url("http://8.8.8.8:8000", false).unwrap();
        assert_eq!(
            endpoint(&bare, "/models").as_str(),
            "http://8.8.8.8:8000/models"
        );
    }

    #[test]
    fn what_is_no_plain_http_address_is_refused() {
        for text in [
            "",
            "api.example.com",
            "ftp://example.com",
            "file:///etc/passwd",
            "http://",
            "https://user@example.com",
            "https://:word@example.com",
            "https://example.com/?a=b",
            "https://example.com/#a",
            "javascript:alert(1)",
        ] {
            assert!(check_base_url(text, true).is_err(), "{text}");
        }
    }

    #[test]
    fn an_internal_address_is_refused_in_every_spelling() {
        for host in [
            "localhost",
            "LOCALHOST",
            "localhost.",
            "a.localhost",
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "①②⑦.0.0.1",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "224.0.0.1",
            "255.255.255.255",
            "[::]",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b:1::1]",
            "[2002:7f00:1::]",
            "[fc00::1]",
            "[fd12::1]",
            "[fe80::1]",
            "[ff02::1]",
            "[2001:db8::1]",
        ] {
            let text = format!("http://{host}:8080/v1");

            assert!(check_base_url(&text, false).is_err(), "{host}");
            assert!(check_base_url(&text, true).is_ok(), "{host}");
        }
    }

    #[test]
    fn a_public_ipv6_address_is_taken() {
        assert!(check_base_url("https://[2606:4700::1111]/v1", false).is_ok());
    }

    #[test]
    fn the_client_can_be_built_without_a_process_wide_crypto_provider() {
        assert!(client().is_ok());
    }
}
