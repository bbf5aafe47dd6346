//! Middleware that rejects requests whose host name is not one of this server's names.
//!
//! A page of another site may resolve its own name to this machine, and then has the same origin as
//! this server for a browser (DNS rebinding). It cannot choose the value of `Host`, which is that
//! name. So an unknown name is refused. Ports are not checked: a forwarded port differs, and a page
//! gains nothing from another port.

use std::net::IpAddr;

use actix_web::Error;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{RequestHead, ServiceRequest, ServiceResponse};
use actix_web::http::header::HOST;
use actix_web::middleware::Next;
use actix_web::web::Data;

use crate::app::App;
use crate::config::Config;
use crate::web::error::{ApiError, ApiResult};

/// Paths that accept every host name, because load balancers and supervisors may use any; their
/// responses contain nothing private.
pub const ANY_HOST: [&str; 2] = ["/healthz", "/readyz"];

/// No host name is longer; error messages show at most this much.
const MAX_SHOWN_CHARS: usize = 255;

/// The middleware before every endpoint.
///
/// # Errors
/// Returns only errors that the inner services did not turn into a response.
pub async fn require_allowed_host(
    app: Data<App>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if !ANY_HOST.contains(&request.path())
        && let Err(error) = check(&app.config, request.request().head())
    {
        // With the error attached to the response, so that `response_headers` can complete it.
        return Ok(request.error_response(error));
    }
    Ok(next.call(request).await?.map_into_boxed_body())
}

/// Checks the requested host: in `Host`, and in the URI if it is absolute.
fn check(config: &Config, head: &RequestHead) -> ApiResult<()> {
    let host = head.headers().get(HOST);
    let host = host.and_then(|it| it.to_str().ok()).unwrap_or_default();
    let authority = head.uri.authority().map(|it| it.as_str());
    match authority
        .into_iter()
        .chain([host])
        .find(|it| !is_allowed(config, it))
    {
        Some(foreign) => Err(misdirected(foreign)),
        None => Ok(()),
    }
}

fn is_allowed(config: &Config, authority: &str) -> bool {
    let Some(name) = without_port(authority) else {
        return false;
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let is_named = |it: &str| it.eq_ignore_ascii_case(bare);
    if config.allowed_hosts.iter().any(|it| is_named(it))
        || public_host(config).is_some_and(is_named)
    {
        return true;
    }
    match bare.parse::<IpAddr>() {
        // DNS cannot rebind an IP address; a server bound to loopback accepts only loopback
        // addresses.
        Ok(ip) => ip.to_canonical().is_loopback() || !config.bind.ip().is_loopback(),
        Err(_) => is_named("localhost"),
    }
}

fn public_host(config: &Config) -> Option<&str> {
    let (_, rest) = config.public_url.as_deref()?.split_once("://")?;
    let name = without_port(rest.split('/').next()?)?;
    Some(name.trim_start_matches('[').trim_end_matches(']'))
}

/// Returns whether this is the machine itself: `127.0.0.1:8080`, `localhost`, `[::1]:8080`.
pub fn is_loopback(authority: &str) -> bool {
    let bare = without_port(authority).map(|it| it.trim_matches(['[', ']']));
    bare.is_some_and(|it| match it.parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().is_loopback(),
        Err(_) => it.eq_ignore_ascii_case("localhost"),
    })
}

/// Returns the name or address before the port; `None` if it is followed by an invalid port.
fn without_port(authority: &str) -> Option<&str> {
    let name_to = match authority.find(']') {
        Some(at) if authority.starts_with('[') => at + 1,
        _ => authority.find(':').unwrap_or(authority.len()),
    };
    let (name, rest) = authority.split_at(name_to);
    let is_port = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    let fits = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
    fits.then_some(name)
}

fn misdirected(host: &str) -> ApiError {
    let host: String = host.chars().take(MAX_SHOWN_CHARS).collect();
    let message = format!(
        "This server does not accept the host name “{host}”. Its operator can add the name \
         to TROUPE_ALLOWED_HOSTS, or set TROUPE_PUBLIC_URL."
    );
    ApiError::new(421, "misdirected_request", message)
}

#[cfg(test)]
mod tests {
    use super::is_allowed;
    use crate::config::Config;

    fn config(env: &[(&'static str, &str)]) -> Config {
        let value = |name| env.iter().find(|it| it.0 == name).map(|it| it.1.to_owned());
        Config::read(value).unwrap()
    }

    fn allowed<'a>(config: &Config, hosts: &[&'a str]) -> Vec<&'a str> {
        let hosts = hosts.iter().copied();
        hosts.filter(|it| is_allowed(config, it)).collect()
    }

    const LOCAL: [&str; 9] = [
        "localhost",
        "localhost:8080",
        "LocalHost:9999",
        "127.0.0.1:8080",
        "127.0.0.1",
        "127.3.2.1:80",
        "[::1]:8080",
        "[::1]",
        "[::ffff:127.0.0.1]:8080",
    ];

    const FOREIGN: [&str; 17] = [
        "",
        "attacker.test",
        "attacker.test:8080",
        "localhost.attacker.test",
        "attacker.test.localhost.",
        "127.0.0.1.attacker.test:8080",
        "127.0.0.1:8080@attacker.test",
        "attacker.test#localhost",
        "localhost:8080:attacker.test",
        "localhost:x",
        "[::1]attacker.test",
        "[::1",
        "[attacker.test]",
        "me@localhost",
        "localhost ",
        "localhost, attacker.test",
        "2130706433",
    ];

    const ADDRESSES: [&str; 3] = ["192.168.1.5:8080", "8.8.8.8", "[2a00::5]:8080"];

    #[test]
    fn on_loopback_only_local_names_are_allowed() {
        let config = config(&[]);

        assert_eq!(allowed(&config, &LOCAL), LOCAL);
        assert_eq!(allowed(&config, &FOREIGN), [""; 0]);
        assert_eq!(allowed(&config, &ADDRESSES), [""; 0]);
    }

    #[test]
    fn on_a_network_every_address_is_allowed_but_no_other_name() {
        let config = config(&[("TROUPE_BIND", "0.0.0.0:8080")]);

        assert_eq!(allowed(&config, &LOCAL), LOCAL);
        assert_eq!(allowed(&config, &ADDRESSES), ADDRESSES);
        assert_eq!(allowed(&config, &FOREIGN), [""; 0]);
    }

    #[test]
    fn configured_names_are_allowed() {
        let config = config(&[
            ("TROUPE_PUBLIC_URL", "https://Troupe.example:8443/app"),
            ("TROUPE_ALLOWED_HOSTS", "my-host, Troupe.lan,192.168.1.5"),
        ]);
        let hosts = [
            "troupe.example",
            "TROUPE.example:8443",
            "my-host:8080",
            "troupe.lan",
            "192.168.1.5:8080",
        ];

        assert_eq!(allowed(&config, &hosts), hosts);
        let others = [
            "troupe.example.attacker.test",
            "x.troupe.lan",
            "my-host.",
            "192.168.1.6",
        ];
        assert_eq!(allowed(&config, &others), [""; 0]);
    }
}
