//! Counts, for metrics, the requests of all embedding clients by their results, and how often a cache had the
//! vector of a text.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::embeddings::error::EmbeddingError;
use crate::embeddings::options::CallKind;

/// The paths of calls: queries (`read`), memories (`write`), and texts of programs (`relay`).
const PATHS: [&str; 3] = ["read", "write", "relay"];

/// The results of a request. `refused`: the provider does not accept these texts.
const RESULTS: [&str; 4] = ["succeeded", "refused", "timed_out", "failed"];

/// The counts since the start.
#[derive(Debug, Default)]
pub struct EmbeddingCounts {
    requests: [[AtomicU64; RESULTS.len()]; PATHS.len()],
    hits: AtomicU64,
    misses: AtomicU64,
}

impl EmbeddingCounts {
    /// Records the result of one request; each retry is a request.
    pub(super) fn record_request<T>(&self, kind: CallKind, result: &Result<T, EmbeddingError>) {
        let path = match kind {
            CallKind::Read => 0,
            CallKind::Write => 1,
            CallKind::Relay => 2,
        };
        let place = match result {
            Ok(_) => 0,
            Err(error) if error.is_refusal() => 1,
            Err(error) if error.is_timeout() => 2,
            Err(_) => 3,
        };
        self.requests[path][place].fetch_add(1, Ordering::Relaxed);
    }

    /// Records how many distinct texts of a call were in a cache, and how many were requested.
    pub(super) fn record_cached(&self, n_hits: usize, n_misses: usize) {
        self.hits.fetch_add(n_hits as u64, Ordering::Relaxed);
        self.misses.fetch_add(n_misses as u64, Ordering::Relaxed);
    }

    /// Returns the requests by path (`read`, `write` or `relay`) and result.
    pub fn list_requests(&self) -> Vec<(&'static str, &'static str, u64)> {
        let mut all = Vec::with_capacity(PATHS.len() * RESULTS.len());
        for (path, counts) in PATHS.iter().zip(&self.requests) {
            for (result, n) in RESULTS.iter().zip(counts) {
                all.push((*path, *result, n.load(Ordering::Relaxed)));
            }
        }
        all
    }

    /// Returns the numbers of cache hits and of cache misses.
    pub fn cached(&self) -> (u64, u64) {
        let read = |it: &AtomicU64| it.load(Ordering::Relaxed);
        (read(&self.hits), read(&self.misses))
    }
}
