//! Sends every string of the corpus in every header, cookies of any kind, unknown methods, and
//! malformed request heads.

use crate::support::backends::{TestBackend, on_sqlite};
use crate::untrusted_input::attacks::{Attack, problem_with, send};
use crate::untrusted_input::http_connection::HttpConnection;
use crate::untrusted_input::installation::{Installation, all_endpoints};
use crate::untrusted_input::strings;

/// Headers that the server or one of its libraries reads.
const NAMES: [&str; 23] = [
    "Cookie",
    "Authorization",
    "User-Agent",
    "Origin",
    "Referer",
    "Sec-Fetch-Site",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "Forwarded",
    "X-Real-IP",
    "X-HTTP-Method-Override",
    "X-Request-Id",
    "Accept",
    "Accept-Language",
    "Accept-Encoding",
    "If-None-Match",
    "If-Modified-Since",
    "If-Range",
    "Range",
    "Content-Type",
    "Upgrade",
    "Sec-WebSocket-Key",
];

/// The text in the syntax of this header.
fn value(name: &str, text: &str) -> String {
    match name {
        "Cookie" => format!("troupe_session={text}; a={text}; {text}"),
        "Authorization" => format!("Bearer {text}"),
        "Range" => format!("bytes={text}"),
        "If-None-Match" => format!("\"{text}\", W/\"{text}\", {text}"),
        "X-Forwarded-For" => format!("{text}, 127.0.0.1"),
        "Content-Type" => format!("application/json; charset={text}"),
        _ => text.to_owned(),
    }
}

/// A header value has no control character but the tab, and fits into the limit of the head.
fn is_header_value(text: &str) -> bool {
    text.len() < 10_000
        && text
            .bytes()
            .all(|it| it == b'\t' || (it >= b' ' && it != 0x7f))
}

/// A request without the key, with one header.
fn unauthenticated(server: &Installation, method: &str, target: &str, header: &str) -> Vec<u8> {
    let host = server.app.base.trim_start_matches("http://");
    format!("{method} {target} HTTP/1.1\r\nhost: {host}\r\n{header}\r\n").into_bytes()
}

on_sqlite! {
    async fn no_string_in_a_header_causes_a_server_error(backend) {
        let server = Installation::open(backend).await;
        let strings: Vec<String> = strings::all().into_iter().filter(|it| is_header_value(it)).collect();
        let mut strings = strings.iter().cycle();
        let mut attacks = Vec::new();
        for endpoint in all_endpoints() {
            let (method, address) = (endpoint.method().as_str(), server.address(&endpoint).await);
            for name in NAMES {
                for text in strings.by_ref().take(2) {
                    let header = format!("{name}: {}\r\n", value(name, text));
                    let as_json = format!("{header}content-type: application/json\r\n");
                    let bytes = match name {
                        // These headers replace the key.
                        "Cookie" | "Authorization" => unauthenticated(&server, method, &address, &header),
                        "Content-Type" => server.request(method, &address, &header, b"{}"),
                        _ => server.request(method, &address, &as_json, b"{}"),
                    };
                    let what: String = format!("{method} {address} {header}").chars().take(160).collect();
                    attacks.push(Attack { what, bytes });
                }
            }
        }

        let tally = send(&server.app.base, attacks).await;

        tally.finish("strings in headers");
        server.close_unharmed().await;
    }
}

/// Invalid and unusual request heads. Each is complete, so that the server must respond.
pub fn odd_heads(host: &str) -> Vec<Vec<u8>> {
    let with =
        |header: &str| format!("GET /api/setup HTTP/1.1\r\nhost: {host}\r\n{header}\r\n\r\n");
    let first = |line: &str| format!("{line}\r\nhost: {host}\r\n\r\n");
    let mut heads: Vec<Vec<u8>> = [
        first("GET /api/setup HTTP/9.9"),
        first("GET /api/setup HTTP/0.9"),
        first("GET /api/setup HTTP/1.0"),
        first("GET  /api/setup HTTP/1.1"),
        first("GET /api/setup"),
        first("GET api/setup HTTP/1.1"),
        first("get /api/setup HTTP/1.1"),
        first("G\u{e9}T /api/setup HTTP/1.1"),
        first("GET /api/setup\tx HTTP/1.1"),
        first("GET /\u{e9}\u{202e} HTTP/1.1"),
        first("GET /api/setup#fragment HTTP/1.1"),
        first("GET http://elsewhere.invalid/api/setup HTTP/1.1"),
        first("GET //api//setup HTTP/1.1"),
        first("GET /api/../api/setup HTTP/1.1"),
        first("GET /js/../../Cargo.toml HTTP/1.1"),
        first("GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1"),
        first("GET /js/%00main.js HTTP/1.1"),
        first("GET /js\\..\\..\\Cargo.toml HTTP/1.1"),
        first("CONNECT 127.0.0.1:9 HTTP/1.1"),
        first("OPTIONS * HTTP/1.1"),
        first("TRACE /api/setup HTTP/1.1"),
        first("PROPFIND /api/setup HTTP/1.1"),
        first("PRI * HTTP/2.0"),
        first(&format!("{} /api/setup HTTP/1.1", "X".repeat(5_000))),
        first(&format!("GET /{} HTTP/1.1", "x".repeat(200_000))),
        first(&format!(
            "GET /api/setup?{} HTTP/1.1",
            "x=1&".repeat(50_000)
        )),
        "GET /api/setup HTTP/1.1\r\n\r\n".to_owned(),
        "\r\n\r\n\r\n\r\n".to_owned() + &with("a: b"),
        with("host: elsewhere.invalid"),
        with("Range: "),
        with("Range: bytes="),
        with("Range: bytes=-"),
        with("Range: bytes=-0"),
        with("Range: bytes=5-2"),
        with(&format!("Range: bytes={}", "0-0,".repeat(1_000))),
        with("Range: bytes=99999999999999999999-99999999999999999999"),
        with("If-None-Match: \""),
        with("If-None-Match: *, *"),
        with("If-Modified-Since: never"),
        with("Accept-Encoding: gzip;q=99999, br;q=-1, *;q=x"),
        with("Upgrade: websocket"),
        with("Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk"),
        with("Connection: close, keep-alive, upgrade, x"),
        with("Expect: nothing"),
        with("no colon"),
        with(": no name"),
        with("a b: c"),
        with("a : b"),
        with("a\u{e9}: b"),
        with("a: b\r\n c: folded"),
        with("a: b\nc: d"),
        with("a: b\rc: d"),
        with("a: b\0c"),
        with(&format!("a: {}", "x".repeat(300_000))),
        with(&"a: b\r\n".repeat(20_000)),
        with(&format!("Cookie: {}", "a=b; ".repeat(5_000))),
        with(&format!("Authorization: Bearer {}", "x".repeat(50_000))),
        with("Authorization: Bearer"),
        with("Authorization: Basic !!!"),
        with("Content-Length: 5\r\nContent-Length: 6"),
        with("Content-Length: -1"),
        with("Content-Length: 99999999999999999999"),
        with("Content-Length: 0x10"),
        with("Content-Length: 4\r\nTransfer-Encoding: chunked"),
        with("Transfer-Encoding: chunked, gzip"),
        with("Transfer-Encoding: \u{b}chunked"),
    ]
    .into_iter()
    .map(String::into_bytes)
    .collect();
    heads.push(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec());
    heads.push(b"GET /\xff\xfe HTTP/1.1\r\nhost: x\r\nx: \xff\xfe\r\n\r\n".to_vec());
    heads
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_malformed_request_head_causes_a_server_error() {
    let server = Installation::open(TestBackend::Sqlite).await;
    let host = server.app.base.trim_start_matches("http://").to_owned();
    let mut heads = odd_heads(&host);
    let texts = strings::all()
        .into_iter()
        .filter(|it| it.len() < 10_000 && !is_header_value(it));
    let raw = texts.flat_map(|text| {
        NAMES.map(|name| {
            let target = "GET /api/setup HTTP/1.1";
            format!("{target}\r\nhost: {host}\r\n{name}: {text}\r\n\r\n").into_bytes()
        })
    });
    heads.extend(raw);

    let n_heads = heads.len();
    let mut n_closed = 0;
    for head in heads {
        let shown: String = String::from_utf8_lossy(&head).chars().take(120).collect();
        match HttpConnection::connect(&server.app.base).send(&head).await {
            Ok(reply) => {
                // Errors below the handlers have no body.
                let is_ours = !reply.body.is_empty();
                assert!(reply.status < 500, "{shown:?}: {reply:?}");
                assert_eq!(problem_with(&reply).filter(|_| is_ours), None, "{shown:?}");
            }
            Err(error) => {
                assert_ne!(error.kind(), std::io::ErrorKind::TimedOut, "{shown:?}");
                n_closed += 1;
            }
        }
    }

    eprintln!("odd heads: {n_heads} requests, {n_closed} closed without a response");
    server.close_unharmed().await;
}
