//! Replaces the messages of people in a history by their translations into the language of the models.
//!
//! Translations are not kept in the cache of histories: one that is made later changes no `rev`. So each
//! prompt reads them, and only a space with a language for its models needs this statement.

use sea_orm::{ConnectionTrait, DbErr};

use crate::conversations::message::MessageRole;
use crate::conversations::translations::message_translation;
use crate::prompt::context::HistoryLine;
use crate::spaces::space;

/// Replaces the texts of people's messages that have a translation.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn apply(
    db: &impl ConnectionTrait,
    space: &space::Model,
    lines: &mut [HistoryLine],
) -> Result<(), DbErr> {
    let Some(language) = &space.model_language else {
        return Ok(());
    };
    let of_people = lines.iter().filter(|it| it.role == MessageRole::User);
    let messages = of_people.map(|it| it.message_id);
    let mut found = message_translation::load(db, messages, language).await?;
    for line in lines {
        let row = found.remove(&line.message_id);
        let Some((row, text)) = row.and_then(|mut it| it.text.take().map(|text| (it, text))) else {
            continue;
        };
        line.text = text;
        line.tokens = row.token_count;
        line.translated_to = Some(row.language);
    }
    Ok(())
}
