//! A wire in front of PostgreSQL that passes everything on and notes each statement that is
//! executed: what a client really sends, whatever its libraries say of themselves.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::copy;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::task::JoinHandle;

/// What a client may ask before it says who it is: whether the server speaks TLS.
const SSL_REQUEST: u32 = 80_877_103;

type Notes = Arc<Mutex<Vec<String>>>;

/// See the module. Dropping it cuts every connection.
pub struct Wire {
    url: String,
    notes: Notes,
    accepting: JoinHandle<()>,
}

impl Wire {
    /// In front of the server of this address.
    pub async fn before(url: &str) -> Self {
        let (front, rest) = url.split_once("://").expect("an address");
        let (authority, path) = rest.split_once('/').expect("an address of a database");
        let (user, host) = authority.split_once('@').unwrap_or(("postgres", authority));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let own = listener.local_addr().expect("a bound socket");
        let notes = Notes::default();
        let accepting = tokio::spawn(accept(listener, host.to_owned(), notes.clone()));
        Self {
            url: format!("{front}://{user}@{own}/{path}"),
            notes,
            accepting,
        }
    }

    /// The address of the database by this wire.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The statements since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock())
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, host: String, notes: Notes) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let (host, notes) = (host.clone(), notes.clone());
        connections.spawn(async move {
            let server = TcpStream::connect(&host).await.ok()?;
            let (from_client, mut to_client) = client.into_split();
            let (mut from_server, to_server) = server.into_split();
            let back = async { copy(&mut from_server, &mut to_client).await.ok() };
            tokio::join!(forward(from_client, to_server, notes), back);
            Some(())
        });
    }
}

/// Passes on what the client says, message by message.
async fn forward(
    mut client: OwnedReadHalf,
    mut server: OwnedWriteHalf,
    notes: Notes,
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
            b'E' => notes.lock().push(bound.clone()),
            b'Q' => notes.lock().push(sql(text(&body).0)),
            _ => {}
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
