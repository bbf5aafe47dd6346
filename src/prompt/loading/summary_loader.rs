//! Loads the summaries that a prompt may contain.

use sea_orm::{ConnectionTrait, DbErr};
use serde_json::Value;

use crate::conversations::conversation;
use crate::memories::memory_settings::SummarySettings;
use crate::memories::summaries::summary;
use crate::prompt::history::summary_block::{PromptSummaries, SummaryText};

/// Returns the summaries of a conversation that cover no message after `cutoff_seq`; `None` if the
/// space has turned them off. Executes no statement if the conversation has never been summarized.
pub(super) async fn load(
    db: &impl ConnectionTrait,
    (row, cutoff_seq): (&conversation::Model, i64),
    space_settings: &Value,
) -> Result<Option<PromptSummaries>, DbErr> {
    if !SummarySettings::of_space(space_settings).is_enabled {
        return Ok(None);
    }
    let versions = match row.summary_goal_seq >= row.summary_from_seq {
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
