//! Plans posts that no one answers: the text of a narrator, a text in the name of a character, and dice.
//!
//! **Invariant:** such a post starts, replaces and ends no round. A queued reply stays valid and reads the
//! message; a queued new version of the former newest message is canceled.

use rand::Rng;
use serde_json::json;

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::message;
use crate::runs::scheduling::command::CommandError;
use crate::runs::scheduling::messages::new_post::{NewPost, PostKind};
use crate::runs::scheduling::messages::{out_of_character, post_audience};
use crate::runs::scheduling::plan::{MessageRef, NewMessage, PlanChange};
use crate::runs::scheduling::plan_builder::PlanBuilder;
use crate::runs::store::run::RunCancelReason;
use crate::spaces::membership;
use crate::spaces::membership::{MembershipKind, MembershipStatus};
use crate::spaces::space::InputPolicy;

/// Fills in what the server adds to a post by `author`: who wrote a text in the name of a character, and
/// the result of dice.
pub fn fill_in(post: &mut NewPost, author: &membership::Model, rng: &mut impl Rng) {
    match post.kind {
        PostKind::Own | PostKind::Narrator => {}
        PostKind::Character(_) => {
            post.metadata = json!({ message::POSTED_BY_KEY: author.cached_display_name });
        }
        PostKind::Roll(dice) => {
            let rolled = dice.roll(rng);
            let persona = post.persona.as_ref().map(|it| it.name.as_str());
            let name = persona.unwrap_or(&author.cached_display_name);
            post.content = format!("{name} rolls {dice}: {rolled}");
            let (each, added, total) = (rolled.dice, rolled.added, rolled.total);
            let notation = dice.to_string();
            post.metadata = json!({
                message::ROLL_KEY: {"notation": notation, "dice": each, "added": added, "total": total},
            });
        }
    }
}

/// Appends a message that no one answers.
///
/// # Errors
/// Returns `UnknownSpeaker` when it names no active character, and `GenerationLocked` while a reply is
/// generated or queued in a space that refuses posts then.
pub fn post(
    builder: &mut PlanBuilder,
    post: &NewPost,
    audience: Option<Audience>,
) -> Result<(), CommandError> {
    if let PostKind::Character(speaker) = post.kind {
        let speaker = builder.member(speaker);
        let is_active_character = speaker.is_some_and(|it| {
            it.kind == MembershipKind::Character && it.status == MembershipStatus::Active
        });
        if !is_active_character {
            return Err(CommandError::UnknownSpeaker);
        }
    }
    let is_for_people = post_audience::is_for_people(builder, audience.as_ref());
    let is_busy = builder.queued.is_some() || builder.running.is_some();
    let policy = builder.state.space.during_generation_user_input_policy;
    if !is_for_people && is_busy && policy == InputPolicy::Reject {
        return Err(CommandError::GenerationLocked);
    }
    builder.push(PlanChange::Append(NewMessage {
        is_for_people,
        ..NewMessage::of_post(post, audience)
    }));
    if is_for_people {
        return Ok(());
    }
    let adds_version = builder
        .queued
        .as_ref()
        .is_some_and(|it| it.kind.adds_version());
    match adds_version {
        true => builder.cancel_queued(RunCancelReason::SupersededByMessage),
        false => out_of_character::expect_tail(builder, Some(MessageRef::Appended)),
    }
    Ok(())
}
