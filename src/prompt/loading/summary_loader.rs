//! Loads the summaries that a prompt may contain.

use sea_orm::{ConnectionTrait, DbErr};
use serde_json::Value;

use crate::conversations::conversation;
use crate::memories::memory_settings::SummarySettings;
use crate::memories::summaries::summary;
use crate::prompt::history::summary_block::{PromptSummaries, SummaryText};
use crate::prompt::loading::history_filter::HistoryFilter;
use crate::prompt::loading::history_query;

/// Returns the summaries of a conversation that cover no message after `cutoff_seq`; `None` if the
/// space has turned them off. Executes no statement if the conversation has never been summarized. A
/// speaker that remembers only what it heard gets none if it did not hear all messages.
pub(super) async fn load(
    db: &impl ConnectionTrait,
    (row, cutoff_seq): (&conversation::Model, i64),
    space_settings: &Value,
    filter: &HistoryFilter,
) -> Result<Option<PromptSummaries>, DbErr> {
    if !SummarySettings::of_space(space_settings).is_enabled {
        return Ok(None);
    }
    let is_summarized = row.summary_goal_seq >= row.summary_from_seq;
    let versions = match is_summarized && heard_all(db, row, filter).await? {
        true => summary::list_running(db, row.id).await?,
        false => Vec::new(),
    };
    // Facts are a person's own text, so they stay if a message is deleted.
    let in_use = versions.first();
    Ok(Some(PromptSummaries {
        versions: usable_texts(&versions, cutoff_seq),
        facts: in_use.map(summary::Model::facts).unwrap_or_default(),
        facts_version: in_use.map(|it| it.id),
        goal_seq: row.summary_goal_seq,
    }))
}

async fn heard_all(
    db: &impl ConnectionTrait,
    row: &conversation::Model,
    filter: &HistoryFilter,
) -> Result<bool, DbErr> {
    match filter.heard_since {
        None => Ok(true),
        Some(time) => Ok(!history_query::has_message_before(db, row.id, time).await?),
    }
}

/// Returns the texts of the newest version and of those that it continues. A text with a deleted message
/// is not among them.
fn usable_texts(newest_first: &[summary::Model], cutoff_seq: i64) -> Vec<SummaryText> {
    let continued = summary::continued_versions(newest_first).iter();
    let usable = continued.filter(|it| it.is_usable && it.to_seq <= cutoff_seq);
    usable.map(SummaryText::from).collect()
}

#[cfg(test)]
mod tests {
    use super::usable_texts;
    use crate::memories::summaries::summary;
    use crate::memories::summaries::summary::tests::running_version;

    fn kept(rows: &[summary::Model]) -> Vec<i64> {
        let kept = usable_texts(rows, i64::MAX).into_iter();
        kept.map(|it| it.id.0).collect()
    }

    #[test]
    fn no_text_with_a_deleted_message_is_used() {
        let mut rows = [running_version(2, 60), running_version(1, 30)];
        rows[0].is_usable = false;

        assert_eq!(kept(&rows), [1]);
        assert_eq!(kept(&rows[..1]), [] as [i64; 0]);
    }
}
