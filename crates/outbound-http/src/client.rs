//! The HTTP client for all outbound calls: checks every IP address before it connects, and
//! validates the base URLs of providers and the URLs of tool servers.
//!
//! **Invariant:** no call reaches an address that [`address_policy::check`] rejects. An IP address
//! in the URL is checked before each call. A name is resolved by the client's own resolver, which
//! checks each of its addresses and returns only the allowed ones; the connection uses one of
//! these, so a name that resolves to another address a moment later (DNS rebinding) has no effect.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Url};

use crate::address_policy;
use crate::address_policy::AddressRejected;
use crate::error::OutboundError;
use crate::private_access::PrivateAccess;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Resolves host names.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// Returns every address of a name.
    ///
    /// # Errors
    /// Returns an error when the name cannot be resolved.
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the operating system.
#[derive(Debug, Clone, Copy)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|it| it.ip()).collect())
    }
}

/// The only client for outbound calls. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct OutboundClient {
    client: Client,
    private_access: PrivateAccess,
}

impl OutboundClient {
    /// Creates the client for providers that an admin configured. With `allow_private`, calls may
    /// go to private networks, for example to local models.
    ///
    /// # Errors
    /// Returns an error when TLS cannot be set up.
    pub fn new(resolver: Arc<dyn Resolver>, allow_private: bool) -> Result<Self, OutboundError> {
        let private = match allow_private {
            true => PrivateAccess::Allowed,
            false => PrivateAccess::Denied,
        };
        Self::build(resolver, private)
    }

    /// Creates the client for addresses that members name. In private networks it reaches only the
    /// hosts that an admin lists.
    ///
    /// # Errors
    /// Returns an error when TLS cannot be set up.
    pub fn for_members(
        resolver: Arc<dyn Resolver>,
        hosts: &[String],
    ) -> Result<Self, OutboundError> {
        Self::build(resolver, PrivateAccess::from_list(hosts))
    }

    /// Builds the client: no redirects, because they would send a key to another server; no proxy
    /// from the environment; no decompression; and no time limit for a whole call, because
    /// the caller has one (see the crate `agent`).
    fn build(resolver: Arc<dyn Resolver>, private: PrivateAccess) -> Result<Self, OutboundError> {
        let guard = GuardedResolver {
            resolver,
            private_access: private.clone(),
        };
        let client = Client::builder()
            .tls_backend_preconfigured(tls_config()?)
            .dns_resolver(guard)
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
            .map_err(|error| {
                OutboundError(format!("The HTTP client cannot be set up: {error}."))
            })?;
        Ok(Self {
            client,
            private_access: private,
        })
    }

    /// Parses a provider's base URL.
    ///
    /// # Errors
    /// Returns an error when it is not a valid base URL, or its host is an address that must not
    /// be called. A host name is checked when it is called.
    pub fn parse_base_url(&self, text: &str) -> Result<Url, OutboundError> {
        let refuse = |message: &str| Err(OutboundError(message.to_owned()));
        let text = text.trim();
        // The parser would drop line breaks and tabs, and the stored URL would differ from the
        // called one.
        if text.chars().any(char::is_control) {
            return refuse("The base URL must not contain line breaks or control characters.");
        }
        let Ok(mut url) = Url::parse(text) else {
            return refuse("The base URL is not a URL, such as https://api.example.com/v1.");
        };
        if !matches!(url.scheme(), "http" | "https") {
            return refuse("The base URL must begin with http:// or https://.");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("The base URL must not contain a user name or a password.");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return refuse("The base URL must not contain ? or #.");
        }
        self.check_url(&url)?;
        let path = url.path().trim_end_matches('/');
        let path = path
            .strip_suffix("/chat/completions")
            .unwrap_or(path)
            .to_owned();
        url.set_path(&path);
        Ok(url)
    }

    /// Prepares a GET request.
    ///
    /// # Errors
    /// Returns an error when the URL's host must not be called.
    pub fn get(&self, url: Url) -> Result<RequestBuilder, OutboundError> {
        self.check_url(&url)?;
        Ok(self.client.get(url))
    }

    /// Prepares a POST request.
    ///
    /// # Errors
    /// Returns an error when the URL's host must not be called.
    pub fn post(&self, url: Url) -> Result<RequestBuilder, OutboundError> {
        self.check_url(&url)?;
        Ok(self.client.post(url))
    }

    /// Prepares a DELETE request.
    ///
    /// # Errors
    /// Returns an error when the URL's host must not be called.
    pub fn delete(&self, url: Url) -> Result<RequestBuilder, OutboundError> {
        self.check_url(&url)?;
        Ok(self.client.delete(url))
    }

    /// Parses the URL of a tool server. Returns `None` if it is invalid or must not be called.
    /// Plain HTTP is accepted only for hosts that may be in private networks.
    pub fn parse_tool_server_url(&self, text: &str) -> Option<Url> {
        let is_plain = !text.chars().any(char::is_control);
        let url = Url::parse(text.trim()).ok().filter(|_| is_plain)?;
        let is_local = self
            .private_access
            .allows(url.host_str().unwrap_or_default());
        let is_allowed_scheme = url.scheme() == "https" || (url.scheme() == "http" && is_local);
        let is_bare = url.username().is_empty() && url.password().is_none();
        let is_valid = is_allowed_scheme && is_bare && url.fragment().is_none();
        (is_valid && self.check_url(&url).is_ok()).then_some(url)
    }

    /// Checks the host of a URL, because an IP address in a URL is never resolved.
    fn check_url(&self, url: &Url) -> Result<(), OutboundError> {
        // The parser has normalized every spelling of an IPv4 address, such as 127.1.
        let host = url.host_str().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let allow_private = self.private_access.allows(host);
        let checked = match bare.parse::<IpAddr>() {
            Ok(ip) => address_policy::check(ip, allow_private),
            Err(_) if is_localhost(host) && !allow_private => Err(AddressRejected::Private),
            Err(_) => Ok(()),
        };
        checked.map_err(|refused| OutboundError(refused.to_string()))
    }
}

/// Returns whether a name means this machine, whatever a resolver returns.
fn is_localhost(host: &str) -> bool {
    let name = host.trim_end_matches('.');
    name.is_empty() || name == "localhost" || name.ends_with(".localhost")
}

/// The client's resolver.
struct GuardedResolver {
    resolver: Arc<dyn Resolver>,
    private_access: PrivateAccess,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = Arc::clone(&self.resolver);
        let allow_private = self.private_access.allows(name.as_str());
        Box::pin(async move {
            let found = resolver.lookup(name.as_str()).await?;
            Ok(allowed_addresses(found, allow_private)?)
        })
    }
}

/// Returns the allowed addresses of a name. Names in home networks often have a link-local address
/// in addition to the usable one.
fn allowed_addresses(found: Vec<IpAddr>, allow_private: bool) -> Result<Addrs, AddressRejected> {
    let checked = found.into_iter().map(|ip| {
        // Port 0 means the port of the URL.
        address_policy::check(ip, allow_private).map(|()| SocketAddr::new(ip, 0))
    });
    let (allowed, refused): (Vec<_>, Vec<_>) = checked.partition(Result::is_ok);
    match refused.into_iter().find_map(Result::err) {
        Some(refused) if allowed.is_empty() => Err(refused),
        _ => Ok(Box::new(allowed.into_iter().flatten())),
    }
}

fn tls_config() -> Result<rustls::ClientConfig, OutboundError> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    // Sets the crypto provider explicitly, so that nothing depends on the process-wide default.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| OutboundError(format!("TLS cannot be set up: {error}.")))?;
    Ok(tls.with_root_certificates(roots).with_no_client_auth())
}

/// Returns the URL of a path below a checked base URL.
pub fn endpoint_url(base_url: &Url, path: &str) -> Url {
    let mut url = base_url.clone();
    url.set_path(&format!("{}{path}", base_url.path().trim_end_matches('/')));
    url
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::IpAddr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use reqwest::Url;
    use reqwest::dns::Resolve;

    use super::{
        GuardedResolver, OutboundClient, PrivateAccess, Resolver, SystemResolver, endpoint_url,
    };

    fn client(allow_private: bool) -> OutboundClient {
        OutboundClient::new(Arc::new(SystemResolver), allow_private).unwrap()
    }

    #[test]
    fn a_public_base_url_is_accepted_with_any_ending() {
        for text in [
            "https://api.example.com/v1",
            "https://api.example.com/v1/",
            " https://api.example.com/v1/chat/completions \n",
        ] {
            let url = client(false).parse_base_url(text).unwrap();

            assert_eq!(
                endpoint_url(&url, "/models").as_str(),
                "https://api.example.com/v1/models"
            );
        }
        let bare = client(false).parse_base_url("http://8.8.8.8:8000").unwrap();
        assert_eq!(
            endpoint_url(&bare, "/models").as_str(),
            "http://8.8.8.8:8000/models"
        );
    }

    #[test]
    fn invalid_base_urls_are_rejected() {
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
            "https://exam\nple.com/v1",
            "https://example.com/v1\r\nx-injected: 1",
            "https://example.com/\0",
            "https://example.com/v1\t/x",
        ] {
            assert!(client(true).parse_base_url(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_address_in_the_url_is_checked_before_every_call() {
        let client = client(false);
        for text in [
            "http://127.0.0.1/v1",
            "http://[::1]/v1",
            "http://localhost/v1",
        ] {
            let url = Url::parse(text).unwrap();

            assert!(client.parse_base_url(text).is_err(), "{text}");
            assert!(client.get(url.clone()).is_err(), "{text}");
            assert!(client.post(url).is_err(), "{text}");
        }
    }

    /// Returns different addresses for each lookup.
    struct ChangingResolver(Vec<Vec<&'static str>>, AtomicUsize);

    #[async_trait]
    impl Resolver for ChangingResolver {
        async fn lookup(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            let nth = self.1.fetch_add(1, Ordering::Relaxed);
            let found = self.0[nth % self.0.len()].iter();
            Ok(found.map(|it| it.parse().unwrap()).collect())
        }
    }

    /// Returns the allowed addresses of successive lookups.
    async fn resolve_all(answers: Vec<Vec<&'static str>>, private: PrivateAccess) -> Vec<String> {
        let n = answers.len();
        let guard = GuardedResolver {
            resolver: Arc::new(ChangingResolver(answers, AtomicUsize::new(0))),
            private_access: private,
        };
        let mut all = Vec::new();
        for _ in 0..n {
            all.push(match guard.resolve("a.example".parse().unwrap()).await {
                Ok(found) => {
                    let found: Vec<String> = found.map(|it| it.ip().to_string()).collect();
                    found.join(" ")
                }
                Err(refused) => refused.to_string().split('.').next().unwrap().to_owned(),
            });
        }
        all
    }

    #[tokio::test]
    async fn only_allowed_addresses_of_a_name_are_returned() {
        let private = "The base URL is in a private network";
        let answers = vec![
            vec!["1.1.1.1"],
            vec!["127.0.0.1"],
            vec!["10.0.0.1", "1.1.1.1", "::1", "2606:4700::1111"],
            vec!["fd00::1", "::ffff:10.0.0.1"],
            vec![],
        ];

        assert_eq!(
            resolve_all(answers, PrivateAccess::Denied).await,
            ["1.1.1.1", private, "1.1.1.1 2606:4700::1111", private, ""]
        );
    }

    #[tokio::test]
    async fn a_local_name_resolves_to_private_but_not_to_metadata_addresses() {
        let answers = vec![
            vec!["192.168.1.5", "fe80::1"],
            vec!["169.254.169.254"],
            vec!["fd00:ec2::254"],
        ];

        let resolved = resolve_all(answers, PrivateAccess::Allowed).await;

        assert_eq!(resolved[0], "192.168.1.5");
        assert!(resolved[1..].iter().all(|it| it.contains("metadata")));
    }
}
