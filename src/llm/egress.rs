//! The way out: one client for all calls, and the guard of where it may go.
//!
//! **Invariant:** no call reaches an address that [`address::check`] refuses. An address that is
//! written in the URL is judged before each call. A name is resolved by the client's own resolver,
//! which judges every address it stands for and hands on only those that may be called; the
//! connection goes to one of them, so a name that means something else a moment later (DNS
//! rebinding) gains nothing.

use std::io;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Client;
use reqwest::RequestBuilder;
use reqwest::Url;
use reqwest::dns::Addrs;
use reqwest::dns::Name;
use reqwest::dns::Resolve;
use reqwest::dns::Resolving;
use reqwest::redirect::Policy;

use crate::llm::address;
use crate::llm::address::Refused;
use crate::llm::error::LlmError;
use crate::llm::private_access::PrivateAccess;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Who knows the addresses behind names.
#[async_trait]
pub trait Names: Send + Sync {
    /// Every address of a name.
    ///
    /// # Errors
    /// When nobody knows it.
    async fn addresses_of(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the system, as its administrator has set it up.
#[derive(Debug, Clone, Copy)]
pub struct SystemNames;

#[async_trait]
impl Names for SystemNames {
    async fn addresses_of(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|it| it.ip()).collect())
    }
}

/// The only one who makes calls. Cloning shares its connections.
#[derive(Debug, Clone)]
pub struct Egress {
    client: Client,
    private: PrivateAccess,
}

impl Egress {
    /// For what an admin configured. With `allow_private`, calls may lead into private networks, as
    /// those to local models do.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(names: Arc<dyn Names>, allow_private: bool) -> Result<Self, LlmError> {
        let private = match allow_private {
            true => PrivateAccess::Allowed,
            false => PrivateAccess::Denied,
        };
        Self::with(names, private)
    }

    /// For addresses that members name: in private networks only the hosts that an admin lists.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn for_members(names: Arc<dyn Names>, hosts: &[String]) -> Result<Self, LlmError> {
        Self::with(names, PrivateAccess::listed(hosts))
    }

    /// It follows no redirect, as that would carry a key elsewhere, reads no proxy from the
    /// environment, unpacks nothing, and has no limit on a whole call: `generation/` has one.
    fn with(names: Arc<dyn Names>, private: PrivateAccess) -> Result<Self, LlmError> {
        let guard = Guard {
            names,
            private: private.clone(),
        };
        let client = Client::builder()
            .tls_backend_preconfigured(tls()?)
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
            .map_err(|error| unusable(format!("The HTTP client cannot be set up: {error}.")))?;
        Ok(Self { client, private })
    }

    /// Reads a provider's base URL.
    ///
    /// # Errors
    /// When it is none, or its host is an address that may not be called. What a name stands for
    /// is looked at when it is called.
    pub fn base_url(&self, text: &str) -> Result<Url, LlmError> {
        let refuse = |message: &str| Err(unusable(message.to_owned()));
        let text = text.trim();
        // The parser would drop line breaks and tabs: what is stored would not be what is called.
        if text.chars().any(char::is_control) {
            return refuse("The base URL must not hold line breaks or other control characters.");
        }
        let Ok(mut url) = Url::parse(text) else {
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
        self.check(&url)?;
        let path = url.path().trim_end_matches('/');
        let path = path
            .strip_suffix("/chat/completions")
            .unwrap_or(path)
            .to_owned();
        url.set_path(&path);
        Ok(url)
    }

    /// A GET to be sent.
    ///
    /// # Errors
    /// When the URL's host may not be called.
    pub fn get(&self, url: Url) -> Result<RequestBuilder, LlmError> {
        self.check(&url)?;
        Ok(self.client.get(url))
    }

    /// A POST to be sent.
    ///
    /// # Errors
    /// When the URL's host may not be called.
    pub fn post(&self, url: Url) -> Result<RequestBuilder, LlmError> {
        self.check(&url)?;
        Ok(self.client.post(url))
    }

    /// A DELETE to be sent.
    ///
    /// # Errors
    /// When the URL's host may not be called.
    pub fn delete(&self, url: Url) -> Result<RequestBuilder, LlmError> {
        self.check(&url)?;
        Ok(self.client.delete(url))
    }

    /// Reads the address of a server of tools. `None`: it is none, or may not be called. Without TLS
    /// only where private networks may be called, too.
    pub fn tool_server(&self, text: &str) -> Option<Url> {
        let is_plain = !text.chars().any(char::is_control);
        let url = Url::parse(text.trim()).ok().filter(|_| is_plain)?;
        let is_local = self.private.allows(url.host_str().unwrap_or_default());
        let is_taken = url.scheme() == "https" || (url.scheme() == "http" && is_local);
        let is_bare = url.username().is_empty() && url.password().is_none();
        let is_right = is_taken && is_bare && url.fragment().is_none();
        (is_right && self.check(&url).is_ok()).then_some(url)
    }

    /// Judges the host as it is written: an address in a URL is never resolved.
    fn check(&self, url: &Url) -> Result<(), LlmError> {
        // The parser has turned every spelling of an IPv4 address, such as 127.1, into the usual.
        let host = url.host_str().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let allow_private = self.private.allows(host);
        let judged = match bare.parse::<IpAddr>() {
            Ok(ip) => address::check(ip, allow_private),
            Err(_) if is_this_machine(host) && !allow_private => Err(Refused::Private),
            Err(_) => Ok(()),
        };
        judged.map_err(|refused| unusable(refused.to_string()))
    }
}

/// Names that mean this machine whatever a resolver says.
fn is_this_machine(host: &str) -> bool {
    let name = host.trim_end_matches('.');
    name.is_empty() || name == "localhost" || name.ends_with(".localhost")
}

/// The client's resolver.
struct Guard {
    names: Arc<dyn Names>,
    private: PrivateAccess,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let names = Arc::clone(&self.names);
        let allow_private = self.private.allows(name.as_str());
        Box::pin(async move {
            let found = names.addresses_of(name.as_str()).await?;
            Ok(allowed(found, allow_private)?)
        })
    }
}

/// Those of a name's addresses that may be called; a home's names often have a link-local one
/// beside the right one.
fn allowed(found: Vec<IpAddr>, allow_private: bool) -> Result<Addrs, Refused> {
    let judged = found.into_iter().map(|ip| {
        // Port 0 stands for the URL's own.
        address::check(ip, allow_private).map(|()| SocketAddr::new(ip, 0))
    });
    let (allowed, refused): (Vec<_>, Vec<_>) = judged.partition(Result::is_ok);
    match refused.into_iter().find_map(Result::err) {
        Some(refused) if allowed.is_empty() => Err(refused),
        _ => Ok(Box::new(allowed.into_iter().flatten())),
    }
}

fn tls() -> Result<rustls::ClientConfig, LlmError> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    // The crypto provider is named here, so that nothing depends on a process-wide choice.
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(format!("TLS cannot be set up: {error}.")))?;
    Ok(tls.with_root_certificates(roots).with_no_client_auth())
}

fn unusable(message: String) -> LlmError {
    LlmError::Unusable { message }
}

/// The address of an endpoint below a checked base URL.
pub fn endpoint(base_url: &Url, path: &str) -> Url {
    let mut url = base_url.clone();
    url.set_path(&format!("{}{path}", base_url.path().trim_end_matches('/')));
    url
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::IpAddr;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering;

    use async_trait::async_trait;
    use reqwest::Url;
    use reqwest::dns::Resolve;

    use super::Egress;
    use super::Guard;
    use super::Names;
    use super::PrivateAccess;
    use super::SystemNames;
    use super::endpoint;

    fn egress(allow_private: bool) -> Egress {
        Egress::new(Arc::new(SystemNames), allow_private).unwrap()
    }

    #[test]
    fn a_public_base_url_is_taken_however_it_ends() {
        for text in [
            "https://api.example.com/v1",
            "https://api.example.com/v1/",
            " https://api.example.com/v1/chat/completions \n",
        ] {
            let url = egress(false).base_url(text).unwrap();

            assert_eq!(
                endpoint(&url, "/models").as_str(),
                "https://api.example.com/v1/models"
            );
        }
        let bare = egress(false).base_url("http://8.8.8.8:8000").unwrap();
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
            "https://exam\nple.com/v1",
            "https://example.com/v1\r\nx-injected: 1",
            "https://example.com/\0",
            "https://example.com/v1\t/x",
        ] {
            assert!(egress(true).base_url(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_address_in_the_url_is_judged_before_every_call() {
        let egress = egress(false);
        for text in [
            "http://127.0.0.1/v1",
            "http://[::1]/v1",
            "http://localhost/v1",
        ] {
            let url = Url::parse(text).unwrap();

            assert!(egress.base_url(text).is_err(), "{text}");
            assert!(egress.get(url.clone()).is_err(), "{text}");
            assert!(egress.post(url).is_err(), "{text}");
        }
    }

    /// Answers something else each time.
    struct Fickle(Vec<Vec<&'static str>>, AtomicUsize);

    #[async_trait]
    impl Names for Fickle {
        async fn addresses_of(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            let nth = self.1.fetch_add(1, Ordering::Relaxed);
            let found = self.0[nth % self.0.len()].iter();
            Ok(found.map(|it| it.parse().unwrap()).collect())
        }
    }

    /// What one lookup after the other hands on.
    async fn handed_on(answers: Vec<Vec<&'static str>>, private: PrivateAccess) -> Vec<String> {
        let n = answers.len();
        let guard = Guard {
            names: Arc::new(Fickle(answers, AtomicUsize::new(0))),
            private,
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
    async fn of_a_name_only_what_may_be_called_is_handed_on() {
        let private = "The base URL leads into a private network";
        let answers = vec![
            vec!["1.1.1.1"],
            vec!["127.0.0.1"],
            vec!["10.0.0.1", "1.1.1.1", "::1", "2606:4700::1111"],
            vec!["fd00::1", "::ffff:10.0.0.1"],
            vec![],
        ];

        assert_eq!(
            handed_on(answers, PrivateAccess::Denied).await,
            ["1.1.1.1", private, "1.1.1.1 2606:4700::1111", private, ""]
        );
    }

    #[tokio::test]
    async fn a_local_name_leads_home_and_not_to_a_clouds_secrets() {
        let answers = vec![
            vec!["192.168.1.5", "fe80::1"],
            vec!["169.254.169.254"],
            vec!["fd00:ec2::254"],
        ];

        let handed_on = handed_on(answers, PrivateAccess::Allowed).await;

        assert_eq!(handed_on[0], "192.168.1.5");
        assert!(handed_on[1..].iter().all(|it| it.contains("metadata")));
    }
}
