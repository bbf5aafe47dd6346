//! Defines the request and response bodies of memories, and validates new and changed memories.

use base::ids::{ConversationId, MembershipId, RunId};
use recall::content::{MAX_CONTENT_CHARS, one_line};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::memories::memory::{MemoryKind, MemoryView};
use crate::web::error::{ApiError, ApiResult};

/// A memory that a person writes.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewMemory)]
pub struct CreateMemory {
    /// At most 2,000 characters. Line breaks become spaces.
    #[schema(min_length = 1, max_length = 2_000)]
    pub content: String,
    pub kind: MemoryKind,
    /// From 0 to 1; 0.5 by default.
    #[schema(minimum = 0, maximum = 1)]
    pub importance: Option<f64>,
    /// Whose memory it is: a character, or the caller. Everyone's by default.
    #[schema(nullable = false)]
    pub membership_id: Option<MembershipId>,
    /// Whom it is about.
    #[schema(nullable = false)]
    pub about_membership_id: Option<MembershipId>,
    /// Recalled whatever the newest messages say; at most two of them.
    #[schema(nullable = false)]
    pub pinned: Option<bool>,
}

/// A change of a memory; what is missing stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MemoryChange)]
pub struct UpdateMemory {
    #[schema(min_length = 1, max_length = 2_000)]
    pub content: Option<String>,
    pub kind: Option<MemoryKind>,
    #[schema(minimum = 0, maximum = 1)]
    pub importance: Option<f64>,
    pub pinned: Option<bool>,
    /// Null: about nobody.
    #[serde(default, deserialize_with = "nullable")]
    pub about_membership_id: Option<Option<MembershipId>>,
    /// The version that the person saw.
    pub expected_version: i64,
}

/// Distinguishes null from a missing field.
fn nullable<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

/// What to forget: exactly one of the three.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Forget)]
pub struct ForgetMemories {
    /// Everything that is about this member, belongs to it, or was learned from its messages.
    pub about_membership_id: Option<MembershipId>,
    /// Everything that was learned in this conversation.
    pub conversation_id: Option<ConversationId>,
    pub all: Option<bool>,
    /// Only counts.
    pub dry_run: Option<bool>,
}

/// How many memories were deleted, or would be.
#[derive(Serialize, ToSchema)]
#[schema(as = Forgotten)]
pub struct ForgottenView {
    pub deleted: usize,
}

/// A memory of a list. A search has scores and reasons.
#[derive(Serialize, ToSchema)]
#[schema(as = ListedMemory)]
pub struct ListedMemory {
    #[serde(flatten)]
    pub memory: MemoryView,
    /// From 0 to 1: how well it fits the search. Null without a search.
    pub score: Option<f32>,
    /// Why it was found. Null without a search.
    pub because: Option<String>,
    /// The run whose prompt contained it last. Null if there was none, or if its prompt is no longer stored.
    pub last_recall: Option<LastRecallView>,
}

/// The run whose prompt contained a memory last. `GET /api/runs/{run_id}/memories` returns why.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = LastRecall)]
pub struct LastRecallView {
    pub run_id: RunId,
    pub conversation_id: ConversationId,
    /// The member who spoke, or for whom the text was written.
    pub membership_id: MembershipId,
}

/// A memory that the prompt of a run contained, or that came close.
#[derive(Serialize, ToSchema)]
#[schema(as = RecalledMemory)]
pub struct RecalledView {
    pub memory: MemoryView,
    /// From 0; null: it came close, but was not recalled.
    pub rank: Option<usize>,
    pub score: f32,
    /// From 0 to 1; null if no vectors were compared.
    pub vector_score: Option<f32>,
    /// From 0 to 1.
    pub text_score: f32,
    /// In words: `matched dog, pixel`, `vector 0.71`, `pinned`.
    pub because: String,
}

/// The memories of a run's prompt.
#[derive(Serialize, ToSchema)]
#[schema(as = RecalledMemories)]
pub struct RecalledList {
    pub data: Vec<RecalledView>,
}

/// Returns the content as it is stored.
///
/// # Errors
/// Returns 422 `invalid_value` if it is blank or too long.
pub fn parse_content(content: &str) -> ApiResult<String> {
    one_line(content).ok_or_else(|| {
        let message = format!("Must have 1 to {MAX_CONTENT_CHARS} characters.");
        ApiError::invalid_value("content", message)
    })
}

/// Checks an importance.
///
/// # Errors
/// Returns 422 `invalid_value` if it is not between 0 and 1.
pub fn parse_importance(importance: f64) -> ApiResult<f64> {
    match (0.0..=1.0).contains(&importance) {
        true => Ok(importance),
        false => Err(ApiError::invalid_value(
            "importance",
            "Must be between 0 and 1.",
        )),
    }
}

/// Returns in words why a memory was found.
pub fn because(matched: &[String], vector_score: Option<f32>, is_pinned: bool) -> String {
    let pinned = is_pinned.then(|| "pinned".to_owned());
    let words = (!matched.is_empty()).then(|| format!("matched {}", matched.join(", ")));
    let vector = vector_score.filter(|it| *it > 0.0);
    let vector = vector.map(|it| format!("vector {it:.2}"));
    let reasons: Vec<String> = [pinned, words, vector].into_iter().flatten().collect();
    reasons.join("; ")
}

#[cfg(test)]
mod tests {
    use super::because;

    #[test]
    fn the_reasons_are_words() {
        let words = ["dog".to_owned(), "pixel".to_owned()];

        assert_eq!(
            because(&words, Some(0.714), false),
            "matched dog, pixel; vector 0.71"
        );
        assert_eq!(because(&[], Some(0.0), true), "pinned");
        assert_eq!(because(&[], None, false), "");
    }
}
