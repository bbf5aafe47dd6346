//! Prometheus metrics of the connection pools: busy and idle connections, and how long writing
//! transactions wait for a connection.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use sea_orm::DatabaseConnection;

use crate::db::backend::Backend;

/// Seconds. An idle connection is available immediately; longer times show the queue of writers.
const BUCKETS: [f64; 11] = [
    0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0,
];

/// The metrics measured while the database is used.
#[derive(Clone)]
pub struct DbMetrics {
    write_wait: Histogram,
}

impl Default for DbMetrics {
    fn default() -> Self {
        Self {
            write_wait: Histogram::new(BUCKETS),
        }
    }
}

impl DbMetrics {
    /// Records how long a writing transaction waited until it began.
    pub(super) fn record_wait(&self, time: Duration) {
        self.write_wait.observe(time.as_secs_f64());
    }

    /// Registers the metrics, and the gauges of these pools, each with its label.
    pub(super) fn register(
        &self,
        registry: &mut Registry,
        backend: Backend,
        pools: Vec<(&'static str, DatabaseConnection)>,
    ) {
        registry.register(
            "database_write_wait_seconds",
            "Time until a writing transaction has a connection and has begun",
            self.write_wait.clone(),
        );
        registry.register_collector(Box::new(PoolGauges { backend, pools }));
    }
}

/// Gauges of the pools, read on each scrape.
#[derive(Debug)]
struct PoolGauges {
    backend: Backend,
    pools: Vec<(&'static str, DatabaseConnection)>,
}

impl Collector for PoolGauges {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let (name, help) = ("database_connections", "Open connections");
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (pool, connection) in &self.pools {
            let (n_open, n_idle) = connection_counts(self.backend, connection);
            for (state, n) in count_by_state(n_open, n_idle) {
                let labels = [("pool", *pool), ("state", state)];
                let one = family.encode_family(&labels)?;
                ConstGauge::new(n).encode(one)?;
            }
        }
        Ok(())
    }
}

/// Returns the number of open connections and how many of them are idle.
fn connection_counts(backend: Backend, pool: &DatabaseConnection) -> (usize, usize) {
    let (n_open, n_idle) = match backend {
        Backend::Sqlite => {
            let pool = pool.get_sqlite_connection_pool();
            (pool.size(), pool.num_idle())
        }
        Backend::Postgres => {
            let pool = pool.get_postgres_connection_pool();
            (pool.size(), pool.num_idle())
        }
    };
    (n_open as usize, n_idle)
}

/// Returns the connections by state. While a connection is being returned, the pool may briefly
/// count less than zero idle ones, which as an unsigned number is huge.
fn count_by_state(n_open: usize, n_idle: usize) -> [(&'static str, usize); 2] {
    let n_idle = n_idle.min(n_open);
    [("busy", n_open - n_idle), ("idle", n_idle)]
}

#[cfg(test)]
mod tests {
    use super::count_by_state;

    #[test]
    fn no_more_connections_are_reported_than_are_open() {
        assert_eq!(count_by_state(5, 2), [("busy", 3), ("idle", 2)]);
        assert_eq!(count_by_state(5, 0), [("busy", 5), ("idle", 0)]);
        assert_eq!(count_by_state(5, usize::MAX), [("busy", 0), ("idle", 5)]);
    }
}
