//! Reads the messages of a part, as many as fit into one request to a model.

use base::ids::{ConversationId, SpaceId};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};

use crate::conversations::message;
use crate::memories::summaries::summary_request::NamedText;
use crate::spaces::membership;

/// Returns the messages of a part, ascending, and the `seq` of its last one.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn load_messages(
    db: &impl ConnectionTrait,
    id: ConversationId,
    (from_seq, to_seq): (i64, i64),
    (limit, max_tokens): (u64, i64),
) -> Result<(Vec<message::Model>, i64), DbErr> {
    let mut messages = message::Entity::find()
        .filter(message::Column::ConversationId.eq(id))
        .filter(message::Column::Seq.between(from_seq, to_seq))
        .filter(message::is_usable_by_memory())
        .order_by_asc(message::Column::Seq)
        .limit(limit)
        .all(db)
        .await?;
    let mut total = 0;
    let fitting = messages.iter().take_while(|it| {
        total += it.token_count;
        total <= max_tokens
    });
    let n_fitting = fitting.count().max(1);
    let is_cut = n_fitting < messages.len() || messages.len() as u64 == limit;
    messages.truncate(n_fitting);
    let last = messages.last().map(|it| it.seq);
    Ok((messages, last.filter(|_| is_cut).unwrap_or(to_seq)))
}

/// Returns the texts of messages with the names of their personas, or else of their authors. A text with more than `max_tokens` is
/// cut.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn with_names(
    db: &impl ConnectionTrait,
    space: SpaceId,
    messages: &[message::Model],
    max_tokens: i64,
) -> Result<Vec<NamedText>, DbErr> {
    let members = membership::list_for_space(db, space).await?;
    let name_of = |id| {
        let member = members.iter().find(|it| it.id == id);
        member.map_or_else(String::new, |it| it.cached_display_name.clone())
    };
    let texts = messages.iter().map(|it| NamedText {
        name: (it.persona_name.clone()).unwrap_or_else(|| name_of(it.space_membership_id)),
        text: first_tokens(&it.content, it.token_count, max_tokens).to_owned(),
    });
    Ok(texts.collect())
}

/// Returns the beginning of a text of `n_tokens` that has about `max_tokens`.
fn first_tokens(text: &str, n_tokens: i64, max_tokens: i64) -> &str {
    if n_tokens <= max_tokens {
        return text;
    }
    let n_bytes = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let kept = n_bytes.saturating_mul(max_tokens.max(0)) / n_tokens.max(1);
    &text[..text.floor_char_boundary(usize::try_from(kept).unwrap_or(0))]
}

#[cfg(test)]
mod tests {
    use super::first_tokens;

    #[test]
    fn a_text_is_cut_in_proportion_to_its_tokens_and_between_characters() {
        assert_eq!(first_tokens("abcdefgh", 8, 8), "abcdefgh");
        assert_eq!(first_tokens("abcdefgh", 8, 4), "abcd");
        assert_eq!(first_tokens("éééé", 4, 1), "é");
        assert_eq!(first_tokens("éééé", 8, 1), "");
        assert_eq!(first_tokens("abc", 9, 0), "");
    }
}
