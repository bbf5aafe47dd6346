//! How runs fare on this node: how long they wait, how soon they speak, how they end.

use crate::clock::Timestamp;
use crate::runs::ledger::Load;
use crate::runs::reaper::Report;
use crate::runs::run;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;

/// Seconds from being due to being claimed: a bell is heard within milliseconds, a full node takes
/// as long as its models.
const WAITS: [f64; 10] = [0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 2.0, 10.0, 60.0, 300.0];

/// Seconds until a model speaks, and until it has spoken.
const TALKS: [f64; 12] = [
    0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0,
];

/// The figures of an engine room. Cloning gives another handle on the same ones.
#[derive(Clone)]
pub struct Meter {
    ended: Family<Ended, Counter>,
    waited: Histogram,
    first_delta: Histogram,
    took: Family<Outcome, Histogram, fn() -> Histogram>,
    reaped: Family<Reaped, Counter>,
    /// Conversations whose listeners missed something that another node said.
    pub behind: Counter,
    /// 1 while the database tells what waits and runs.
    answers: Gauge,
    queued: Gauge<f64, AtomicU64>,
    running: Gauge<f64, AtomicU64>,
    oldest: Gauge<f64, AtomicU64>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Ended {
    kind: String,
    outcome: String,
    /// The code of a failure; empty for every other end.
    error: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Outcome {
    outcome: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Reaped {
    what: &'static str,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            behind: Counter::default(),
            ended: Family::default(),
            waited: Histogram::new(WAITS),
            first_delta: Histogram::new(TALKS),
            took: Family::new_with_constructor(|| Histogram::new(TALKS)),
            reaped: Family::default(),
            answers: Gauge::default(),
            queued: Gauge::default(),
            running: Gauge::default(),
            oldest: Gauge::default(),
        }
    }
}

impl Meter {
    /// Makes the figures known.
    pub fn register(&self, to: &mut Registry) {
        to.register("runs_ended", "Runs that ended here", self.ended.clone());
        to.register(
            "run_wait_seconds",
            "From being due to being claimed",
            self.waited.clone(),
        );
        to.register(
            "run_first_delta_seconds",
            "From the claim to the first piece of text",
            self.first_delta.clone(),
        );
        to.register(
            "run_duration_seconds",
            "From the claim to the end",
            self.took.clone(),
        );
        to.register(
            "reaped",
            "What the reaper of this node healed",
            self.reaped.clone(),
        );
        to.register(
            "listeners_behind",
            "How often listeners of a conversation had missed what another node said",
            self.behind.clone(),
        );
        self.register_load(to);
    }

    fn register_load(&self, to: &mut Registry) {
        let up = "Whether the database told what waits and runs";
        to.register("database_up", up, self.answers.clone());
        let queued = "Runs that wait, on all nodes together";
        to.register("runs_queued", queued, self.queued.clone());
        let running = "Runs that are executed, on all nodes together";
        to.register("runs_running", running, self.running.clone());
        let oldest = "How long ago the run that waits longest was planned; 0 when none waits";
        to.register("runs_oldest_queued_seconds", oldest, self.oldest.clone());
    }

    /// A run was claimed.
    pub fn claimed(&self, run: &run::Model) {
        self.waited.observe(seconds(run.waited_ms()));
    }

    /// A claimed run wrote its first piece of text.
    pub fn spoke(&self, run: &run::Model, now: Timestamp) {
        if let Some(began) = run.started_at {
            self.first_delta.observe(seconds(now.ms_since(began)));
        }
    }

    /// A run came to an end.
    pub fn ended(&self, run: &run::Model) {
        let code = run.error.as_ref().map(|it| it.code.clone());
        let ended = Ended {
            kind: run.kind.word(),
            outcome: run.status.word(),
            error: code.unwrap_or_default(),
        };
        self.ended.get_or_create(&ended).inc();
        if let (Some(began), Some(ended)) = (run.started_at, run.finished_at) {
            let outcome = run.status.word();
            let took = seconds(ended.ms_since(began));
            self.took.get_or_create(&Outcome { outcome }).observe(took);
        }
    }

    /// A sweep healed something, or nothing.
    pub fn swept(&self, report: &Report) {
        for (what, n) in [
            ("failed", report.failed),
            ("requeued", report.requeued),
            ("round_closed", report.rounds_closed),
            ("job_continued", report.jobs_continued),
        ] {
            self.reaped
                .get_or_create(&Reaped { what })
                .inc_by(u64::from(n));
        }
    }

    /// What waits and runs at this instant; `None`: the database does not tell.
    pub fn look(&self, load: Option<Load>, now: Timestamp) {
        self.answers.set(i64::from(load.is_some()));
        let age = |it: Load| it.oldest_queued_at.map_or(0, |at| now.ms_since(at));
        let figures = load.map(|it| (it.n_queued as f64, it.n_running as f64, seconds(age(it))));
        // A figure that nobody knows is none; an old one would be a lie.
        let (queued, running, oldest) = figures.unwrap_or((f64::NAN, f64::NAN, f64::NAN));
        self.queued.set(queued);
        self.running.set(running);
        self.oldest.set(oldest);
    }
}

/// Clocks may be set back in between: no time is less than none.
fn seconds(ms: i64) -> f64 {
    ms.max(0) as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::Meter;
    use crate::clock::Timestamp;
    use crate::runs::ledger::Load;
    use crate::runs::reaper::Report;
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;

    fn told(meter: &Meter) -> String {
        let mut registry = Registry::default();
        meter.register(&mut registry);
        let mut all = String::new();
        text::encode(&mut all, &registry).unwrap();
        all
    }

    #[test]
    fn what_was_healed_is_added_up() {
        let meter = Meter::default();
        let report = Report {
            failed: 2,
            requeued: 1,
            rounds_closed: 0,
            jobs_continued: 0,
        };

        meter.swept(&report);
        meter.swept(&report);

        let told = told(&meter);
        assert!(told.contains("reaped_total{what=\"failed\"} 4\n"), "{told}");
        assert!(
            told.contains("reaped_total{what=\"requeued\"} 2\n"),
            "{told}"
        );
        assert!(
            told.contains("reaped_total{what=\"round_closed\"} 0\n"),
            "{told}"
        );
    }

    #[test]
    fn what_nobody_knows_is_no_number() {
        let meter = Meter::default();
        let load = Load {
            n_queued: 3,
            n_running: 2,
            oldest_queued_at: Some(Timestamp(1_000)),
        };

        meter.look(Some(load), Timestamp(3_500));
        let known = told(&meter);
        meter.look(None, Timestamp(4_000));
        let unknown = told(&meter);

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
