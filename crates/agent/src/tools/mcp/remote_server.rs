//! Defines `McpServer`, the URL and credentials with which an MCP server is called, and decides
//! which custom headers a client may set.

use std::fmt;

use base::ids::UserId;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Maximum length of a header value, in bytes.
pub const MAX_HEADER_VALUE_BYTES: usize = 8 * 1024;

/// Headers that the protocol or the connection sets.
const RESERVED_HEADERS: [&str; 11] = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// An MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServer {
    /// Unique among the servers of a request.
    pub label: String,
    /// Without the query, which often contains a key.
    pub url: Url,
    pub credentials: Credentials,
}

/// Credentials of a server. `Debug` shows none of them; they are serialized only for encryption and
/// for cache keys.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Credentials {
    /// The query of the URL, without `?`.
    pub query: Option<String>,
    /// The token after `Bearer`.
    pub authorization: Option<String>,
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

impl Credentials {
    /// Returns whether there are no credentials.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the credentials as headers. Invalid headers were rejected when the server was
    /// configured.
    pub fn to_headers(&self) -> HeaderMap {
        let mut all = HeaderMap::new();
        let bearer = self.authorization.as_ref().map(|it| format!("Bearer {it}"));
        if let Some(mut value) = bearer.and_then(|it| HeaderValue::from_str(&it).ok()) {
            value.set_sensitive(true);
            all.insert(AUTHORIZATION, value);
        }
        for (name, value) in &self.headers {
            let name = HeaderName::try_from(name.as_str()).ok();
            let value = HeaderValue::from_str(value).ok();
            if let (Some(name), Some(mut value)) = (name, value) {
                value.set_sensitive(true);
                all.insert(name, value);
            }
        }
        all
    }
}

impl McpServer {
    /// Returns the URL to call.
    pub fn url_with_query(&self) -> Url {
        let mut url = self.url.clone();
        url.set_query(self.credentials.query.as_deref());
        url
    }

    /// Returns a cache key that differs for different users and for different credentials, because
    /// they may see different tools.
    pub fn cache_key(&self, owner: UserId) -> [u8; 32] {
        let credentials = serde_json::to_vec(&self.credentials).unwrap_or_default();
        let mut hash = Sha256::new();
        hash.update(owner.to_string());
        hash.update([0]);
        hash.update(self.url.as_str());
        hash.update([0]);
        hash.update(credentials);
        hash.finalize().into()
    }
}

/// Returns whether a custom header with this name and value may be sent.
pub fn is_allowed_header(name: &str, value: &str) -> bool {
    let Ok(known) = HeaderName::try_from(name) else {
        return false;
    };
    let is_ours = RESERVED_HEADERS.contains(&known.as_str()) || known.as_str().starts_with("mcp-");
    !is_ours && value.len() <= MAX_HEADER_VALUE_BYTES && HeaderValue::from_str(value).is_ok()
}

#[cfg(test)]
mod tests {
    use base::ids::UserId;
    use reqwest::Url;

    use super::{Credentials, McpServer, is_allowed_header};

    fn server(token: &str) -> McpServer {
        McpServer {
            label: "x".to_owned(),
            url: Url::parse("https://mcp.example.com/mcp").unwrap(),
            credentials: Credentials {
                query: Some("key=planted".to_owned()),
                authorization: Some(token.to_owned()),
                headers: vec![("x-team".to_owned(), "planted".to_owned())],
            },
        }
    }

    #[test]
    fn credentials_are_never_shown_in_debug_output() {
        let server = server("planted");

        assert!(!format!("{server:?}").contains("planted"));
        let headers = server.credentials.to_headers();
        assert!(!format!("{headers:?}").contains("planted"));
        assert_eq!(headers["authorization"], "Bearer planted");
        assert_eq!(server.url_with_query().query(), Some("key=planted"));
    }

    #[test]
    fn lists_are_cached_per_owner_and_credentials() {
        let own = server("a").cache_key(UserId(1));

        assert_eq!(own, server("a").cache_key(UserId(1)));
        assert_ne!(own, server("a").cache_key(UserId(2)));
        assert_ne!(own, server("b").cache_key(UserId(1)));
    }

    #[test]
    fn reserved_headers_cannot_be_set() {
        assert!(is_allowed_header("X-Team", "blue"));
        for name in ["Host", "Mcp-Session-Id", "content-length", "a b", ""] {
            assert!(!is_allowed_header(name, "x"), "{name}");
        }
        assert!(!is_allowed_header("x-team", "a\r\nb: c"));
    }
}
