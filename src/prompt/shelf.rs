//! Loads the lore of a turn: its books, and what earlier turns left of them.

use crate::conversations::message::MessageRole;
use crate::ids::CharacterId;
use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::ids::SpaceId;
use crate::ids::UserId;
use crate::lore::active_lorebooks;
use crate::lore::scan_request::ScanSettings;
use crate::lore::timed_effects::TimedEffects;
use crate::prompt::context::Context;
use crate::prompt::lore::Library;
use crate::prompt::read;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use serde::Deserialize;
use serde_json::Value;

/// Where the books of a turn stand.
#[derive(Clone, Copy, Debug)]
pub struct Shelf<'a> {
    /// `None`: what is said stands in no timeline.
    pub conversation: Option<ConversationId>,
    /// `None`: the speaker is by itself.
    pub space: Option<SpaceId>,
    /// Of the space.
    pub settings: &'a Value,
    /// What the conversation remembers.
    pub variables: &'a Value,
    /// The seat of whom `{{user}}` means.
    pub user: Option<MembershipId>,
    /// The character that speaks, and whose it is.
    pub speaker: Option<(CharacterId, Option<UserId>)>,
}

/// The books whose entries may enter the prompt of `context`.
pub async fn load(
    db: &impl ConnectionTrait,
    context: &Context,
    shelf: Shelf<'_>,
) -> Result<Library, DbErr> {
    let card = context.character().and_then(|it| it.card.as_ref());
    let speaker = shelf.speaker.zip(card);
    let turn = active_lorebooks::LoreRequest {
        conversation: shelf.conversation,
        space: shelf.space,
        user_membership: shelf.user,
        user_character: None,
        speaker: speaker.map(|((character, owner), card)| active_lorebooks::LoreSpeaker {
            character,
            owner,
            card,
        }),
    };
    let books = active_lorebooks::load(db, &turn).await?;
    if books.is_empty() {
        return Ok(Library::default());
    }
    let limits = context.limits();
    let room = limits.context_tokens - limits.response_tokens;
    let cutoff_seq = context.history.last().map_or(0, |it| it.seq);
    // Only a decorator asks how many replies there are; to count them takes a while.
    let mut entries = books.iter().flat_map(|it| &it.entries);
    let counts = entries.any(|it| it.content.trim_start().starts_with("@@"));
    let n_replies = match (counts, shelf.conversation) {
        (true, Some(id)) => read::n_by(db, id, MessageRole::Assistant, cutoff_seq).await?,
        (true, None) => {
            let lines = context.history.iter();
            let replies = lines.filter(|it| it.role == MessageRole::Assistant).count();
            i64::try_from(replies).unwrap_or(i64::MAX)
        }
        (false, _) => 0,
    };
    Ok(Library {
        books,
        settings: ScanSettings::from_space_settings(shelf.settings, room),
        timed: TimedEffects::deserialize(&shelf.variables["lore"]).unwrap_or_default(),
        n_replies,
    })
}
