//! Stores the summaries of an imported space, one batch of lines after the other.
//!
//! **Invariant:** a conversation gets at most one running summary, and its parts do not overlap. A line whose
//! messages are missing or have a summary does not affect the others, and no line causes a call of a model.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{ConversationId, SummaryId, UserId};
use llm::tokens;
use sea_orm::ActiveValue::NotSet;
use sea_orm::{ActiveModelTrait, EntityTrait, IntoActiveModel};
use serde_json::json;
use tavern::chats::line_report::{LineProblem, LineReport};

use crate::accounts::username_password::normalize_username;
use crate::db::connect::Db;
use crate::memories::error::MemoryError;
use crate::memories::summaries::summary::{
    ActiveModel, Entity, Model, SummaryLevel, SummaryOrigin,
};
use crate::memories::summaries::summary_store;
use crate::memories::transfer::summary_line::{ExportedSummary, SummaryLineError};

/// The maximum number of skipped lines that are listed; further ones are only counted.
const MAX_LISTED: usize = 100;

/// A line that is not blank, and its number, counted from 1.
#[derive(Debug)]
pub struct NumberedSummary {
    pub number: u64,
    pub summary: Result<ExportedSummary, SummaryLineError>,
}

/// The messages of an imported conversation for which summaries can still be stored.
#[derive(Clone, Copy, Debug)]
pub struct SummaryRange {
    pub conversation: ConversationId,
    /// The first message that is not forgotten, and the last one.
    pub from_seq: i64,
    pub last_seq: i64,
    /// Whether a running summary was stored.
    pub has_running: bool,
    /// The end of the last part that was stored.
    pub parts_end: i64,
}

/// The person who imports, and who stays the author of the texts that they wrote.
#[derive(Clone, Debug)]
pub struct ImportingPerson {
    pub id: UserId,
    pub username_key: String,
}

/// Stores summaries in imported conversations.
pub struct SummaryImporter {
    db: Db,
    /// By the keys of the conversations in the file.
    ranges: HashMap<i64, SummaryRange>,
    person: ImportingPerson,
    report: LineReport,
}

impl SummaryRange {
    /// Returns the range of a conversation that has no summaries yet.
    pub fn new(conversation: ConversationId, (from_seq, last_seq): (i64, i64)) -> Self {
        Self {
            conversation,
            from_seq,
            last_seq,
            has_running: false,
            parts_end: 0,
        }
    }

    /// Ends the range at the last message that was stored; `None`: there is none. The number after it
    /// must be valid, too.
    fn end_at(&mut self, last_seq: Option<i64>) {
        let last_seq = last_seq.unwrap_or(0).min(i64::MAX - 1);
        self.last_seq = self.last_seq.min(last_seq);
    }

    /// Reserves the messages of a summary. Returns `false` if they do not exist or already have a
    /// summary.
    fn reserve(&mut self, level: SummaryLevel, line: &ExportedSummary) -> bool {
        let is_within =
            (self.from_seq..=line.to_seq).contains(&line.from_seq) && line.to_seq <= self.last_seq;
        match level {
            _ if !is_within => false,
            SummaryLevel::Running => !std::mem::replace(&mut self.has_running, true),
            SummaryLevel::Part if line.from_seq <= self.parts_end => false,
            SummaryLevel::Part => {
                self.parts_end = line.to_seq;
                true
            }
        }
    }
}

impl SummaryImporter {
    /// Creates an importer.
    pub fn new(db: Db, ranges: HashMap<i64, SummaryRange>, person: ImportingPerson) -> Self {
        Self {
            db,
            ranges,
            person,
            report: LineReport::default(),
        }
    }

    /// Returns the report of the lines so far.
    pub fn into_report(self) -> LineReport {
        self.report
    }

    /// Stores the valid summaries of a batch whose messages have no summary yet, in one transaction.
    /// `last_seqs` has the last message that was stored of each conversation, by its key.
    ///
    /// # Errors
    /// Returns the database's error; then nothing of the batch was stored.
    pub async fn write_batch(
        &mut self,
        lines: Vec<NumberedSummary>,
        last_seqs: &HashMap<i64, i64>,
        now: Timestamp,
    ) -> Result<(), MemoryError> {
        for (key, range) in &mut self.ranges {
            range.end_at(last_seqs.get(key).copied());
        }
        let mut rows = Vec::new();
        for NumberedSummary { number, summary } in lines {
            match summary.and_then(|it| self.row(it, now)) {
                Ok(row) => rows.push(row),
                Err(error) => self.record(number, error),
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        let stored = self.db.write(move |tx| {
            let rows = rows.clone();
            Box::pin(async move {
                let conversations: Vec<_> = rows.iter().map(|it| it.conversation_id).collect();
                let rows = rows.into_iter().map(to_active);
                Entity::insert_many(rows).exec(tx).await?;
                summary_store::set_goals_to_ends(tx, conversations).await
            })
        });
        stored.await.map_err(MemoryError::from)
    }

    /// Returns the row of a line, and reserves its messages.
    fn row(&mut self, line: ExportedSummary, now: Timestamp) -> Result<Model, SummaryLineError> {
        let level = line.level().ok_or(SummaryLineError::Invalid)?;
        let range = self.ranges.get_mut(&line.conversation);
        let range = range.ok_or(SummaryLineError::UnknownConversation)?;
        if !range.reserve(level, &line) {
            return Err(SummaryLineError::RangeTaken);
        }
        let is_of_person = line.origin == SummaryOrigin::Person;
        let author = line.author.filter(|_| is_of_person);
        let is_own = author.is_some_and(|it| normalize_username(&it) == self.person.username_key);
        Ok(Model {
            id: SummaryId(0), // assigned by the database
            conversation_id: range.conversation,
            level,
            version: 1,
            status: line.status,
            from_seq: line.from_seq,
            to_seq: line.to_seq,
            token_count: tokens::count(&line.content),
            content: line.content,
            pinned_facts: json!(line.pinned_facts),
            origin: line.origin,
            model: line.model.filter(|_| !is_of_person),
            created_by: is_own.then_some(self.person.id),
            is_usable: line.is_usable,
            is_regeneration_requested: false,
            created_at: line.created_at.clamp(Timestamp(0), now),
        })
    }

    fn record(&mut self, line: u64, error: SummaryLineError) {
        self.report.n_skipped += 1;
        if self.report.lines.len() < MAX_LISTED {
            let warning = error.warning();
            self.report.lines.push(LineProblem {
                line,
                code: warning.code.to_string(),
                reason: warning.message,
                skipped: true,
            });
        }
    }
}

fn to_active(row: Model) -> ActiveModel {
    let mut row = row.into_active_model().reset_all();
    row.id = NotSet;
    row
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;
    use base::ids::ConversationId;

    use super::SummaryRange;
    use crate::memories::summaries::summary::{SummaryLevel, SummaryOrigin, SummaryStatus};
    use crate::memories::transfer::summary_line::ExportedSummary;

    fn reserve(
        range: &mut SummaryRange,
        level: SummaryLevel,
        (from_seq, to_seq): (i64, i64),
    ) -> bool {
        let line = ExportedSummary {
            conversation: 1,
            level: 0,
            from_seq,
            to_seq,
            content: String::new(),
            pinned_facts: Vec::new(),
            status: SummaryStatus::Current,
            origin: SummaryOrigin::Model,
            model: None,
            author: None,
            is_usable: true,
            created_at: Timestamp(0),
        };
        range.reserve(level, &line)
    }

    #[test]
    fn parts_are_stored_in_order_without_overlap_and_within_the_messages() {
        let mut range = SummaryRange::new(ConversationId(1), (5, 90));
        let mut part = |seqs| reserve(&mut range, SummaryLevel::Part, seqs);

        assert!(!part((4, 30)), "a forgotten message");
        assert!(part((5, 30)));
        assert!(!part((5, 30)));
        assert!(!part((30, 60)));
        assert!(part((40, 60)));
        assert!(!part((60, 50)));
        assert!(!part((61, 91)), "a message that does not exist");
    }

    #[test]
    fn a_range_ends_at_the_last_stored_message_whatever_the_file_states() {
        for (last_stored, end) in [(Some(90), 90), (None, 0), (Some(i64::MAX), i64::MAX - 1)] {
            let mut range = SummaryRange::new(ConversationId(1), (1, i64::MAX));

            range.end_at(last_stored);

            assert_eq!(range.last_seq, end);
            assert!(!reserve(&mut range, SummaryLevel::Running, (1, end + 1)));
        }
    }

    #[test]
    fn a_conversation_gets_one_running_summary() {
        let mut range = SummaryRange::new(ConversationId(1), (1, 90));
        let mut running = |seqs| reserve(&mut range, SummaryLevel::Running, seqs);

        assert!(!running((1, 91)));
        assert!(running((1, 60)));
        assert!(!running((1, 90)));
    }
}
