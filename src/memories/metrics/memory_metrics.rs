//! Prometheus metrics of the memory: recalls and their failures on this node, messages that were not
//! learned from, and the background work of all nodes.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use base::clock::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::memories::metrics::memory_load::{MemoryLoad, TotalsCache};

/// Durations of a recall in seconds: it should add at most 50 ms to a prompt, and is limited to 2
/// s.
const RECALL_BUCKETS: [f64; 9] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.25, 1.0, 2.0];

/// The metrics of the memory. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct MemoryMetrics {
    recall_seconds: Histogram,
    recalls: Family<ResultLabel, Counter>,
    source_failures: Family<SourceLabel, Counter>,
    /// Messages that were left out because too many waited to be learned from.
    pub dropped: Counter,
    tasks: Family<StatusLabel, Gauge<f64, AtomicU64>>,
    oldest_task: Gauge<f64, AtomicU64>,
    memories: Gauge<f64, AtomicU64>,
    vectors_stale: Gauge<f64, AtomicU64>,
    pub totals: TotalsCache,
}

/// What a recall returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecallOutcome {
    Hit,
    Empty,
    /// A part of the search failed or timed out.
    Degraded,
}

/// A part of a recall that can fail on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecallSource {
    /// Words, local vectors and pinned memories, which are in one index.
    Index,
    /// The vectors of a provider.
    Vectors,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SourceLabel {
    source: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StatusLabel {
    status: &'static str,
}

impl Default for MemoryMetrics {
    fn default() -> Self {
        Self {
            recall_seconds: Histogram::new(RECALL_BUCKETS),
            recalls: Family::default(),
            source_failures: Family::default(),
            dropped: Counter::default(),
            tasks: Family::default(),
            oldest_task: Gauge::default(),
            memories: Gauge::default(),
            vectors_stale: Gauge::default(),
            totals: TotalsCache::default(),
        }
    }
}

impl MemoryMetrics {
    /// Registers the metrics.
    pub fn register(&self, to: &mut Registry) {
        to.register(
            "memory_recall_seconds",
            "Duration of a search in memories",
            self.recall_seconds.clone(),
        );
        to.register(
            "memory_recall",
            "Searches in memories by result",
            self.recalls.clone(),
        );
        to.register(
            "memory_source_failures",
            "Failures of the parts of a search in memories",
            self.source_failures.clone(),
        );
        to.register(
            "memory_dropped",
            "Messages that were not learned from because too many waited",
            self.dropped.clone(),
        );
        self.register_load(to);
    }

    fn register_load(&self, to: &mut Registry) {
        to.register(
            "memory_outbox",
            "Tasks of the memory, on all nodes together",
            self.tasks.clone(),
        );
        to.register(
            "memory_outbox_oldest_seconds",
            "Age of the oldest task of the memory that has not failed; 0 if there is none",
            self.oldest_task.clone(),
        );
        to.register(
            "memories_total",
            "Stored memories; counted once a minute at most",
            self.memories.clone(),
        );
        to.register(
            "memory_vectors_stale",
            "Memories that wait for a vector of the model of their space; counted once a minute at most",
            self.vectors_stale.clone(),
        );
    }

    /// Records a search.
    pub fn recalled(&self, outcome: RecallOutcome, took: Duration) {
        let result = match outcome {
            RecallOutcome::Hit => "hit",
            RecallOutcome::Empty => "empty",
            RecallOutcome::Degraded => "degraded",
        };
        self.recalls.get_or_create(&ResultLabel { result }).inc();
        self.recall_seconds.observe(took.as_secs_f64());
    }

    /// Records that a part of a search failed or timed out.
    pub fn source_failed(&self, source: RecallSource) {
        let source = match source {
            RecallSource::Index => "index",
            RecallSource::Vectors => "vectors",
        };
        let label = SourceLabel { source };
        self.source_failures.get_or_create(&label).inc();
    }

    /// Records the memories and the background work on them.
    pub fn show_load(&self, load: MemoryLoad, now: Timestamp) {
        // NaN for an unknown value: the previous one would be wrong.
        let figure = |n: Option<u64>| n.map_or(f64::NAN, |it| it as f64);
        let (tasks, totals) = (load.tasks, load.totals);
        for (status, n) in [
            ("queued", tasks.map(|it| it.queued)),
            ("running", tasks.map(|it| it.running)),
            ("failed", tasks.map(|it| it.failed)),
        ] {
            let gauge = self.tasks.get_or_create(&StatusLabel { status });
            gauge.set(figure(n));
        }
        let age_ms = tasks.map(|it| it.oldest_age_ms(now).unwrap_or(0));
        let age = age_ms.map_or(f64::NAN, |it| it as f64 / 1000.0);
        self.oldest_task.set(age);
        self.memories.set(figure(totals.map(|it| it.memories)));
        self.vectors_stale
            .set(figure(totals.map(|it| it.vectors_stale)));
    }
}
