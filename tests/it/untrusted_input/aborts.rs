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

/// Numbers that look like chance and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// Everything that one does here, as bytes.
fn everything(apart: &IsolatedServer) -> Vec<Vec<u8>> {
    let conversation = apart.conversation;
    let to = |rest: &str| format!("/api/conversations/{conversation}{rest}");
    let sign_in = r#"{"username":"admin","password":"correct horse battery"}"#;
    let socket = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
        sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let mut upgrade = apart.request("GET", "/ws", socket, "");
    let subscribe = format!(r#"{{"id":1,"op":"subscribe","conversation_id":{conversation}}}"#);
    upgrade.extend(frame(TEXT, subscribe.as_bytes()));
    upgrade.extend(frame(TEXT, br#"{"id":2,"op":"ping"}"#));
    let mut pieces = apart.request("POST", "/api/spaces", "", r#"{"name":"Whole"}"#);
    pieces.extend(apart.request("GET", "/api/spaces", "", ""));
    vec![
        apart.request("POST", &to("/messages"), "", r#"{"content":"I leave."}"#),
        apart.request("POST", &to("/generate"), "", "{}"),
        apart.request("POST", &to("/stop"), "", "{}"),
        apart.request("GET", &to("/messages?limit=200"), "", ""),
        apart.request("PATCH", &to(""), "", r#"{"title":"Left"}"#),
        apart.request("POST", "/api/spaces", "", r#"{"name":"Left behind"}"#),
        apart.request("POST", "/api/characters", "", r#"{"name":"Left behind"}"#),
        apart.request("PATCH", "/api/users/me", "", r#"{"display_name":"Gone"}"#),
        apart.request("POST", "/api/session", "", sign_in),
        apart.request("GET", "/js/main.js", "", ""),
        apart.request("GET", "/openapi.json", "", ""),
        upgrade,
        pieces,
    ]
}

/// Sends so much of a request, reads so much of an answer, and leaves, politely or not.
async fn leave(host: &str, bytes: &[u8], n_read: usize, rudely: bool) {
    let mut stream = TcpStream::connect(host).await.expect("it listens");
    if stream.write_all(bytes).await.is_err() {
        return;
    }
    let mut answer = vec![0; n_read];
    // Of half a request there may be no answer: who waits for one leaves in the end.
    let _ = tokio::time::timeout(Duration::from_millis(30), stream.read_exact(&mut answer)).await;
    if rudely {
        let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    }
}

on_sqlite! {
    async fn a_thousand_aborted_requests_do_not_affect_others(backend) {
        let mut apart = IsolatedServer::start(backend, &[]).await;
        let requests = everything(&apart);
        let host = apart.server.url().replace("http://", "");
        let mut dice = Dice(0x5eed);
        let plans = (0..ABORTS).map(|_| {
            let request = &requests[dice.below(requests.len())];
            // One of three is sent whole: its client leaves while the server works.
            let is_whole = dice.below(3) == 0;
            let n_sent = if is_whole { request.len() } else { dice.below(request.len()) };
            let n_read = [0, 0, 1, 200][dice.below(4)];
            (&request[..n_sent], n_read, dice.below(2) == 0)
        });
        let plans: Vec<_> = plans.collect();

        stream::iter(plans)
            .for_each_concurrent(32, |(bytes, n_read, rudely)| leave(&host, bytes, n_read, rudely))
            .await;

        apart.assert_healthy().await;
        eprintln!("{ABORTS} clients left");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_head_makes_the_server_panic() {
    let mut apart = IsolatedServer::start(TestBackend::Sqlite, &[]).await;
    let url = apart.server.url();
    let heads = odd_heads(url.trim_start_matches("http://"));

    let n_heads = heads.len();
    for head in heads {
        // Refused or closed: here only what it does to the server counts.
        let _ = HttpConnection::connect(&url).send(&head).await;
    }

    apart.assert_healthy().await;
    // An error in the log means that a person should look: not at what strangers send.
    let log = apart.server.output();
    let errors: Vec<&str> = log.lines().filter(|it| it.contains("ERROR")).collect();
    assert!(errors.is_empty(), "{} errors: {}", errors.len(), errors[0]);
    eprintln!("odd heads to a process: {n_heads} requests");
}

/// Says every string of the corpus wherever a log might repeat it.
async fn say_everything(apart: &IsolatedServer) -> usize {
    let mut line = HttpConnection::connect(&apart.server.url());
    let texts = strings::all().into_iter().filter(|it| it.len() < 2_000);
    // What could break out of a line, and some of the others.
    let texts = texts.enumerate().filter(|(place, text)| {
        place % 10 == 0
            || text
                .chars()
                .any(|it| it.is_control() || it.is_whitespace() && it > '~')
    });
    let mut n = 0;
    for (place, text) in texts {
        let address = percent_encoded(&text);
        let target = format!("/{address}?{address}={address}");
        let agent: String = text.chars().filter(|it| !it.is_control()).collect();
        let agent = format!("user-agent: {agent}\r\n");
        let name = json!({ "name": text }).to_string();
        let unknown = json!({ &text: 1 }).to_string();
        let display_name = json!({ "display_name": text }).to_string();
        let sign_in = json!({"username": text, "password": text}).to_string();
        let mut requests = vec![
            apart.request("POST", "/api/spaces", "", &name),
            apart.request("POST", "/api/spaces", "", &unknown),
            apart.request("PATCH", "/api/users/me", "", &display_name),
            apart.request("GET", &target, &agent, ""),
        ];
        // Each of these costs a hash.
        if place % 10 == 0 {
            requests.push(apart.request("POST", "/api/session", "", &sign_in));
        }
        for request in requests {
            line.send(&request).await.expect("an answer");
            n += 1;
        }
    }
    n
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_stranger_writes_a_line_into_the_log() {
    for (format, level) in [("pretty", "debug"), ("json", "info")] {
        let env = [("LOG_FORMAT", format), ("RUST_LOG", level)];
        let mut apart = IsolatedServer::start(TestBackend::Sqlite, &env).await;

        let n = say_everything(&apart).await;

        apart.assert_healthy().await;
        let log = apart.server.output();
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
