//! Defines `Clock`, the only code that reads the machine's date and time, and `Timestamp`, which it
//! returns. The clock adds an offset, for which a caller queries the database's time; tests can use
//! a clock that moves only when they advance it.
//!
//! **Invariant:** with PostgreSQL all nodes use the database's time: each node measures the offset
//! of its own clock and adds it to every timestamp. A node whose last measurement is older than the
//! stale time is not ready.
//!
//! Timestamps are whole milliseconds since 1970, in the program and in the database: SQLite would
//! compare times as text, and PostgreSQL keeps fewer digits than chrono.

use std::fmt;
use std::time::{Duration, Instant};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tokio::sync::watch;
use utoipa::ToSchema;

/// A point in time in milliseconds since 1970, UTC; in JSON RFC 3339 with milliseconds and `Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ToSchema)]
#[cfg_attr(feature = "sea-orm", derive(sea_orm::DeriveValueType))]
#[schema(value_type = String, format = DateTime)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns this time plus `ms` milliseconds.
    pub fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Returns this time plus `duration`.
    pub fn plus(self, duration: Duration) -> Self {
        self.plus_ms(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
    }

    /// Returns the milliseconds from `earlier` to this time.
    pub fn ms_since(self, earlier: Timestamp) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Converts to a calendar date and time.
    pub fn to_utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0).unwrap_or(DateTime::<Utc>::UNIX_EPOCH)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_utc().to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let at = DateTime::<Utc>::deserialize(deserializer)?;
        Ok(Self(at.timestamp_millis()))
    }
}

/// Returns the current time. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct Clock {
    source: ClockSource,
    /// Added to the machine's clock.
    offset: watch::Sender<ClockOffset>,
}

#[derive(Clone)]
enum ClockSource {
    /// The machine's clock; a test may make it wrong by this many milliseconds.
    System(i64),
    /// A test's clock: it only moves when it is advanced.
    Manual(watch::Sender<i64>),
}

#[derive(Clone, Copy, Debug, Default)]
struct ClockOffset {
    ms: i64,
    measured_at: Option<Instant>,
}

/// A started query of the database's time.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    asked_at: Instant,
    /// The machine's time when the query started.
    machine_time: Timestamp,
}

/// A measurement with a longer round trip is too inexact.
pub const MAX_ROUND_TRIP: Duration = Duration::from_secs(1);

impl Clock {
    /// Returns the machine's clock.
    pub fn system() -> Self {
        Self::system_with_offset(0)
    }

    /// Returns the machine's clock, wrong by `ms` milliseconds.
    pub fn system_with_offset(ms: i64) -> Self {
        Self::from_source(ClockSource::System(ms))
    }

    /// Returns a clock that stays at the current time until [`Clock::advance_ms`].
    pub fn manual() -> Self {
        Self::manual_at(Timestamp(Utc::now().timestamp_millis()))
    }

    /// Returns a clock that stays at `instant` until [`Clock::advance_ms`].
    pub fn manual_at(instant: Timestamp) -> Self {
        Self::from_source(ClockSource::Manual(watch::Sender::new(instant.0)))
    }

    fn from_source(source: ClockSource) -> Self {
        let offset = watch::Sender::new(ClockOffset::default());
        Self { source, offset }
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.machine_time().plus_ms(self.offset.borrow().ms)
    }

    fn machine_time(&self) -> Timestamp {
        match &self.source {
            ClockSource::System(off_by) => Timestamp(Utc::now().timestamp_millis() + off_by),
            ClockSource::Manual(time) => Timestamp(*time.borrow()),
        }
    }

    /// Starts to measure the offset. Returns `None` for a manual clock, which tests set.
    pub fn begin_measurement(&self) -> Option<Measurement> {
        match self.source {
            ClockSource::System(_) => Some(Measurement {
                asked_at: Instant::now(),
                machine_time: self.machine_time(),
            }),
            ClockSource::Manual(_) => None,
        }
    }

    /// Sets the offset to the database's time. Returns false and changes nothing if the round trip
    /// was longer than [`MAX_ROUND_TRIP`].
    pub fn finish_measurement(&self, measurement: Measurement, database_time: Timestamp) -> bool {
        let measured = offset_ms(
            measurement.machine_time,
            database_time,
            measurement.asked_at.elapsed(),
        );
        if let Some(ms) = measured {
            let measured_at = Some(measurement.asked_at);
            self.offset.send_replace(ClockOffset { ms, measured_at });
        }
        measured.is_some()
    }

    /// Returns whether the offset was measured within `time`. A manual clock always counts as
    /// measured.
    pub fn is_measured_within(&self, time: Duration) -> bool {
        let at = self.offset.borrow().measured_at;
        matches!(self.source, ClockSource::Manual(_)) || at.is_some_and(|at| at.elapsed() < time)
    }

    /// Moves a manual clock forward; the machine's clock does not change.
    pub fn advance_ms(&self, ms: i64) {
        if let ClockSource::Manual(time) = &self.source {
            time.send_modify(|now| *now += ms);
        }
    }

    /// Returns when this clock reaches `instant`.
    pub async fn sleep_until(&self, instant: Timestamp) {
        match &self.source {
            ClockSource::System(_) => {
                let mut offset = self.offset.subscribe();
                // Checks again after each sleep: the machine's clock may have been set back
                // meanwhile.
                while let Ok(ms @ 1..) = u64::try_from(instant.ms_since(self.now())) {
                    tokio::select! {
                        () = tokio::time::sleep(Duration::from_millis(ms)) => {}
                        _ = offset.changed() => {}
                    }
                }
            }
            ClockSource::Manual(time) => {
                let mut manual_time = time.subscribe();
                // Fails only if the sender is dropped, and `self` holds it.
                let _ = manual_time.wait_for(|now| *now >= instant.0).await;
            }
        }
    }
}

/// Returns the milliseconds that the machine's clock is behind the database's, which read its time
/// about half a round trip after the query was sent.
fn offset_ms(
    machine_time: Timestamp,
    database_time: Timestamp,
    round_trip: Duration,
) -> Option<i64> {
    let is_exact = round_trip <= MAX_ROUND_TRIP;
    is_exact.then(|| database_time.ms_since(machine_time.plus(round_trip / 2)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Clock, Timestamp, offset_ms};

    #[test]
    fn the_offset_is_measured_from_the_middle_of_the_round_trip() {
        let (machine_time, database_time) = (Timestamp(1_000), Timestamp(41_100));
        let offset = |ms| offset_ms(machine_time, database_time, Duration::from_millis(ms));

        assert_eq!(offset(200), Some(40_000));
        assert_eq!(offset(1_000), Some(39_600));
        assert_eq!(offset(1_001), None, "too slow to be exact");
    }

    #[test]
    fn a_wrong_clock_is_corrected_by_a_measurement() {
        let (right, wrong) = (Clock::system(), Clock::system_with_offset(-40_000));
        assert!(!wrong.is_measured_within(Duration::from_secs(30)));
        assert!(right.now().ms_since(wrong.now()) > 30_000);

        let measurement = wrong.begin_measurement().expect("it is not a manual clock");
        assert!(wrong.finish_measurement(measurement, right.now()));

        assert!(wrong.is_measured_within(Duration::from_secs(30)));
        assert!(right.now().ms_since(wrong.now()).abs() < 10_000);
    }
}
