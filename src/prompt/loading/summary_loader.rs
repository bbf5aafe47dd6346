//! Loads the summaries that a prompt may contain.

use sea_orm::{ConnectionTrait, DbErr};
use serde_json::Value;

use crate::conversations::conversation;
use crate::memories::memory_settings::SummarySettings;
use crate::memories::summaries::summary;
use crate::prompt::history::summary_block::{PromptSummaries, SummaryText};

/// Returns the summaries of a conversation; `None` if the space has turned them off. Executes no
/// statement if the conversation has never been summarized.
pub(super) async fn load(
    db: &impl ConnectionTrait,
    row: &conversation::Model,
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
        versions: continued_versions(&versions),
        facts: in_use.map(summary::Model::facts).unwrap_or_default(),
        facts_version: in_use.map(|it| it.id),
        goal_seq: row.summary_goal_seq,
    }))
}

/// Returns the newest version and those that it continues: each covers more messages than the next one.
/// A version that replaces one for the same messages (edited, corrected or restored) ends the list,
/// because prompts must not contain the text that it replaces.
fn continued_versions(newest_first: &[summary::Model]) -> Vec<SummaryText> {
    let is_continuation = |at: usize| match (newest_first.get(at), newest_first.get(at + 1)) {
        (Some(it), Some(before)) => it.to_seq > before.to_seq,
        _ => false,
    };
    let n_continued = (0..newest_first.len()).take_while(|at| is_continuation(*at));
    let n_kept = (n_continued.count() + 1).min(newest_first.len());
    newest_first[..n_kept]
        .iter()
        .filter(|it| it.is_usable)
        .map(SummaryText::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;
    use base::ids::{ConversationId, SummaryId};
    use serde_json::json;

    use super::continued_versions;
    use crate::memories::summaries::summary;
    use crate::memories::summaries::summary::{SummaryLevel, SummaryOrigin, SummaryStatus};

    fn version(id: i64, to_seq: i64) -> summary::Model {
        summary::Model {
            id: SummaryId(id),
            conversation_id: ConversationId(1),
            level: SummaryLevel::Running,
            version: id,
            status: SummaryStatus::Superseded,
            from_seq: 1,
            to_seq,
            content: String::new(),
            pinned_facts: json!([]),
            token_count: 0,
            origin: SummaryOrigin::Model,
            model: None,
            created_by: None,
            is_usable: true,
            is_regeneration_requested: false,
            created_at: Timestamp(0),
        }
    }

    fn kept(rows: &[summary::Model]) -> Vec<i64> {
        let kept = continued_versions(rows).into_iter();
        kept.map(|it| it.id.0).collect()
    }

    #[test]
    fn a_version_that_replaces_another_one_is_the_oldest() {
        let rows = [
            version(5, 90),
            version(4, 60),
            version(3, 60),
            version(2, 30),
        ];

        assert_eq!(kept(&rows), [5, 4]);
        assert_eq!(kept(&rows[2..]), [3, 2]);
        assert_eq!(kept(&[]), [] as [i64; 0]);
    }

    #[test]
    fn no_text_with_a_deleted_message_is_used() {
        let mut rows = [version(2, 60), version(1, 30)];
        rows[0].is_usable = false;

        assert_eq!(kept(&rows), [1]);
        assert_eq!(kept(&rows[..1]), [] as [i64; 0]);
    }
}
