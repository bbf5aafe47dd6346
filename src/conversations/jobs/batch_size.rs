//! Queries which range of messages a background job processes in its next batch, by the size of
//! their texts. The limit, `BatchSize`, adapts to the duration of the last batch.
//!
//! The number of rows alone would not limit the duration, because writing one long text is as slow
//! as writing many short ones.

use std::time::Duration;

use base::ids::ConversationId;
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult, Statement};

use crate::db::backend::Backend;

/// Target duration of a batch: a fraction of the 100 ms for which it may hold its locks. On SQLite
/// all other writes wait for it.
const SQLITE_TARGET: Duration = Duration::from_millis(2);
/// On PostgreSQL only writes to the same conversation wait.
const POSTGRES_TARGET: Duration = Duration::from_millis(25);
/// The cost of a row in addition to its text, in bytes of text.
const ROW_COST: i64 = 300;
/// The cost of the first batch, before any duration is known.
const INITIAL_COST: i64 = 16 * 1024;
/// Limits of the cost of a batch.
const MIN_COST: i64 = 4 * 1024;
const MAX_COST: i64 = 1024 * 1024;
/// Maximum number of rows in a batch.
const MAX_ROWS: i64 = 2_000;

/// The size of the next batch, as a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSize {
    cost: i64,
}

/// A range of a timeline that is processed as one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRange {
    /// The `seq` of its last message.
    pub last_seq: i64,
    pub n_messages: i64,
}

impl Default for BatchSize {
    fn default() -> Self {
        Self { cost: INITIAL_COST }
    }
}

impl BatchSize {
    /// Returns the size of the next batch, given the duration of a batch of this size.
    pub fn adjust(self, took: Duration, backend: Backend) -> Self {
        let target = match backend {
            Backend::Sqlite => SQLITE_TARGET,
            Backend::Postgres => POSTGRES_TARGET,
        };
        let took = i64::try_from(took.as_micros()).unwrap_or(i64::MAX).max(1);
        let target = i64::try_from(target.as_micros()).unwrap_or(i64::MAX);
        let cost = self.cost.saturating_mul(target) / took;
        // At most doubled, because a single fast batch is weak evidence.
        Self {
            cost: cost.min(self.cost * 2).clamp(MIN_COST, MAX_COST),
        }
    }

    /// Returns the maximum number of rows in a batch of rows without long texts.
    pub fn max_rows(self) -> u64 {
        u64::try_from((self.cost / ROW_COST).clamp(1, MAX_ROWS)).unwrap_or(1)
    }
}

#[derive(FromQueryResult)]
struct MessageCost {
    seq: i64,
    bytes: i64,
}

/// Returns the next range of a timeline after the first `seq` and up to the second, with at least
/// one message. Returns `None` if no message is left.
pub async fn next_range(
    db: &impl ConnectionTrait,
    id: ConversationId,
    (after, up_to): (i64, i64),
    size: BatchSize,
) -> Result<Option<BatchRange>, DbErr> {
    let sql = "SELECT m.seq AS seq, CAST(octet_length(m.content) + COALESCE(( \
            SELECT SUM(octet_length(t.content)) FROM message_swipes t \
            WHERE t.message_id = m.id), 0) AS bigint) AS bytes \
        FROM messages m WHERE m.conversation_id = $1 AND m.seq > $2 AND m.seq <= $3 \
        ORDER BY m.seq LIMIT $4";
    let rows = i64::try_from(size.max_rows()).unwrap_or(1);
    let values = [id.0.into(), after.into(), up_to.into(), rows.into()];
    let statement = Statement::from_sql_and_values(db.get_database_backend(), sql, values);
    let mut range = None;
    let mut cost = 0;
    for row in db.query_all_raw(statement).await? {
        let row = MessageCost::from_query_result(&row, "")?;
        cost += row.bytes + ROW_COST;
        if range.is_some() && cost > size.cost {
            break;
        }
        let n_messages = range.map_or(0, |it: BatchRange| it.n_messages) + 1;
        range = Some(BatchRange {
            last_seq: row.seq,
            n_messages,
        });
    }
    Ok(range)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{BatchSize, MAX_ROWS, SQLITE_TARGET};
    use crate::db::backend::Backend;

    #[test]
    fn a_batch_that_took_too_long_is_followed_by_a_smaller_one() {
        let size = BatchSize::default();

        assert!(size.adjust(SQLITE_TARGET * 4, Backend::Sqlite).max_rows() < size.max_rows());
        assert_eq!(size.adjust(SQLITE_TARGET, Backend::Sqlite), size);
    }

    #[test]
    fn a_quick_batch_is_followed_by_one_of_twice_the_size_at_most() {
        let mut size = BatchSize::default();
        let next = size.adjust(Duration::ZERO, Backend::Sqlite);
        assert_eq!(next.cost, size.cost * 2);
        for _ in 0..30 {
            size = size.adjust(Duration::ZERO, Backend::Sqlite);
        }
        assert!(size.max_rows() <= MAX_ROWS.unsigned_abs());
        for _ in 0..30 {
            size = size.adjust(Duration::from_secs(60), Backend::Sqlite);
        }
        assert!(size.max_rows() >= 1);
    }
}
