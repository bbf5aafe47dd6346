//! Limits on connections: per address, and for a process with few file descriptors.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use troupe::rate_limit::connections::Connections;

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, fresh_database};
use crate::support::http_client::{HttpClient, http_client};
use crate::support::poll;
use crate::support::poll::DEADLINE;
use crate::support::process::Server;
use crate::support::raw_http::exchange;

const SLOW: &str = "POST /api/session HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
    content-length: 1000\r\n\r\n";

const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";

/// Opens a connection from this local address.
async fn connect_from(address: &str, base: &str) -> std::io::Result<TcpStream> {
    let to: SocketAddr = base
        .strip_prefix("http://")
        .expect("an http:// URL")
        .parse()
        .expect("a socket address");
    let socket = TcpSocket::new_v4()?;
    let from = format!("{address}:0").parse().expect("an address");
    socket.bind(from)?;
    socket.connect(to).await
}

/// Returns whether the server answers a request on this connection; if not, it has closed it.
async fn is_served(stream: &mut TcpStream) -> bool {
    let _ = stream.write_all(HEALTH.as_bytes()).await;
    let mut answer = [0; 12];
    let read = timeout(DEADLINE, stream.read_exact(&mut answer)).await;
    let read = read.expect("the server answers or closes");
    read.is_ok() && answer.starts_with(b"HTTP/1.1 200")
}

/// Starts a server that counts connections from this machine like those from elsewhere.
async fn start_with_loopback_limit(env: &[(&str, &str)]) -> TestApp {
    TestApp::start_changed(TestBackend::Sqlite, env, |app| {
        let connections = Connections::new(&app.config, None).with_loopback_limit();
        app.connections = Arc::new(connections);
    })
    .await
}

/// Sends a body of one byte a second until the server closes the connection, then starts again.
async fn send_slow_bodies(address: &'static str, base: String) {
    loop {
        if let Ok(mut stream) = connect_from(address, &base).await
            && stream.write_all(SLOW.as_bytes()).await.is_ok()
        {
            while stream.write_all(b" ").await.is_ok() {
                sleep(Duration::from_secs(1)).await;
            }
        }
        // The server has closed the connection: pause before the next one.
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_limited_per_address() {
    let app = start_with_loopback_limit(&[("LIMIT_CONNECTIONS_PER_ADDRESS", "8")]).await;
    let open = async |n: usize| {
        poll::until("the expected number of open connections", async || {
            (app.app.connections.n_open() == n).then_some(())
        })
        .await;
    };
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(connect_from("127.0.0.2", &app.base).await.unwrap());
    }
    open(8).await;

    let mut ninth = connect_from("127.0.0.2", &app.base).await.unwrap();
    assert!(!is_served(&mut ninth).await);
    let mut other = connect_from("127.0.0.3", &app.base).await.unwrap();
    assert!(is_served(&mut other).await);
    for stream in &mut held {
        assert!(is_served(stream).await);
    }
    held.pop();
    open(8).await;
    let mut next = connect_from("127.0.0.2", &app.base).await.unwrap();
    assert!(is_served(&mut next).await);

    drop((held, other, next, ninth));
    open(0).await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_a_trusted_proxy_are_not_counted_for_an_address() {
    let env = [
        ("LIMIT_CONNECTIONS_PER_ADDRESS", "2"),
        ("TROUPE_TRUSTED_PROXIES", "127.0.0.9"),
    ];
    let app = start_with_loopback_limit(&env).await;

    let mut held = Vec::new();
    for _ in 0..10 {
        let mut stream = connect_from("127.0.0.9", &app.base).await.unwrap();
        assert!(is_served(&mut stream).await);
        held.push(stream);
    }

    drop(held);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn slow_bodies_from_one_address_do_not_block_other_addresses() {
    let app = start_with_loopback_limit(&[]).await;
    let mut slow = JoinSet::new();
    for _ in 0..400 {
        slow.spawn(send_slow_bodies("127.0.0.2", app.base.clone()));
    }
    poll::until("the address has reached its connection limit", async || {
        (app.app.connections.n_open() >= 256).then_some(())
    })
    .await;

    for _ in 0..20 {
        let mut other = connect_from("127.0.0.3", &app.base).await.unwrap();
        assert!(is_served(&mut other).await);
        let wrong = json!({"username": "x", "password": "wrong horse"});
        let answer = HttpClient::new(&app.base).post("/api/session", wrong).await;
        assert!([401, 429].contains(&answer.0), "{}", answer.1);
    }

    assert!(app.app.connections.n_open() <= 256 + 30);
    slow.shutdown().await;
    app.close().await;
}

/// The connections come from loopback, which has no limit per address, like an attack through a
/// proxy.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_with_256_descriptors_survives_400_slow_bodies() {
    let database = fresh_database(&TestBackend::Sqlite).await;
    let mut server = Server::prepare(&database, &[]);
    server.max_files = Some(256);
    server.launch().await;
    server.wait_ready().await;
    let mut slow = JoinSet::new();
    for _ in 0..400 {
        slow.spawn(send_slow_bodies("127.0.0.1", server.url()));
    }
    let fds = format!("/proc/{}/fd", server.pid());
    poll::until("the server uses most of its descriptors", async || {
        let n = std::fs::read_dir(&fds).ok()?.count();
        (n > 140).then_some(())
    })
    .await;

    for path in ["/healthz", "/readyz", "/api/setup"].repeat(3) {
        let request = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
        let answer = exchange(&server.url(), request).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }

    slow.shutdown().await;
    assert_eq!(exchange(&server.url(), HEALTH).await.status, 200);
    assert!(server.exited().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_accept_loop_survives_running_out_of_descriptors() {
    let database = fresh_database(&TestBackend::Sqlite).await;
    let server = Server::start(&database, &[]).await;
    let fds = format!("/proc/{}/fd", server.pid());
    let used = std::fs::read_dir(&fds).unwrap().count();
    let limit = |n: usize| {
        let pid = server.pid().to_string();
        let mut command = Command::new("/usr/bin/prlimit");
        let command = command.args(["--pid", &pid, &format!("--nofile={n}:1024")]);
        assert!(command.status().expect("prlimit can be started").success());
    };
    limit(used + 5);

    let mut held = Vec::new();
    for _ in 0..40 {
        held.push(connect_from("127.0.0.1", &server.url()).await.unwrap());
    }
    poll::until("all descriptors are in use", async || {
        let n = std::fs::read_dir(&fds).ok()?.count();
        (n >= used + 5).then_some(())
    })
    .await;
    drop(held);

    let answer = http_client().get(format!("{}/healthz", server.url()));
    assert_eq!(answer.send().await.unwrap().status(), 200);
}
