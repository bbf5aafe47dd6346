//! A proxy between one node and Redis that disconnects, or loses, repeats, swaps and
//! corrupts messages. Commands and their responses pass unchanged; only messages to subscribers are
//! affected.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// What the proxy does with messages to subscribers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyFault {
    #[default]
    None,
    /// All are lost.
    LoseAll,
    /// Every second one is lost.
    LoseHalf,
    /// Each is sent twice.
    Repeat,
    /// Every two consecutive messages are swapped.
    Swap,
    /// One bit of each is flipped.
    Garble,
}

/// See the module. Dropping it closes every connection.
pub struct RedisProxy {
    port: u16,
    fault: Arc<Mutex<ProxyFault>>,
    is_cut: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl RedisProxy {
    /// Starts a proxy to the Redis server on this port.
    pub async fn to(port: u16) -> RedisProxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let own = listener.local_addr().expect("a bound socket").port();
        let fault = Arc::<Mutex<ProxyFault>>::default();
        let is_cut = watch::Sender::new(false);
        let accepting = tokio::spawn(accept(listener, port, fault.clone(), is_cut.subscribe()));
        RedisProxy {
            port: own,
            fault,
            is_cut,
            accepting,
        }
    }

    /// The value of `REDIS_URL`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn inject_fault(&self, fault: ProxyFault) {
        *self.fault.lock() = fault;
    }

    /// Closes every connection and accepts no new one.
    pub fn cut(&self) {
        self.is_cut.send_replace(true);
    }

    pub fn reconnect(&self) {
        self.is_cut.send_replace(false);
    }
}

impl Drop for RedisProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    port: u16,
    fault: Arc<Mutex<ProxyFault>>,
    is_cut: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let (fault, mut is_cut) = (fault.clone(), is_cut.clone());
        connections.spawn(async move {
            let carry = carry(client, port, fault);
            tokio::select! {
                _ = carry => {}
                _ = is_cut.wait_for(|it| *it) => {}
            }
        });
    }
}

async fn carry(client: TcpStream, port: u16, fault: Arc<Mutex<ProxyFault>>) -> std::io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", port)).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    let there = tokio::io::copy(&mut from_client, &mut to_server);
    let back = async {
        let mut from_server = BufReader::new(from_server);
        let mut n = 0;
        let mut kept: Option<Vec<u8>> = None;
        loop {
            let mut value = read_value(&mut from_server).await?;
            if !value.starts_with(b"*3\r\n$7\r\nmessage\r\n") {
                to_client.write_all(&value).await?;
                continue;
            }
            n += 1;
            let fault = *fault.lock();
            match fault {
                ProxyFault::None => to_client.write_all(&value).await?,
                ProxyFault::LoseAll => {}
                ProxyFault::LoseHalf if n % 2 == 0 => {}
                ProxyFault::LoseHalf => to_client.write_all(&value).await?,
                ProxyFault::Repeat => to_client.write_all(&[&value[..], &value].concat()).await?,
                ProxyFault::Swap => match kept.take() {
                    Some(before) => to_client.write_all(&[value, before].concat()).await?,
                    None => kept = Some(value),
                },
                ProxyFault::Garble => {
                    let at = value.len() - 5;
                    value[at] ^= 1;
                    to_client.write_all(&value).await?;
                }
            }
        }
    };
    tokio::select! {
        done = there => done.map(drop),
        done = back => done,
    }
}

/// Reads the bytes of one complete value of the Redis protocol.
async fn read_value(from: &mut (impl AsyncBufReadExt + Unpin)) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut n_missing = 1_i64;
    while n_missing > 0 {
        let begin = bytes.len();
        if from.read_until(b'\n', &mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let line = &bytes[begin..];
        let number = || -> i64 {
            let digits = std::str::from_utf8(&line[1..line.len() - 2]).unwrap_or("0");
            digits.parse().unwrap_or(0)
        };
        match line[0] {
            b'$' if number() >= 0 => {
                let mut rest = vec![0; number() as usize + 2];
                from.read_exact(&mut rest).await?;
                bytes.extend(rest);
            }
            b'*' | b'>' | b'~' => n_missing += number(),
            b'%' => n_missing += 2 * number(),
            _ => {}
        }
        n_missing -= 1;
    }
    Ok(bytes)
}
