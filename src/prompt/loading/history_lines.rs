//! Converts the loaded messages of a conversation to the lines of a prompt's history, and finds the user
//! to whom it is addressed.

use std::sync::Arc;

use base::ids::{MembershipId, MessageId};
use sea_orm::{ConnectionTrait, DbErr};

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::message::MessageRole;
use crate::conversations::swipe;
use crate::prompt::blocks::BlockPayload;
use crate::prompt::context::{HistoryLine, Whisper};
use crate::prompt::loading::history_query::HistoryMessage;
use crate::spaces::membership;

/// Returns the members that are named with these messages: their authors, and who heard the whispers.
pub(super) fn named_members(
    history: &[Arc<HistoryMessage>],
) -> impl Iterator<Item = MembershipId> + '_ {
    history.iter().flat_map(|it| {
        let audience = it.audience.as_ref().map_or(&[][..], Audience::members);
        audience.iter().copied().chain([it.space_membership_id])
    })
}

/// Returns the lines of these messages, without quotations, pictures and translations.
pub(super) fn to_history_lines(
    history: &[Arc<HistoryMessage>],
    memberships: &[membership::Model],
) -> Vec<HistoryLine> {
    let name = |id: MembershipId| {
        let membership = memberships.iter().find(|it| it.id == id);
        membership.map_or_else(String::new, |it| it.cached_display_name.clone())
    };
    let to_whisper = |it: &HistoryMessage| {
        let audience = it.audience.clone()?;
        let others = audience.members().iter();
        let others = others.filter(|member| **member != it.space_membership_id);
        Some(Whisper {
            to: others.map(|member| name(*member)).collect(),
            audience,
        })
    };
    history
        .iter()
        .map(|it| HistoryLine {
            seq: it.seq,
            message_id: it.id,
            swipe: it.active_swipe,
            author: it.space_membership_id,
            name: (it.persona_name.clone()).unwrap_or_else(|| name(it.space_membership_id)),
            role: it.role,
            text: it.content.clone(),
            whisper: to_whisper(it),
            translated_to: None,  // set by `translated_history::apply`
            quote: None,          // added by `quotes::add`
            pictures: Vec::new(), // added by `picture_loader::add`
            tokens: it.token_count,
            created_at: it.created_at,
            payload: BlockPayload::default(),
            is_required: false,
        })
        .collect()
}

/// Returns the membership of the prompt's user: the human that is impersonated, else the author of
/// the message replied to, else the first human by position.
pub(super) fn find_user_membership<'a>(
    memberships: &'a [membership::Model],
    history: &[Arc<HistoryMessage>],
    (speaker, reply_to): (MembershipId, Option<MessageId>),
) -> Option<&'a membership::Model> {
    let human = |it: &&membership::Model| it.kind == membership::MembershipKind::Human;
    let speaking = memberships.iter().find(|it| it.id == speaker).filter(human);
    let author = history
        .iter()
        .find(|it| Some(it.id) == reply_to)
        .and_then(|it| {
            memberships
                .iter()
                .find(|membership| membership.id == it.space_membership_id)
        })
        .filter(human);
    let active = |it: &&membership::Model| it.status == membership::MembershipStatus::Active;
    let first = || memberships.iter().filter(human).find(active);
    speaking.or(author).or_else(first)
}

/// Returns how many swipes the newest message has, if an AI wrote it.
pub(super) async fn count_swipes(
    db: &impl ConnectionTrait,
    history: &[HistoryLine],
) -> Result<Option<i64>, DbErr> {
    let newest = history.last();
    let Some(newest) = newest.filter(|it| it.role == MessageRole::Assistant) else {
        return Ok(None);
    };
    let counted = swipe::count_by_message(db, &[newest.message_id]).await?;
    Ok(Some(counted.get(&newest.message_id).copied().unwrap_or(1)))
}
