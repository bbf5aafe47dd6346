//! What time it is: the one place that asks, so that tests can set and advance it.
//!
//! Instants are whole milliseconds since 1970, in the program and in the database: text forms of
//! a time do not compare on SQLite, and PostgreSQL keeps fewer digits than chrono.

use chrono::DateTime;
use chrono::SecondsFormat;
use chrono::Utc;
use sea_orm::DeriveValueType;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use std::fmt;
use std::time::Duration;
use tokio::sync::watch;
use utoipa::ToSchema;

/// An instant in milliseconds since 1970, UTC; in JSON RFC 3339 with milliseconds and `Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, DeriveValueType, ToSchema)]
#[schema(value_type = String, format = DateTime)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This instant, later by so many milliseconds.
    pub fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// This instant, later by a duration.
    pub fn plus(self, duration: Duration) -> Self {
        self.plus_ms(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
    }

    /// Milliseconds from an earlier instant to this one.
    pub fn ms_since(self, earlier: Timestamp) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The calendar's view of this instant.
    pub fn utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0).unwrap_or(DateTime::<Utc>::UNIX_EPOCH)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.utc().to_rfc3339_opts(SecondsFormat::Millis, true))
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

/// Tells the time. Cloning gives another handle on the same clock.
#[derive(Clone)]
pub enum Clock {
    /// The machine's.
    System,
    /// A test's: stands still until it is advanced.
    Manual(watch::Sender<i64>),
}

impl Clock {
    /// A clock that stands at the present instant until [`Clock::advance_ms`].
    pub fn manual() -> Self {
        Self::Manual(watch::Sender::new(Utc::now().timestamp_millis()))
    }

    /// The present instant.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp(Utc::now().timestamp_millis()),
            Self::Manual(time) => Timestamp(*time.borrow()),
        }
    }

    /// Moves a manual clock forward; the machine's clock is left alone.
    pub fn advance_ms(&self, ms: i64) {
        if let Self::Manual(time) = self {
            time.send_modify(|now| *now += ms);
        }
    }

    /// Returns when this clock shows `instant` or later.
    pub async fn until(&self, instant: Timestamp) {
        match self {
            Self::System => {
                // Once more after waking: the machine's clock may have been set back meanwhile.
                while let Ok(ms @ 1..) = u64::try_from(instant.ms_since(self.now())) {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                }
            }
            Self::Manual(time) => {
                let mut seen = time.subscribe();
                // An error would mean that the clock is gone, and we hold it.
                let _ = seen.wait_for(|now| *now >= instant.0).await;
            }
        }
    }
}
