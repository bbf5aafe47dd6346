//! A proxy in front of PostgreSQL that records every executed statement. It can be paused,
//! disconnected, or cut at a COMMIT: before the server receives it, or after the commit and before
//! the client gets the response.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::support::poll;

/// The code of the `SSLRequest` message, which a client may send before its startup message.
const SSL_REQUEST: u32 = 80_877_103;

/// Where a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutPoint {
    /// The server does not receive the COMMIT.
    BeforeCommit,
    /// The server has committed; its response is lost.
    AfterCommit,
}

/// State shared by the connections.
#[derive(Clone)]
struct ProxyState {
    statements: Arc<Mutex<Vec<String>>>,
    /// The next cut, and the number of COMMITs to forward before it.
    cut: Arc<Mutex<Option<(usize, CutPoint)>>>,
    is_held: watch::Sender<bool>,
    is_down: watch::Sender<bool>,
}

impl ProxyState {
    /// Returns the cut to make at this COMMIT, if any.
    fn cuts(&self) -> Option<CutPoint> {
        let mut cut = self.cut.lock();
        match cut.as_mut() {
            Some((0, _)) => cut.take().map(|(_, it)| it),
            Some((n, _)) => {
                *n -= 1;
                None
            }
            None => None,
        }
    }

    async fn wait_until_released(&self) {
        let mut is_held = self.is_held.subscribe();
        // An error would mean that the proxy was dropped, which also ends its connections.
        let _ = is_held.wait_for(|it| !it).await;
    }

    async fn wait_until_down(&self) {
        let mut is_down = self.is_down.subscribe();
        let _ = is_down.wait_for(|it| *it).await;
    }
}

/// See the module. Dropping it closes every connection.
pub struct PostgresProxy {
    url: String,
    state: ProxyState,
    accepting: JoinHandle<()>,
}

impl PostgresProxy {
    /// Starts a proxy in front of the server of this URL.
    pub async fn start(url: &str) -> Self {
        let (front, rest) = url.split_once("://").expect("a URL");
        let (authority, path) = rest.split_once('/').expect("a URL with a database");
        let (user, host) = authority.split_once('@').unwrap_or(("postgres", authority));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let own = listener.local_addr().expect("a bound socket");
        let state = ProxyState {
            statements: Arc::default(),
            cut: Arc::default(),
            is_held: watch::Sender::new(false),
            is_down: watch::Sender::new(false),
        };
        let accepting = tokio::spawn(accept(listener, host.to_owned(), state.clone()));
        Self {
            url: format!("{front}://{user}@{own}/{path}"),
            state,
            accepting,
        }
    }

    /// Returns the URL of the database through this proxy.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the statements since the last call.
    pub fn take_statements(&self) -> Vec<String> {
        std::mem::take(&mut self.state.statements.lock())
    }

    /// Waits for `n` more queries for expired leases of runs.
    pub async fn wait_for_recovery_queries(&self, n: usize) {
        self.take_statements();
        let mut n_queries = 0;
        poll::until("recovery has queried", async || {
            let is_recovery_query =
                |it: &&String| it.starts_with("SELECT") && it.contains("heartbeat_at\" <=");
            n_queries += self
                .take_statements()
                .iter()
                .filter(is_recovery_query)
                .count();
            (n_queries >= n).then_some(())
        })
        .await;
    }

    /// Cuts the connection at a COMMIT of a write, after `n_commits` that are forwarded.
    pub fn cut_after(&self, n_commits: usize, cut: CutPoint) {
        *self.state.cut.lock() = Some((n_commits, cut));
    }

    /// Returns whether the cut has been made.
    pub fn is_cut(&self) -> bool {
        self.state.cut.lock().is_none()
    }

    /// Pauses both directions; data that arrives meanwhile is forwarded after `release`.
    pub fn hold(&self) {
        self.state.is_held.send_replace(true);
    }

    /// Closes every connection and accepts no new one until `reconnect`.
    pub fn disconnect(&self) {
        self.state.is_down.send_replace(true);
    }

    /// Accepts connections again.
    pub fn reconnect(&self) {
        self.state.is_down.send_replace(false);
    }

    /// Forwards data again after `hold`.
    pub fn release(&self) {
        self.state.is_held.send_replace(false);
    }
}

impl Drop for PostgresProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, host: String, state: ProxyState) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let (host, state) = (host.clone(), state.clone());
        if *state.is_down.borrow() {
            continue;
        }
        connections.spawn(async move {
            let server = TcpStream::connect(&host).await.ok()?;
            // Forwards small packets at once, as a direct connection does.
            client.set_nodelay(true).ok()?;
            server.set_nodelay(true).ok()?;
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            let drops_responses = AtomicBool::new(false);
            // The first direction that ends closes both.
            tokio::select! {
                end = forward(from_client, to_server, &state, &drops_responses) => end,
                end = forward_back(from_server, to_client, &state, &drops_responses) => end,
                () = state.wait_until_down() => None,
            }
        });
    }
}

/// Forwards what the server sends, up to the response that the client must not receive.
async fn forward_back(
    mut server: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    state: &ProxyState,
    drops_responses: &AtomicBool,
) -> Option<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let n = server.read(&mut bytes).await.ok().filter(|n| *n > 0)?;
        if drops_responses.load(Ordering::Acquire) {
            return None;
        }
        state.wait_until_released().await;
        client.write_all(&bytes[..n]).await.ok()?;
    }
}

/// Forwards the messages of the client one by one.
async fn forward(
    mut client: OwnedReadHalf,
    mut server: OwnedWriteHalf,
    state: &ProxyState,
    drops_responses: &AtomicBool,
) -> Option<()> {
    // The first messages have no type byte: an optional `SSLRequest`, then the startup message.
    loop {
        let (code, bytes) = read_untyped(&mut client).await?;
        server.write_all(&bytes).await.ok()?;
        if code != SSL_REQUEST {
            break;
        }
    }
    let mut prepared: HashMap<Vec<u8>, String> = HashMap::new();
    let mut bound = String::new();
    let mut is_reading = false;
    loop {
        let kind = client.read_u8().await.ok()?;
        let length = client.read_u32().await.ok()?;
        let mut body = vec![0; length.checked_sub(4)? as usize];
        client.read_exact(&mut body).await.ok()?;
        match kind {
            b'P' => {
                let (name, rest) = text(&body);
                prepared.insert(name.to_vec(), sql(text(rest).0));
            }
            b'B' => {
                let statement = text(text(&body).1).0;
                bound = prepared.get(statement).cloned().unwrap_or_default();
            }
            b'E' => {
                is_reading |= bound.contains("READ ONLY");
                state.statements.lock().push(bound.clone());
            }
            b'Q' => {
                let statement_sql = sql(text(&body).0);
                // The COMMIT of a read transaction stores nothing.
                is_reading = match statement_sql.as_str() {
                    "BEGIN" => false,
                    it => is_reading || it.contains("READ ONLY"),
                };
                state.statements.lock().push(statement_sql);
            }
            _ => {}
        }
        state.wait_until_released().await;
        if kind == b'Q' && !is_reading && text(&body).0 == b"COMMIT" {
            match state.cuts() {
                Some(CutPoint::BeforeCommit) => return None,
                Some(CutPoint::AfterCommit) => drops_responses.store(true, Ordering::Release),
                None => {}
            }
        }
        let mut message = vec![kind];
        message.extend(length.to_be_bytes());
        message.extend(body);
        server.write_all(&message).await.ok()?;
    }
}

async fn read_untyped(client: &mut OwnedReadHalf) -> Option<(u32, Vec<u8>)> {
    let length = client.read_u32().await.ok()?;
    let mut body = vec![0; length.checked_sub(4)? as usize];
    client.read_exact(&mut body).await.ok()?;
    let code = u32::from_be_bytes(body.get(..4)?.try_into().ok()?);
    Some((code, [length.to_be_bytes().to_vec(), body].concat()))
}

/// Splits bytes after the first zero-terminated string.
fn text(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|it| *it == 0);
    let end = end.unwrap_or(bytes.len());
    (&bytes[..end], bytes.get(end + 1..).unwrap_or_default())
}

fn sql(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
