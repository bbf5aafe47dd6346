//! Checks of a post that need the database: whether it repeats an earlier one, whether its pictures exist,
//! and whether its author may post again in a space in slow mode. All are made under the conversation's
//! lock.

use base::clock::Timestamp;
use sea_orm::DatabaseTransaction;

use crate::attachments::attachment;
use crate::conversations::{message, timeline};
use crate::runs::error::EngineError;
use crate::runs::scheduling::command::{Command, CommandError};
use crate::runs::scheduling::messages::new_post::NewPost;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::write_messages;
use crate::spaces::posts::slow_mode;

/// Returns the existing message of a post whose `client_id` was used before; the repeated post
/// plans nothing. Checked under the lock, because the first post may have been in progress.
///
/// # Errors
/// Returns [`CommandError::ClientIdReused`] when the earlier post had another content.
pub async fn find_repeated(
    tx: &DatabaseTransaction,
    state: &ScheduleState,
    command: &Command,
) -> Result<Option<message::Model>, EngineError> {
    let Command::MessagePosted(post) = command else {
        return Ok(None);
    };
    let Some(client_id) = &post.client_id else {
        return Ok(None);
    };
    let conversation = state.conversation.id;
    let shown = post.shown_author();
    match timeline::find_by_client_id(tx, conversation, shown, client_id).await? {
        None => Ok(None),
        Some(first)
            if is_same_post(&first, post) && has_same_pictures(tx, &first, post).await? =>
        {
            Ok(Some(first))
        }
        Some(_) => Err(CommandError::ClientIdReused.into()),
    }
}

/// Returns whether a post names the pictures of this message. Those that were deleted since are not
/// compared.
async fn has_same_pictures(
    tx: &DatabaseTransaction,
    first: &message::Model,
    post: &NewPost,
) -> Result<bool, EngineError> {
    if !first.has_attachments && post.attachments.is_empty() {
        return Ok(true);
    }
    let named = attachment::list(tx, &post.attachments).await?;
    let mut shown = attachment::load(tx, [first.id]).await?;
    let shown = shown.remove(&first.id).unwrap_or_default();
    Ok(named.iter().all(|it| it.message_id == Some(first.id))
        && shown.iter().all(|it| post.attachments.contains(&it.id)))
}

/// Returns whether a post repeats this one. What was changed since is not compared.
fn is_same_post(first: &message::Model, post: &NewPost) -> bool {
    let is_mark_changed = first.metadata.get(write_messages::OOC_CHANGED).is_some();
    let is_mark_same = post.is_ooc.is_none_or(|it| it == first.is_ooc);
    post.is_repeat_of(first)
        && first.reply_to_message_id == post.reply_to
        && (is_mark_same || is_mark_changed)
}

/// Locks the pictures of a post, so that no other post can take them.
///
/// # Errors
/// Returns [`CommandError::UnknownAttachment`] when one of them is another user's, was posted already or
/// does not exist.
pub async fn require_attachments(
    tx: &DatabaseTransaction,
    state: &ScheduleState,
    command: &Command,
) -> Result<(), EngineError> {
    let Command::MessagePosted(post) = command else {
        return Ok(());
    };
    if post.attachments.is_empty() {
        return Ok(());
    }
    let owner = state.member(post.author).and_then(|it| it.user_id);
    let owner = owner.ok_or(CommandError::NotFound)?;
    match attachment::lock_unposted(tx, owner, &post.attachments).await? {
        true => Ok(()),
        false => Err(CommandError::UnknownAttachment.into()),
    }
}

/// Records the time of a post in a space in slow mode. Does nothing for other commands.
///
/// # Errors
/// Returns [`CommandError::SlowMode`] when its author has posted too recently.
pub async fn record_time(
    tx: &DatabaseTransaction,
    state: &ScheduleState,
    command: &Command,
    now: Timestamp,
) -> Result<(), EngineError> {
    let Command::MessagePosted(post) = command else {
        return Ok(());
    };
    let author = state.member(post.author);
    let interval_ms = author.and_then(|it| slow_mode::interval_ms(&state.space, it));
    let Some(interval_ms) = interval_ms else {
        return Ok(());
    };
    match slow_mode::record_post(tx, post.author, interval_ms, now).await? {
        None => Ok(()),
        Some(remaining_ms) => Err(CommandError::SlowMode { remaining_ms }.into()),
    }
}
