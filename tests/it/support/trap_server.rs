//! A local address that must not be called: listeners that count connections.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinHandle;

/// Listens on 127.0.0.1 and, if IPv6 is available, on [::1], on one port. Every connection is
/// counted and closed.
pub struct TrapServer {
    pub port: u16,
    n_came: Arc<AtomicUsize>,
    listening: Vec<JoinHandle<()>>,
}

impl TrapServer {
    pub fn start() -> TrapServer {
        let four = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = four.local_addr().expect("a bound socket").port();
        // Another process may have this port over IPv6, and some machines have no IPv6.
        let six = TcpListener::bind(("::1", port)).ok();
        let n_came = Arc::new(AtomicUsize::new(0));
        let listening = [Some(four), six].into_iter().flatten();
        let listening = listening.map(|it| tokio::spawn(count(it, n_came.clone())));
        TrapServer {
            port,
            listening: listening.collect(),
            n_came,
        }
    }

    /// Returns whether it also listens on [::1].
    pub fn has_ipv6(&self) -> bool {
        self.listening.len() == 2
    }

    /// Returns the number of connections so far.
    pub fn n_came(&self) -> usize {
        self.n_came.load(Ordering::SeqCst)
    }
}

async fn count(listener: TcpListener, n_came: Arc<AtomicUsize>) {
    listener
        .set_nonblocking(true)
        .expect("the socket can be configured");
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listening socket");
    while listener.accept().await.is_ok() {
        n_came.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for TrapServer {
    fn drop(&mut self) {
        for listening in &self.listening {
            listening.abort();
        }
    }
}
