//! Checks the additional headers of a provider's requests, and adds those by which OpenRouter knows which
//! application sends them.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::compatibility::backend::ModelBackend;
use crate::secret::Secret;

/// Headers that belong to the connection, to the format of the request or to the key.
const RESERVED: [&str; 16] = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns why a header cannot be added to requests, as a sentence for admins.
pub fn find_problem(name: &str, value: Option<&str>) -> Option<String> {
    let Ok(parsed) = HeaderName::try_from(name) else {
        return Some(format!("`{name}` is not a valid name of a header."));
    };
    if RESERVED.contains(&parsed.as_str()) {
        return Some(format!(
            "`{name}` cannot be set, because the server sets it."
        ));
    }
    let is_valid = value.is_none_or(|it| HeaderValue::from_str(it.trim()).is_ok());
    (!is_valid).then(|| format!("The value of `{name}` contains characters that cannot be sent."))
}

/// Returns the headers that are sent in addition to those of the API: the name and the address of this
/// server for OpenRouter, which shows them in its statistics, and the `extra` ones, which replace them.
/// Invalid ones are left out.
pub fn build(
    backend: ModelBackend,
    public_url: Option<&str>,
    extra: &[(String, Secret)],
) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if backend == ModelBackend::OpenRouter {
        headers.insert("x-title", HeaderValue::from_static("Troupe"));
        if let Some(public_url) = public_url.and_then(|it| HeaderValue::from_str(it).ok()) {
            headers.insert("http-referer", public_url);
        }
    }
    for (name, value) in extra {
        let text = value.expose().trim();
        if find_problem(name, Some(text)).is_none()
            && let (Ok(name), Ok(mut value)) =
                (HeaderName::try_from(name), HeaderValue::from_str(text))
        {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::{build, find_problem};
    use crate::compatibility::backend::ModelBackend;
    use crate::secret::Secret;

    #[test]
    fn headers_of_the_connection_and_the_key_are_refused() {
        for name in [
            "Authorization",
            "HOST",
            "cookie",
            "Content-Length",
            "Transfer-Encoding",
        ] {
            assert!(
                find_problem(name, Some("x")).is_some_and(|it| it.contains(name)),
                "{name}"
            );
        }
        assert!(find_problem("a b", Some("x")).is_some());
        assert!(find_problem("X-Team", Some("a\r\nHost: b")).is_some());
        assert_eq!(find_problem("X-Team", Some("blue")), None);
        assert_eq!(find_problem("X-Team", None), None);
    }

    #[test]
    fn openrouter_gets_the_address_of_the_server_unless_an_admin_sets_another() {
        let public_url = Some("https://play.example");
        let own = [("X-Title".to_owned(), Secret::new("My rooms"))];

        let default_headers = build(ModelBackend::OpenRouter, public_url, &[]);
        let changed = build(ModelBackend::OpenRouter, None, &own);

        assert_eq!(
            (
                default_headers["http-referer"].as_bytes(),
                default_headers["x-title"].as_bytes()
            ),
            (&b"https://play.example"[..], &b"Troupe"[..])
        );
        assert_eq!(changed["x-title"], "My rooms");
        assert_eq!(changed.len(), 1);
        assert!(build(ModelBackend::Other, public_url, &[]).is_empty());
    }
}
