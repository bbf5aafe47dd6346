//! All figures of this process, written down for whoever asks.
//!
//! **Invariant:** a label takes its words out of a list that the program knows: no name, no id and
//! no text of anybody, so that neither content nor memory leaks this way.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::telemetry::process_metrics::ProcessMetrics;
use crate::telemetry::request_metrics::RequestMetrics;

/// How the text is to be read.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The meters of all rooms. Made once, with the parts of the house.
pub struct MetricsRegistry {
    /// What doors are asked; counted here, as no room below the doors knows them.
    pub requests: RequestMetrics,
    registry: Registry,
}

impl MetricsRegistry {
    /// Gathers the meters that `rooms` registers, beside those of the process itself.
    pub fn gather(started_at_ms: i64, register_modules: impl FnOnce(&mut Registry)) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(ProcessMetrics { started_at_ms }));
        let ours = registry.sub_registry_with_prefix("troupe");
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        ours.register("build", "The program that runs", version);
        let requests = RequestMetrics::default();
        requests.register(ours);
        register_modules(ours);
        Self { requests, registry }
    }

    /// All figures as they are now, as OpenMetrics text.
    ///
    /// # Errors
    /// When a figure cannot be written, which only a bug could cause.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut all = String::new();
        text::encode(&mut all, &self.registry)?;
        Ok(all)
    }
}

/// A figure that nobody keeps: it is looked up each time somebody asks.
pub struct GaugeFn<F> {
    name: &'static str,
    help: &'static str,
    read_value: F,
}

impl<F: Fn() -> usize + Send + Sync + 'static> GaugeFn<F> {
    /// The figure that `look` finds. `look` must be quick.
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
