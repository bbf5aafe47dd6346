//! Loads the inputs of a prompt's lorebook scan: the lorebooks, the scan settings, and the timed
//! effects of earlier scans.

use std::collections::HashSet;

use base::ids::{ConversationId, MembershipId, SpaceId};
use sea_orm::{ConnectionTrait, DbErr};
use serde::Deserialize;
use serde_json::Value;
use tavern::lorebook::scan_request::ScanSettings;
use tavern::lorebook::timed_effects::TimedEffects;

use crate::conversations::message::MessageRole;
use crate::lorebooks::active_lorebooks;
use crate::lorebooks::active_lorebooks::LoreCharacter;
use crate::prompt::cards::card_texts;
use crate::prompt::context::{LoreInput, PromptContext};
use crate::prompt::loading::history_filter::HistoryFilter;
use crate::prompt::loading::history_query;

/// Where the lorebooks of a prompt are linked.
#[derive(Clone, Copy, Debug)]
pub struct LoreLoader<'a> {
    /// The conversation, and which of its messages the prompt may contain; `None` if the messages are not
    /// stored.
    pub conversation: Option<(ConversationId, HistoryFilter)>,
    /// `None` if the character is used outside a space.
    pub space: Option<SpaceId>,
    /// The settings of the space.
    pub settings: &'a Value,
    /// The stored variables of the conversation.
    pub variables: &'a Value,
    /// The membership that `{{user}}` refers to.
    pub user: Option<MembershipId>,
}

/// Loads the lorebooks whose entries may activate in the prompt of `context`.
pub async fn load(
    db: &impl ConnectionTrait,
    context: &PromptContext,
    loader: LoreLoader<'_>,
) -> Result<LoreInput, DbErr> {
    let request = active_lorebooks::LoreRequest {
        conversation: loader.conversation.map(|(id, _)| id),
        space: loader.space,
        user_membership: loader.user,
        user_character: None,
        characters: &included_characters(context),
    };
    let books = active_lorebooks::load(db, &request).await?;
    let limits = context.limits();
    let available_tokens = limits.context_tokens - limits.response_tokens;
    let cutoff_seq = context.history.last().map_or(0, |it| it.seq);
    // Only decorators need the number of replies, and counting them is slow.
    let mut entries = books.iter().flat_map(|it| &it.entries);
    let needs_count = entries.any(|it| it.content.trim_start().starts_with("@@"));
    let n_replies = match (needs_count, loader.conversation) {
        (true, Some((id, filter))) => {
            let role = MessageRole::Assistant;
            history_query::count_by_role(db, id, role, cutoff_seq, &filter).await?
        }
        (true, None) => {
            let lines = context.history.iter();
            let replies = lines.filter(|it| it.role == MessageRole::Assistant).count();
            i64::try_from(replies).unwrap_or(i64::MAX)
        }
        (false, _) => 0,
    };
    Ok(LoreInput {
        lorebooks: books,
        settings: ScanSettings::from_space_settings(loader.settings, available_tokens),
        timed: TimedEffects::deserialize(&loader.variables["lore"]).unwrap_or_default(),
        n_replies,
        external_activations: HashSet::new(),
    })
}

/// Returns the characters whose cards are included: the speaker, and then the others by position.
fn included_characters(context: &PromptContext) -> Vec<LoreCharacter<'_>> {
    let speaker = context.character().map(|it| it.id);
    let mut members = card_texts::included_members(context);
    members.sort_by_key(|it| Some(it.id) != speaker);
    let characters = members.into_iter().filter_map(|it| {
        Some(LoreCharacter {
            character: it.character?,
            owner: it.owner,
            card: it.card.as_deref()?,
        })
    });
    characters.collect()
}
