//! Checks the additional headers of a provider's requests, and adds those that a vendor wants.

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
pub fn problem(name: &str, value: Option<&str>) -> Option<String> {
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

/// Returns the headers that are sent in addition to those of the API: those that OpenRouter shows in its
/// statistics, and the given ones. Invalid ones are left out.
pub fn build(backend: ModelBackend, site: Option<&str>, given: &[(String, Secret)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if backend == ModelBackend::OpenRouter {
        headers.insert("x-title", HeaderValue::from_static("Troupe"));
        if let Some(site) = site.and_then(|it| HeaderValue::from_str(it).ok()) {
            headers.insert("http-referer", site);
        }
    }
    for (name, value) in given {
        let text = value.expose().trim();
        if problem(name, Some(text)).is_none()
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
    use super::{build, problem};
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
                problem(name, Some("x")).is_some_and(|it| it.contains(name)),
                "{name}"
            );
        }
        assert!(problem("a b", Some("x")).is_some());
        assert!(problem("X-Team", Some("a\r\nHost: b")).is_some());
        assert_eq!(problem("X-Team", Some("blue")), None);
        assert_eq!(problem("X-Team", None), None);
    }

    #[test]
    fn openrouter_gets_the_address_of_the_server_unless_an_admin_sets_another() {
        let site = Some("https://play.example");
        let own = [("X-Title".to_owned(), Secret::new("My rooms"))];

        let usual = build(ModelBackend::OpenRouter, site, &[]);
        let changed = build(ModelBackend::OpenRouter, None, &own);

        assert_eq!(
            (
                usual["http-referer"].as_bytes(),
                usual["x-title"].as_bytes()
            ),
            (&b"https://play.example"[..], &b"Troupe"[..])
        );
        assert_eq!(changed["x-title"], "My rooms");
        assert_eq!(changed.len(), 1);
        assert!(build(ModelBackend::Other, site, &[]).is_empty());
    }
}
