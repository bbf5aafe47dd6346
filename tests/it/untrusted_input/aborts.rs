//! Tests clients that disconnect at any moment, invalid request heads, and how the log writes
//! untrusted texts. The server is a process of its own.

use std::time::Duration;

use futures::{StreamExt, stream};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::untrusted_input::encodings::percent_encoded;
use crate::untrusted_input::headers::odd_heads;
use crate::untrusted_input::http_connection::HttpConnection;
use crate::untrusted_input::isolation::IsolatedServer;
use crate::untrusted_input::strings;
use crate::untrusted_input::ws_peer::{TEXT, frame};

const ABORTS: u64 = 1_000;

/// A pseudo-random generator with a fixed seed.
struct PseudoRandom(u64);

impl PseudoRandom {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// One request of each kind, as bytes.
fn all_requests(isolated: &IsolatedServer) -> Vec<Vec<u8>> {
    let conversation = isolated.conversation;
    let to = |rest: &str| format!("/api/conversations/{conversation}{rest}");
    let sign_in = r#"{"username":"admin","password":"correct horse battery"}"#;
    let socket = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
        sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let mut upgrade = isolated.request("GET", "/ws", socket, "");
    let subscribe = format!(r#"{{"id":1,"op":"subscribe","conversation_id":{conversation}}}"#);
    upgrade.extend(frame(TEXT, subscribe.as_bytes()));
    upgrade.extend(frame(TEXT, br#"{"id":2,"op":"ping"}"#));
    let mut two_requests = isolated.request("POST", "/api/spaces", "", r#"{"name":"Whole"}"#);
    two_requests.extend(isolated.request("GET", "/api/spaces", "", ""));
    vec![
        isolated.request(
            "POST",
            &to("/messages"),
            "",
            r#"{"content":"I send_and_disconnect."}"#,
        ),
        isolated.request("POST", &to("/generate"), "", "{}"),
        isolated.request("POST", &to("/stop"), "", "{}"),
        isolated.request("GET", &to("/messages?limit=200"), "", ""),
        isolated.request("PATCH", &to(""), "", r#"{"title":"Left"}"#),
        isolated.request("POST", "/api/spaces", "", r#"{"name":"Left behind"}"#),
        isolated.request("POST", "/api/characters", "", r#"{"name":"Left behind"}"#),
        isolated.request("PATCH", "/api/users/me", "", r#"{"display_name":"Gone"}"#),
        isolated.request("POST", "/api/session", "", sign_in),
        isolated.request("GET", "/index.html", "", ""),
        isolated.request("GET", "/openapi.json", "", ""),
        upgrade,
        two_requests,
    ]
}

/// Sends these bytes, reads `n_read` bytes of the response, and disconnects, with a reset or without.
async fn send_and_disconnect(host: &str, bytes: &[u8], n_read: usize, with_reset: bool) {
    let mut stream = TcpStream::connect(host)
        .await
        .expect("the server does not accept connections");
    if stream.write_all(bytes).await.is_err() {
        return;
    }
    let mut answer = vec![0; n_read];
    // A partial request may get no response, so the wait has a limit.
    let _ = tokio::time::timeout(Duration::from_millis(30), stream.read_exact(&mut answer)).await;
    if with_reset {
        let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    }
}

on_sqlite! {
    async fn a_thousand_aborted_requests_do_not_affect_others(backend) {
        let mut isolated = IsolatedServer::start(backend, &[]).await;
        let requests = all_requests(&isolated);
        let host = isolated.server.url().replace("http://", "");
        let mut random = PseudoRandom(0x5eed);
        let plans = (0..ABORTS).map(|_| {
            let request = &requests[random.below(requests.len())];
            // One in three is sent completely: its client disconnects while the server works.
            let is_whole = random.below(3) == 0;
            let n_sent = if is_whole { request.len() } else { random.below(request.len()) };
            let n_read = [0, 0, 1, 200][random.below(4)];
            (&request[..n_sent], n_read, random.below(2) == 0)
        });
        let plans: Vec<_> = plans.collect();

        stream::iter(plans)
            .for_each_concurrent(32, |(bytes, n_read, with_reset)| send_and_disconnect(&host, bytes, n_read, with_reset))
            .await;

        isolated.assert_healthy().await;
        eprintln!("{ABORTS} clients disconnected");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_head_makes_the_server_panic() {
    let mut isolated = IsolatedServer::start(TestBackend::Sqlite, &[]).await;
    let url = isolated.server.url();
    let heads = odd_heads(url.trim_start_matches("http://"));

    let n_heads = heads.len();
    for head in heads {
        // The response does not matter here, only the effect on the server.
        let _ = HttpConnection::connect(&url).send(&head).await;
    }

    isolated.assert_healthy().await;
    // `ERROR` is for what an operator must look at, which invalid requests are not.
    let log = isolated.server.output();
    let errors: Vec<&str> = log.lines().filter(|it| it.contains("ERROR")).collect();
    assert!(errors.is_empty(), "{} errors: {}", errors.len(), errors[0]);
    eprintln!("odd heads to a process: {n_heads} requests");
}

/// Sends every string of the corpus in every place that a log might contain.
async fn send_all_strings(isolated: &IsolatedServer) -> usize {
    let mut connection = HttpConnection::connect(&isolated.server.url());
    let texts = strings::all().into_iter().filter(|it| it.len() < 2_000);
    // All that could start a new line, and some of the others.
    let texts = texts.enumerate().filter(|(index, text)| {
        index % 10 == 0
            || text
                .chars()
                .any(|it| it.is_control() || it.is_whitespace() && it > '~')
    });
    let mut n = 0;
    for (index, text) in texts {
        let address = percent_encoded(&text);
        let target = format!("/{address}?{address}={address}");
        let agent: String = text.chars().filter(|it| !it.is_control()).collect();
        let agent = format!("user-agent: {agent}\r\n");
        let name = json!({ "name": text }).to_string();
        let unknown = json!({ &text: 1 }).to_string();
        let display_name = json!({ "display_name": text }).to_string();
        let sign_in = json!({"username": text, "password": text}).to_string();
        let mut requests = vec![
            isolated.request("POST", "/api/spaces", "", &name),
            isolated.request("POST", "/api/spaces", "", &unknown),
            isolated.request("PATCH", "/api/users/me", "", &display_name),
            isolated.request("GET", &target, &agent, ""),
        ];
        // Each of these costs a hash.
        if index % 10 == 0 {
            requests.push(isolated.request("POST", "/api/session", "", &sign_in));
        }
        for request in requests {
            connection
                .send(&request)
                .await
                .expect("the request got no response");
            n += 1;
        }
    }
    n
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn untrusted_text_cannot_add_a_line_to_the_log() {
    for (format, level) in [("pretty", "debug"), ("json", "info")] {
        let env = [("LOG_FORMAT", format), ("RUST_LOG", level)];
        let mut isolated = IsolatedServer::start(TestBackend::Sqlite, &env).await;

        let n = send_all_strings(&isolated).await;

        isolated.assert_healthy().await;
        let log = isolated.server.output();
        for line in log.lines() {
            let is_clean = !line.chars().any(|it| it.is_control() && it != '\t');
            assert!(is_clean, "{format} {level}: {line:?}");
            assert!(
                !line.starts_with("2026-01-01T00:00:00Z"),
                "{format} {level}: {line}"
            );
            if format == "json" {
                let parsed = serde_json::from_str::<serde_json::Value>(line);
                assert!(parsed.is_ok(), "{line}");
            }
        }
        eprintln!(
            "{n} requests, {} lines of log ({format}, {level})",
            log.lines().count()
        );
    }
}
