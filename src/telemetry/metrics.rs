//! Collects the metrics of all modules of this process in one registry and encodes them as
//! OpenMetrics text; also defines [`GaugeFn`], a gauge whose value is read at each scrape.
//!
//! **Invariant:** label values come from lists that are fixed in the program, never from names, ids
//! or user text, so that metrics neither leak content nor grow without bound.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::telemetry::process_metrics::ProcessMetrics;
use crate::telemetry::request_metrics::RequestMetrics;

/// The media type of the encoded metrics.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of all modules. Created once, with the application.
pub struct MetricsRegistry {
    /// HTTP requests; kept here because no module below the HTTP layer records them.
    pub requests: RequestMetrics,
    registry: Registry,
}

impl MetricsRegistry {
    /// Registers the process metrics and those that `register_modules` adds.
    pub fn gather(started_at_ms: i64, register_modules: impl FnOnce(&mut Registry)) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(ProcessMetrics { started_at_ms }));
        let ours = registry.sub_registry_with_prefix("troupe");
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        ours.register("build", "Version of the running program", version);
        let requests = RequestMetrics::default();
        requests.register(ours);
        register_modules(ours);
        Self { requests, registry }
    }

    /// Returns the current metrics as OpenMetrics text.
    ///
    /// # Errors
    /// Returns an error when a metric cannot be encoded, which only a bug can cause.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut all = String::new();
        text::encode(&mut all, &self.registry)?;
        Ok(all)
    }
}

/// A gauge without stored state: its value is read at each scrape.
pub struct GaugeFn<F> {
    name: &'static str,
    help: &'static str,
    read_value: F,
}

impl<F: Fn() -> usize + Send + Sync + 'static> GaugeFn<F> {
    /// Creates a gauge whose value `read_value` returns. `read_value` must be quick.
    pub fn new(name: &'static str, help: &'static str, read_value: F) -> Box<Self> {
        Box::new(Self {
            name,
            help,
            read_value,
        })
    }
}

impl<F> fmt::Debug for GaugeFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<F: Fn() -> usize + Send + Sync + 'static> Collector for GaugeFn<F> {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let figure = ConstGauge::new((self.read_value)());
        let kind = figure.metric_type();
        figure.encode(encoder.encode_descriptor(self.name, self.help, None, kind)?)
    }
}

#[cfg(test)]
mod tests {
    use super::{GaugeFn, MetricsRegistry};

    #[test]
    fn a_gauge_function_is_read_at_each_scrape() {
        let n = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(1));
        let own = n.clone();
        let read_value = move || own.load(std::sync::atomic::Ordering::Relaxed);
        let metrics = MetricsRegistry::gather(0, |it| {
            it.register_collector(GaugeFn::new("things", "Things", read_value));
        });

        n.store(7, std::sync::atomic::Ordering::Relaxed);

        let text = metrics.text().unwrap();
        assert!(text.contains("\ntroupe_things 7\n"), "{text}");
        assert!(text.ends_with("# EOF\n"));
    }
}
