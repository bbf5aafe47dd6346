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

/// What a client may ask before it says who it is: whether the server speaks TLS.
const SSL_REQUEST: u32 = 80_877_103;

/// Where a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutPoint {
    /// The server never hears of the COMMIT.
    BeforeCommit,
    /// The server has committed; its answer is lost.
    AfterCommit,
}

/// What the connections share.
#[derive(Clone)]
struct ProxyState {
    notes: Arc<Mutex<Vec<String>>>,
    /// The next cut, after this many COMMITs that pass.
    cut: Arc<Mutex<Option<(usize, CutPoint)>>>,
    is_held: watch::Sender<bool>,
    is_down: watch::Sender<bool>,
}

impl ProxyState {
    /// Whether this COMMIT is the one.
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
        // An error would mean that the wire is gone, and its connections with it.
        let _ = is_held.wait_for(|it| !it).await;
    }

    async fn wait_until_down(&self) {
        let mut is_down = self.is_down.subscribe();
        let _ = is_down.wait_for(|it| *it).await;
    }
}

/// See the module. Dropping it cuts every connection.
pub struct PostgresProxy {
    url: String,
    line: ProxyState,
    accepting: JoinHandle<()>,
}

impl PostgresProxy {
    /// In front of the server of this address.
    pub async fn start(url: &str) -> Self {
        let (front, rest) = url.split_once("://").expect("an address");
        let (authority, path) = rest.split_once('/').expect("an address of a database");
        let (user, host) = authority.split_once('@').unwrap_or(("postgres", authority));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let own = listener.local_addr().expect("a bound socket");
        let line = ProxyState {
            notes: Arc::default(),
            cut: Arc::default(),
            is_held: watch::Sender::new(false),
            is_down: watch::Sender::new(false),
        };
        let accepting = tokio::spawn(accept(listener, host.to_owned(), line.clone()));
        Self {
            url: format!("{front}://{user}@{own}/{path}"),
            line,
            accepting,
        }
    }

    /// The address of the database by this wire.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The statements since the last call.
    pub fn take_statements(&self) -> Vec<String> {
        std::mem::take(&mut self.line.notes.lock())
    }

    /// Cuts the connection of a COMMIT that stores something, after `n` that pass.
    pub fn cut_after(&self, n_commits: usize, cut: CutPoint) {
        *self.line.cut.lock() = Some((n_commits, cut));
    }

    /// Whether the cut has been made.
    pub fn is_cut(&self) -> bool {
        self.line.cut.lock().is_none()
    }

    /// From now on nothing passes, in either direction; what is said meanwhile passes later.
    pub fn hold(&self) {
        self.line.is_held.send_replace(true);
    }

    /// Cuts every connection, and accepts no new one until the proxy is opened again.
    pub fn disconnect(&self) {
        self.line.is_down.send_replace(true);
    }

    /// Accepts connections again.
    pub fn reconnect(&self) {
        self.line.is_down.send_replace(false);
    }

    /// Everything passes again.
    pub fn release(&self) {
        self.line.is_held.send_replace(false);
    }
}

impl Drop for PostgresProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, host: String, line: ProxyState) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let (host, line) = (host.clone(), line.clone());
        if *line.is_down.borrow() {
            continue;
        }
        connections.spawn(async move {
            let server = TcpStream::connect(&host).await.ok()?;
            // Small pieces go on at once, as on a line of their own.
            client.set_nodelay(true).ok()?;
            server.set_nodelay(true).ok()?;
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            let is_deaf = AtomicBool::new(false);
            // Whichever ends first ends both: a connection is there or it is not.
            tokio::select! {
                end = forward(from_client, to_server, &line, &is_deaf) => end,
                end = back(from_server, to_client, &line, &is_deaf) => end,
                () = line.wait_until_down() => None,
            }
        });
    }
}

/// Forwards what the server sends, up to the response that the client must not receive.
async fn back(
    mut server: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    line: &ProxyState,
    is_deaf: &AtomicBool,
) -> Option<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let n = server.read(&mut bytes).await.ok().filter(|n| *n > 0)?;
        if is_deaf.load(Ordering::Acquire) {
            return None;
        }
        line.wait_until_released().await;
        client.write_all(&bytes[..n]).await.ok()?;
    }
}

/// Passes on what the client says, message by message.
async fn forward(
    mut client: OwnedReadHalf,
    mut server: OwnedWriteHalf,
    line: &ProxyState,
    is_deaf: &AtomicBool,
) -> Option<()> {
    // The first messages have no kind: perhaps the question for TLS, then who it is.
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
                line.notes.lock().push(bound.clone());
            }
            b'Q' => {
                let said = sql(text(&body).0);
                // The transaction of a read ends with a COMMIT that stores nothing.
                is_reading = match said.as_str() {
                    "BEGIN" => false,
                    it => is_reading || it.contains("READ ONLY"),
                };
                line.notes.lock().push(said);
            }
            _ => {}
        }
        line.wait_until_released().await;
        if kind == b'Q' && !is_reading && text(&body).0 == b"COMMIT" {
            match line.cuts() {
                Some(CutPoint::BeforeCommit) => return None,
                Some(CutPoint::AfterCommit) => is_deaf.store(true, Ordering::Release),
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

/// A text that ends with a zero, and what follows it.
fn text(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|it| *it == 0);
    let end = end.unwrap_or(bytes.len());
    (&bytes[..end], bytes.get(end + 1..).unwrap_or_default())
}

fn sql(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
