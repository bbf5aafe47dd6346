//! All figures of this process, written down for whoever asks.
//!
//! **Invariant:** a label takes its words out of a list that the program knows: no name, no id and
//! no text of anybody, so that neither content nor memory leaks this way.

use crate::telemetry::process::Process;
use crate::telemetry::requests::Requests;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::EncodeMetric;
use prometheus_client::encoding::text;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::fmt;

/// How the text is to be read.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The meters of all rooms. Made once, with the parts of the house.
pub struct Metrics {
    /// What doors are asked; counted here, as no room below the doors knows them.
    pub requests: Requests,
    registry: Registry,
}

impl Metrics {
    /// Gathers the meters that `rooms` registers, beside those of the process itself.
    pub fn gather(started_at_ms: i64, rooms: impl FnOnce(&mut Registry)) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process { started_at_ms }));
        let ours = registry.sub_registry_with_prefix("troupe");
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        ours.register("build", "The program that runs", version);
        let requests = Requests::default();
        requests.register(ours);
        rooms(ours);
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
pub struct Looked<F> {
    name: &'static str,
    help: &'static str,
    look: F,
}

impl<F: Fn() -> usize + Send + Sync + 'static> Looked<F> {
    /// The figure that `look` finds. `look` must be quick.
    pub fn up(name: &'static str, help: &'static str, look: F) -> Box<Self> {
        Box::new(Self { name, help, look })
    }
}

impl<F> fmt::Debug for Looked<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<F: Fn() -> usize + Send + Sync + 'static> Collector for Looked<F> {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let figure = ConstGauge::new((self.look)());
        let kind = figure.metric_type();
        figure.encode(encoder.encode_descriptor(self.name, self.help, None, kind)?)
    }
}

#[cfg(test)]
mod tests {
    use super::Looked;
    use super::Metrics;

    #[test]
    fn what_is_looked_up_is_as_it_is_when_somebody_asks() {
        let n = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(1));
        let own = n.clone();
        let look = move || own.load(std::sync::atomic::Ordering::Relaxed);
        let metrics = Metrics::gather(0, |it| {
            it.register_collector(Looked::up("things", "Things", look));
        });

        n.store(7, std::sync::atomic::Ordering::Relaxed);

        let text = metrics.text().unwrap();
        assert!(text.contains("\ntroupe_things 7\n"), "{text}");
        assert!(text.ends_with("# EOF\n"));
    }
}
