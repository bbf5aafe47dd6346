//! Reports memory, open files and start time of the process as metrics, and reads how many files it
//! may have open.
//!
//! The names are the standard Prometheus names for process metrics. Without `/proc`, only the start
//! time is reported.

use std::{fmt, fs};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;

/// Collector that reads the values at each scrape.
#[derive(Debug)]
pub struct ProcessMetrics {
    /// Start time in milliseconds since 1970.
    pub started_at_ms: i64,
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let mut encode_gauge = |name, help, figure: f64| {
            let figure = ConstGauge::new(figure);
            let kind = figure.metric_type();
            figure.encode(encoder.encode_descriptor(name, help, None, kind)?)
        };
        if let Some(bytes) = resident_bytes() {
            let help = "Resident memory size in bytes.";
            encode_gauge("process_resident_memory_bytes", help, bytes as f64)?;
        }
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            // The directory handle of this read is open, too.
            let n = open.count().saturating_sub(1);
            encode_gauge("process_open_fds", "Open files and sockets.", n as f64)?;
        }
        let seconds = self.started_at_ms as f64 / 1000.0;
        let help = "Start time of the process in seconds since 1970.";
        encode_gauge("process_start_time_seconds", help, seconds)
    }
}

/// Returns how many files and sockets this process may have open, if the system reports that.
pub fn max_open_files() -> Option<usize> {
    parse_max_open_files(&fs::read_to_string("/proc/self/limits").ok()?)
}

/// Parses the soft limit in a line such as `Max open files            1024                 4096
/// files`.
fn parse_max_open_files(limits: &str) -> Option<usize> {
    let line = limits
        .lines()
        .find_map(|it| it.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn resident_bytes() -> Option<u64> {
    parse_kib("VmRSS:", &fs::read_to_string("/proc/self/status").ok()?).map(|it| it * 1024)
}

/// Parses a line such as `VmRSS:    5432 kB`.
fn parse_kib(name: &str, status: &str) -> Option<u64> {
    let line = status.lines().find_map(|it| it.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{parse_kib, parse_max_open_files};

    #[test]
    fn the_soft_limit_of_open_files_is_read_from_its_line() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
            Max processes             95883                95883                processes\n\
            Max open files            256                  4096                 files\n";

        assert_eq!(parse_max_open_files(limits), Some(256));
        assert_eq!(
            parse_max_open_files("Max open files   unlimited  unlimited  files\n"),
            None
        );
    }

    #[test]
    fn memory_is_read_from_its_line() {
        let status = "Name:\ttroupe\nVmHWM:\t   9999 kB\nVmRSS:\t    5432 kB\nThreads:\t9\n";

        assert_eq!(parse_kib("VmRSS:", status), Some(5432));
        assert_eq!(parse_kib("VmSwap:", status), None);
    }
}
