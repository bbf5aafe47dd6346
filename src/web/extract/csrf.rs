//! Functions, not a middleware, that check whether a request or WebSocket upgrade authenticated by
//! a cookie comes from this server's own pages, and return the public address of this server. No
//! I/O.
//!
//! A browser sends the cookie whichever page made the request, but also names that page's origin.
//! Programs send no origin and are allowed, except to open a socket: browsers always send `Origin`
//! there.

use actix_web::http::Method;
use actix_web::http::header::{HOST, HeaderMap, HeaderName, ORIGIN};

use crate::web::error::{ApiError, ApiResult};

/// Returns whether a method changes nothing.
pub fn is_safe_method(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Checks an unsafe request that is authenticated by a cookie.
///
/// # Errors
/// Returns 403 `cross_origin`.
pub fn check_request(headers: &HeaderMap, public_url: Option<&str>) -> ApiResult<()> {
    match headers.contains_key(ORIGIN) || headers.contains_key(sec_fetch_site()) {
        true => require_same_origin(headers, public_url),
        false => Ok(()),
    }
}

/// Checks a WebSocket upgrade that is authenticated by a cookie.
///
/// # Errors
/// Returns 403 `cross_origin`, also if `Origin` is missing.
pub fn check_upgrade(headers: &HeaderMap, public_url: Option<&str>) -> ApiResult<()> {
    match headers.contains_key(ORIGIN) {
        true => require_same_origin(headers, public_url),
        false => Err(cross_origin()),
    }
}

fn require_same_origin(headers: &HeaderMap, public_url: Option<&str>) -> ApiResult<()> {
    let fetched_from = single_value(headers, &sec_fetch_site());
    if matches!(fetched_from, Some("same-origin" | "none")) {
        return Ok(());
    }
    let Some(origin) = single_value(headers, &ORIGIN) else {
        return Err(cross_origin());
    };
    let is_host = single_value(headers, &HOST)
        .is_some_and(|host| origin.strip_prefix("http://") == Some(host));
    let is_public = public_url.and_then(origin_of) == Some(origin);
    match is_host || is_public {
        true => Ok(()),
        false => Err(cross_origin()),
    }
}

/// Returns the public address of this server, without a trailing slash: the configured one,
/// otherwise the one that the caller used. `None` if the request does not contain it.
pub fn public_origin(headers: &HeaderMap, public_url: Option<&str>) -> Option<String> {
    if let Some(url) = public_url {
        return Some(url.to_owned());
    }
    // A browser sends the scheme of its own page in `Origin`; `Host` contains no scheme.
    let origin =
        single_value(headers, &ORIGIN).filter(|_| require_same_origin(headers, None).is_ok());
    let origin = origin.filter(|it| {
        let host = it.strip_prefix("https://").or(it.strip_prefix("http://"));
        host.is_some_and(is_host)
    });
    let host = single_value(headers, &HOST).filter(|it| is_host(it));
    origin
        .map(str::to_owned)
        .or_else(|| host.map(|it| format!("http://{it}")))
}

/// Returns whether this is a host with or without a port, without characters that would end a link.
fn is_host(text: &str) -> bool {
    let fits = |it: char| it.is_ascii_alphanumeric() || ".-_:[]".contains(it);
    (1..=255).contains(&text.len()) && text.chars().all(fits)
}

/// Returns the value of a header that occurs exactly once.
fn single_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut all = headers.get_all(name);
    let first = all.next()?;
    all.next().is_none().then(|| first.to_str().ok()).flatten()
}

/// Returns scheme, host and port of a URL, without its path.
fn origin_of(url: &str) -> Option<&str> {
    let host_from = url.find("://")? + 3;
    let path_from = url[host_from..]
        .find('/')
        .map_or(url.len(), |at| host_from + at);
    Some(&url[..path_from])
}

fn sec_fetch_site() -> HeaderName {
    HeaderName::from_static("sec-fetch-site")
}

fn cross_origin() -> ApiError {
    ApiError::new(
        403,
        "cross_origin",
        "This request came from another site's page.",
    )
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HOST, HeaderMap, HeaderName, HeaderValue};

    use super::{check_request, check_upgrade, public_origin};

    const PUBLIC: Option<&str> = Some("https://troupe.example/app");

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        map.append(
            HeaderName::from_static("host"),
            HeaderValue::from_static("room.example:8080"),
        );
        for (name, value) in pairs {
            map.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        map
    }

    #[test]
    fn only_the_exact_origin_is_allowed() {
        let foreign = [
            "null",
            "https://evil.example",
            "http://evil.room.example:8080",
            "http://room.example:8080.evil.example",
            "http://room.example:8081",
            "http://room.example",
            "https://room.example:8080",
            "HTTP://ROOM.EXAMPLE:8080",
            "http://room.example.:8080",
            "http://me@room.example:8080",
            "http://room.example:8080/",
            "http://[::1]:8080",
            "http://troupe.example",
            "https://troupe.example/app",
            "",
        ];

        for origin in foreign {
            let headers = headers(&[("origin", origin)]);
            assert!(check_request(&headers, PUBLIC).is_err(), "{origin}");
            assert!(check_upgrade(&headers, PUBLIC).is_err(), "{origin}");
        }
        for origin in ["http://room.example:8080", "https://troupe.example"] {
            let headers = headers(&[("origin", origin)]);
            assert!(check_request(&headers, PUBLIC).is_ok(), "{origin}");
            assert!(check_upgrade(&headers, PUBLIC).is_ok(), "{origin}");
        }
    }

    #[test]
    fn two_origin_headers_are_rejected() {
        let ours = ("origin", "http://room.example:8080");

        assert!(check_request(&headers(&[ours, ours]), None).is_err());
        assert!(
            check_upgrade(&headers(&[ours, ("origin", "https://evil.example")]), None).is_err()
        );
    }

    #[test]
    fn sec_fetch_site_alone_is_enough() {
        for ours in ["same-origin", "none"] {
            assert!(check_request(&headers(&[("sec-fetch-site", ours)]), None).is_ok());
        }
        for foreign in ["cross-site", "same-site", "SAME-ORIGIN", ""] {
            assert!(check_request(&headers(&[("sec-fetch-site", foreign)]), None).is_err());
        }
    }

    #[test]
    fn the_public_origin_is_the_setting_or_the_address_of_the_request() {
        let own = |pairs: &[_], public| public_origin(&headers(pairs), public);
        let foreign = ("origin", "https://evil.example");
        let ours = ("sec-fetch-site", "same-origin");

        assert_eq!(own(&[foreign], PUBLIC).as_deref(), PUBLIC);
        let host = Some("http://room.example:8080");
        assert_eq!(own(&[], None).as_deref(), host);
        assert_eq!(own(&[foreign], None).as_deref(), host);
        assert_eq!(own(&[ours, ("origin", "null")], None).as_deref(), host);
        let behind_https = ("origin", "https://room.example");
        assert_eq!(
            own(&[ours, behind_https], None).as_deref(),
            Some("https://room.example")
        );
    }

    #[test]
    fn a_host_that_would_make_an_invalid_link_is_ignored() {
        for host in [
            "",
            "a/b",
            "a b",
            "a#b",
            "a?b",
            "me@a",
            "a\"b",
            &"a".repeat(256),
        ] {
            let mut map = HeaderMap::new();
            map.insert(HOST, HeaderValue::from_str(host).unwrap());
            assert_eq!(public_origin(&map, None), None, "{host}");
        }
    }

    #[test]
    fn a_request_without_origin_passes_but_not_a_socket() {
        assert!(check_request(&headers(&[]), None).is_ok());
        assert!(check_upgrade(&headers(&[]), None).is_err());
        assert!(check_upgrade(&headers(&[("sec-fetch-site", "same-origin")]), None).is_err());
    }
}
