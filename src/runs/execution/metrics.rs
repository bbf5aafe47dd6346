//! Prometheus metrics of runs: queue wait, time to the first text, duration and outcome on this
//! node, recoveries, missed events, and the load of the queue.

use std::sync::atomic::AtomicU64;

use base::clock::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::runs::reading::history::QueueLoad;
use crate::runs::store::run;

/// Seconds from due to claimed: milliseconds after a wake-up signal, or as long as the models take
/// on a node without free permits.
const WAIT_BUCKETS: [f64; 10] = [0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 2.0, 10.0, 60.0, 300.0];

/// Seconds until the first text, and until the end of a run.
const DURATION_BUCKETS: [f64; 12] = [
    0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0,
];

/// The metrics of the runs module. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct RunMetrics {
    ended: Family<RunEndLabel, Counter>,
    queue_wait: Histogram,
    first_delta: Histogram,
    duration: Family<EndLabel, Histogram, fn() -> Histogram>,
    recoveries: Family<RecoveryLabel, Counter>,
    /// How often subscribers of a conversation had missed an event of another node.
    pub missed_events: Counter,
    /// 1 if the queue could be queried, else 0.
    database_up: Gauge,
    queued: Gauge<f64, AtomicU64>,
    running: Gauge<f64, AtomicU64>,
    oldest: Gauge<f64, AtomicU64>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RunEndLabel {
    kind: String,
    outcome: String,
    /// The code of a failure; empty for every other outcome.
    error: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct EndLabel {
    outcome: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RecoveryLabel {
    what: &'static str,
}

impl Default for RunMetrics {
    fn default() -> Self {
        Self {
            missed_events: Counter::default(),
            ended: Family::default(),
            queue_wait: Histogram::new(WAIT_BUCKETS),
            first_delta: Histogram::new(DURATION_BUCKETS),
            duration: Family::new_with_constructor(|| Histogram::new(DURATION_BUCKETS)),
            recoveries: Family::default(),
            database_up: Gauge::default(),
            queued: Gauge::default(),
            running: Gauge::default(),
            oldest: Gauge::default(),
        }
    }
}

impl RunMetrics {
    /// Registers the metrics.
    pub fn register(&self, to: &mut Registry) {
        to.register("runs_ended", "Runs that ended here", self.ended.clone());
        to.register(
            "run_wait_seconds",
            "Time from due to claimed",
            self.queue_wait.clone(),
        );
        to.register(
            "run_first_delta_seconds",
            "Time from the claim to the first text",
            self.first_delta.clone(),
        );
        to.register(
            "run_duration_seconds",
            "Time from the claim to the end",
            self.duration.clone(),
        );
        to.register(
            "reaped",
            "Runs, rounds and jobs that this node recovered",
            self.recoveries.clone(),
        );
        to.register(
            "listeners_behind",
            "How often subscribers of a conversation had missed an event of another node",
            self.missed_events.clone(),
        );
        self.register_load(to);
    }

    fn register_load(&self, to: &mut Registry) {
        let up = "Whether the queue could be read from the database";
        to.register("database_up", up, self.database_up.clone());
        let queued = "Queued runs, on all nodes together";
        to.register("runs_queued", queued, self.queued.clone());
        let running = "Running runs, on all nodes together";
        to.register("runs_running", running, self.running.clone());
        let oldest = "Age of the oldest queued run; 0 if none is queued";
        to.register("runs_oldest_queued_seconds", oldest, self.oldest.clone());
    }

    /// Records that a run was claimed.
    pub fn claimed(&self, run: &run::Model) {
        self.queue_wait.observe(seconds(run.queue_wait_ms()));
    }

    /// Records that a claimed run wrote its first text.
    pub fn first_token(&self, run: &run::Model, now: Timestamp) {
        if let Some(began) = run.started_at {
            self.first_delta.observe(seconds(now.ms_since(began)));
        }
    }

    /// Records the end of a run.
    pub fn ended(&self, run: &run::Model) {
        let code = run.error.as_ref().map(|it| it.code.clone());
        let ended = RunEndLabel {
            kind: run.kind.word(),
            outcome: run.status.word(),
            error: code.unwrap_or_default(),
        };
        self.ended.get_or_create(&ended).inc();
        if let (Some(began), Some(ended)) = (run.started_at, run.finished_at) {
            let outcome = run.status.word();
            let took = seconds(ended.ms_since(began));
            self.duration
                .get_or_create(&EndLabel { outcome })
                .observe(took);
        }
    }

    /// Records how much of each kind one sweep of the reaper recovered.
    pub fn recovered(&self, counts: impl IntoIterator<Item = (&'static str, u32)>) {
        for (what, n) in counts {
            self.recoveries
                .get_or_create(&RecoveryLabel { what })
                .inc_by(u64::from(n));
        }
    }

    /// Records the current length of the queue; `None`: the database could not be queried.
    pub fn queue_depths(&self, load: Option<QueueLoad>, now: Timestamp) {
        self.database_up.set(i64::from(load.is_some()));
        let age = |it: QueueLoad| it.oldest_queued_at.map_or(0, |at| now.ms_since(at));
        let figures = load.map(|it| (it.n_queued as f64, it.n_running as f64, seconds(age(it))));
        // NaN for an unknown value: the previous one would be wrong.
        let (queued, running, oldest) = figures.unwrap_or((f64::NAN, f64::NAN, f64::NAN));
        self.queued.set(queued);
        self.running.set(running);
        self.oldest.set(oldest);
    }
}

/// Converts to seconds. Negative durations, after a clock was set back, count as 0.
fn seconds(ms: i64) -> f64 {
    ms.max(0) as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;

    use super::RunMetrics;
    use crate::runs::execution::recovery::RecoveryReport;
    use crate::runs::reading::history::QueueLoad;

    fn encode_metrics(meter: &RunMetrics) -> String {
        let mut registry = Registry::default();
        meter.register(&mut registry);
        let mut all = String::new();
        text::encode(&mut all, &registry).unwrap();
        all
    }

    #[test]
    fn recoveries_are_added_up() {
        let meter = RunMetrics::default();
        let report = RecoveryReport {
            failed: 2,
            requeued: 1,
            turns_skipped: 0,
            rounds_closed: 0,
            jobs_continued: 0,
        };

        meter.recovered(report.counts());
        meter.recovered(report.counts());

        let encoded = encode_metrics(&meter);
        assert!(
            encoded.contains("reaped_total{what=\"failed\"} 4\n"),
            "{encoded}"
        );
        assert!(
            encoded.contains("reaped_total{what=\"requeued\"} 2\n"),
            "{encoded}"
        );
        assert!(
            encoded.contains("reaped_total{what=\"round_closed\"} 0\n"),
            "{encoded}"
        );
    }

    #[test]
    fn an_unknown_load_is_reported_as_nan() {
        let meter = RunMetrics::default();
        let load = QueueLoad {
            n_queued: 3,
            n_running: 2,
            oldest_queued_at: Some(Timestamp(1_000)),
        };

        meter.queue_depths(Some(load), Timestamp(3_500));
        let known = encode_metrics(&meter);
        meter.queue_depths(None, Timestamp(4_000));
        let unknown = encode_metrics(&meter);

        assert!(known.contains("\ndatabase_up 1\n"), "{known}");
        assert!(known.contains("\nruns_queued 3.0\n"), "{known}");
        assert!(
            known.contains("\nruns_oldest_queued_seconds 2.5\n"),
            "{known}"
        );
        assert!(unknown.contains("\ndatabase_up 0\n"), "{unknown}");
        assert!(unknown.contains("\nruns_running NaN\n"), "{unknown}");
    }
}
