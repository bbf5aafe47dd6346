//! Records the requests to the fake provider, for tests that query them or wait for one.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::connection::Received;

/// The deadline of every wait.
const DEADLINE: Duration = Duration::from_secs(20);

/// Older requests are dropped, so that long tests use little memory.
const MAX_KEPT: usize = 2_000;

/// One request for a completion and the progress of its response.
#[derive(Debug, Clone)]
pub struct RequestLog {
    /// Requests with the same number came over the same connection.
    pub connection: usize,
    /// Includes the query.
    pub path: String,
    pub body: Value,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub came_at: Instant,
    /// The number of visible text chunks that were sent.
    pub n_texts: usize,
    /// When the script was played to its end.
    pub finished_at: Option<Instant>,
    /// When the client disconnected before that.
    pub hung_up_at: Option<Instant>,
}

impl RequestLog {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(it, _)| it == name)
            .map(|(_, value)| value.as_str())
    }
}

#[derive(Debug, Default)]
struct Log {
    n_forgotten: usize,
    kept: VecDeque<RequestLog>,
}

impl Log {
    fn get(&self, i: usize) -> Option<&RequestLog> {
        self.kept.get(i.checked_sub(self.n_forgotten)?)
    }

    fn len(&self) -> usize {
        self.n_forgotten + self.kept.len()
    }
}

/// The log of a server; every entry notifies the waiting callers.
#[derive(Debug)]
pub struct RequestLogs(watch::Sender<Log>);

impl RequestLogs {
    pub fn new() -> Self {
        Self(watch::Sender::default())
    }

    /// Adds a request and returns its number, from 0.
    pub fn came(&self, connection: usize, received: Received) -> usize {
        let came_at = Instant::now();
        let Received {
            path,
            body,
            headers,
            ..
        } = received;
        let seen = RequestLog {
            connection,
            path,
            body,
            headers,
            came_at,
            n_texts: 0,
            finished_at: None,
            hung_up_at: None,
        };
        let mut i = 0;
        self.0.send_modify(|log| {
            i = log.len();
            log.kept.push_back(seen);
            if log.kept.len() > MAX_KEPT {
                log.kept.pop_front();
                log.n_forgotten += 1;
            }
        });
        i
    }

    /// Changes the entry of a request that is still kept.
    pub fn note(&self, i: usize, change: impl FnOnce(&mut RequestLog)) {
        self.0.send_modify(|log| {
            let place = i.checked_sub(log.n_forgotten);
            if let Some(seen) = place.and_then(|it| log.kept.get_mut(it)) {
                change(seen);
            }
        });
    }

    pub fn n_requests(&self) -> usize {
        self.0.borrow().len()
    }

    /// Returns the request with this number; panics if it does not exist or was dropped.
    pub fn seen(&self, i: usize) -> RequestLog {
        let log = self.0.borrow();
        log.get(i)
            .unwrap_or_else(|| panic!("request {i} of {} does not exist", log.len()))
            .clone()
    }

    pub async fn wait_for_requests(&self, n: usize) {
        self.wait(&format!("{n} requests"), |log| {
            (log.len() >= n).then_some(())
        })
        .await;
    }

    pub async fn wait_for_texts(&self, i: usize, n_texts: usize) {
        let is_sent = |log: &Log| log.get(i).filter(|it| it.n_texts >= n_texts).map(|_| ());
        self.wait(&format!("{n_texts} text chunks of response {i}"), is_sent)
            .await;
    }

    pub async fn wait_for_disconnect(&self, i: usize) -> Instant {
        self.wait(
            &format!("the client to disconnect from request {i}"),
            |log| log.get(i)?.hung_up_at,
        )
        .await
    }

    pub async fn finished(&self, i: usize) -> Instant {
        self.wait(&format!("the end of response {i}"), |log| {
            log.get(i)?.finished_at
        })
        .await
    }

    async fn wait<T>(&self, what: &str, mut probe: impl FnMut(&Log) -> Option<T>) -> T {
        let mut log = self.0.subscribe();
        let mut found = None;
        let is_found = log.wait_for(|log| {
            found = probe(log);
            found.is_some()
        });
        let res = timeout(DEADLINE, is_found).await.map(|it| it.map(|_| ()));
        match (res, found) {
            (Ok(Ok(())), Some(found)) => found,
            _ => panic!(
                "timed out waiting for {what}: {} requests were received",
                self.n_requests()
            ),
        }
    }
}
