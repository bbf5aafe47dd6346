//! Metrics of the calls of programs that ended on this node.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::responses::telemetry::call_log::CallLog;

/// In seconds: an embedding needs milliseconds, an answer with tools may need minutes.
const BUCKETS: [f64; 11] = [
    0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 180.0, 600.0,
];

/// All label values come from fixed lists.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallLabels {
    surface: &'static str,
    model_kind: &'static str,
    status: String,
}

/// Calls by surface, kind of the model, and final status. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct CallMetrics {
    durations: Family<CallLabels, Histogram, fn() -> Histogram>,
    input_tokens: Family<CallLabels, Counter>,
    output_tokens: Family<CallLabels, Counter>,
}

impl Default for CallMetrics {
    fn default() -> Self {
        Self {
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            input_tokens: Family::default(),
            output_tokens: Family::default(),
        }
    }
}

impl CallMetrics {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "v1_call_duration_seconds",
            "Duration of the calls of programs, from the start of their execution to their end",
            self.durations.clone(),
        );
        registry.register(
            "v1_call_input_tokens",
            "Input tokens of the calls of programs, counted when a call ends",
            self.input_tokens.clone(),
        );
        registry.register(
            "v1_call_output_tokens",
            "Output tokens of the calls of programs, counted when a call ends",
            self.output_tokens.clone(),
        );
    }

    /// Writes the log line of a call and records its metrics. Call it once, when the call has ended.
    pub fn end(&self, call: &CallLog<'_>) {
        call.write();
        let labels = CallLabels {
            surface: call.surface.label(),
            model_kind: model_kind(call),
            status: call.status.to_owned(),
        };
        let count = |tokens: Option<i64>| u64::try_from(tokens.unwrap_or(0)).unwrap_or(0);
        let ms = u64::try_from(call.duration_ms.unwrap_or(0)).unwrap_or(0);
        let duration = Duration::from_millis(ms);
        self.durations
            .get_or_create(&labels)
            .observe(duration.as_secs_f64());
        self.input_tokens
            .get_or_create(&labels)
            .inc_by(count(call.input_tokens));
        self.output_tokens
            .get_or_create(&labels)
            .inc_by(count(call.output_tokens));
    }
}

/// Returns the kind of the model, as `GET /v1/models` lists it.
fn model_kind(call: &CallLog<'_>) -> &'static str {
    match call.model {
        _ if call.surface.is_embeddings() => "embedding",
        name if name.starts_with("character:") => "character",
        name if name.starts_with("space:") => "space",
        _ => "model",
    }
}
