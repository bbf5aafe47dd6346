//! Whether a request that rides on a cookie comes from our own pages.
//!
//! A browser sends the cookie whoever made it ask; it also tells who made it ask. A program tells
//! nothing and is let through, save to the socket: browsers always name their origin there.

use crate::http::error::ApiError;
use crate::http::error::ApiResult;
use actix_web::http::Method;
use actix_web::http::header::HOST;
use actix_web::http::header::HeaderMap;
use actix_web::http::header::HeaderName;
use actix_web::http::header::ORIGIN;

/// Whether a method changes nothing.
pub fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// For an unsafe request that rides on a cookie.
///
/// # Errors
/// 403 `cross_origin`.
pub fn check_request(headers: &HeaderMap, public_url: Option<&str>) -> ApiResult<()> {
    match headers.contains_key(ORIGIN) || headers.contains_key(sec_fetch_site()) {
        true => must_be_ours(headers, public_url),
        false => Ok(()),
    }
}

/// For the upgrade to a socket that rides on a cookie.
///
/// # Errors
/// 403 `cross_origin`, also when there is no `Origin` at all.
pub fn check_upgrade(headers: &HeaderMap, public_url: Option<&str>) -> ApiResult<()> {
    match headers.contains_key(ORIGIN) {
        true => must_be_ours(headers, public_url),
        false => Err(cross_origin()),
    }
}

fn must_be_ours(headers: &HeaderMap, public_url: Option<&str>) -> ApiResult<()> {
    let fetched_from = only(headers, &sec_fetch_site());
    if matches!(fetched_from, Some("same-origin" | "none")) {
        return Ok(());
    }
    let Some(origin) = only(headers, &ORIGIN) else {
        return Err(cross_origin());
    };
    let is_host =
        only(headers, &HOST).is_some_and(|host| origin.strip_prefix("http://") == Some(host));
    let is_public = public_url.and_then(origin_of) == Some(origin);
    match is_host || is_public {
        true => Ok(()),
        false => Err(cross_origin()),
    }
}

/// The value of a header that came exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut all = headers.get_all(name);
    let first = all.next()?;
    all.next().is_none().then(|| first.to_str().ok()).flatten()
}

/// Scheme, host and port of an address, without its path.
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
    use super::check_request;
    use super::check_upgrade;
    use actix_web::http::header::HeaderMap;
    use actix_web::http::header::HeaderName;
    use actix_web::http::header::HeaderValue;

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
    fn only_the_exact_origin_is_ours() {
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
    fn two_origins_are_none() {
        let ours = ("origin", "http://room.example:8080");

        assert!(check_request(&headers(&[ours, ours]), None).is_err());
        assert!(
            check_upgrade(&headers(&[ours, ("origin", "https://evil.example")]), None).is_err()
        );
    }

    #[test]
    fn the_browsers_word_on_where_it_fetches_from_is_enough() {
        for ours in ["same-origin", "none"] {
            assert!(check_request(&headers(&[("sec-fetch-site", ours)]), None).is_ok());
        }
        for foreign in ["cross-site", "same-site", "SAME-ORIGIN", ""] {
            assert!(check_request(&headers(&[("sec-fetch-site", foreign)]), None).is_err());
        }
    }

    #[test]
    fn a_program_names_no_origin_and_passes_but_not_to_the_socket() {
        assert!(check_request(&headers(&[]), None).is_ok());
        assert!(check_upgrade(&headers(&[]), None).is_err());
        assert!(check_upgrade(&headers(&[("sec-fetch-site", "same-origin")]), None).is_err());
    }
}
