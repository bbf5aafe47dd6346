//! Decides who sees a post, and the replies to it: everyone, or an audience.
//!
//! **Invariant:** what a plan starts for a post has the audience of the post, and only characters of
//! this audience reply. What follows a run has the audience of the run.

use base::ids::MembershipId;

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::viewer::Viewer;
use crate::runs::scheduling::command::{CommandError, ForcedTurn};
use crate::runs::scheduling::messages::new_post::{NewPost, RequestedAudience};
use crate::runs::scheduling::plan::{NewMessage, PlanChange};
use crate::runs::scheduling::plan_builder::PlanBuilder;
use crate::runs::scheduling::state::command_facts::CommandFacts;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::spaces::membership::{MembershipKind, MembershipStatus};

/// Returns who sees a post; `None`: everyone.
///
/// # Errors
/// Returns `UnknownReplyTarget` when it answers a message that does not exist, is hidden, or that its
/// author does not see; `UnknownAudience` when its audience is empty or names a membership that is not
/// active.
pub fn audience_of_post(
    builder: &PlanBuilder,
    post: &NewPost,
) -> Result<Option<Audience>, CommandError> {
    let answered = match (&builder.state.facts, post.reply_to) {
        (CommandFacts::Post { answered: Some(it) }, Some(_)) => it.clone(),
        (_, Some(_)) => return Err(CommandError::UnknownReplyTarget),
        (_, None) => None,
    };
    match &post.requested.audience {
        RequestedAudience::Inherited => {
            Ok(answered.and_then(|it| post.audience_with(it.members())))
        }
        RequestedAudience::Everyone => Ok(None),
        RequestedAudience::Only(members) => {
            only(builder.state, members, post.author)?;
            Ok(post.audience_with(members))
        }
    }
}

/// Returns who sees the reply that a person requests; `None`: everyone. Unless the request names an
/// audience, it is that of the newest message, if the person and the speaker belong to it.
///
/// # Errors
/// Returns `UnknownAudience` as [`audience_of_post`], and `NoSpeaker` when the named speaker does not
/// belong to the requested audience.
pub fn audience_of_reply(
    state: &ScheduleState,
    turn: &ForcedTurn,
) -> Result<Option<Audience>, CommandError> {
    let includes_speaker = |it: &Audience| turn.speaker.is_none_or(|speaker| it.contains(speaker));
    match &turn.audience {
        RequestedAudience::Everyone => Ok(None),
        RequestedAudience::Inherited => {
            let newest = state.tail.as_ref().and_then(|it| it.audience.clone());
            Ok(newest.filter(|it| turn.viewer.sees(Some(it)) && includes_speaker(it)))
        }
        RequestedAudience::Only(members) => {
            let Viewer::Member(caller) = turn.viewer else {
                return Err(CommandError::UnknownAudience);
            };
            let audience = only(state, members, caller)?;
            match includes_speaker(&audience) {
                true => Ok(Some(audience)),
                false => Err(CommandError::NoSpeaker),
            }
        }
    }
}

/// Returns the audience of these members and the one who chose it.
fn only(
    state: &ScheduleState,
    members: &[MembershipId],
    by: MembershipId,
) -> Result<Audience, CommandError> {
    let is_active = |id: &MembershipId| {
        let member = state.member(*id);
        member.is_some_and(|it| it.status == MembershipStatus::Active)
    };
    if members.is_empty() || !members.iter().all(is_active) {
        return Err(CommandError::UnknownAudience);
    }
    let all = members.iter().copied().chain([by]);
    Audience::new(all).ok_or(CommandError::UnknownAudience)
}

/// Returns whether no character belongs to an audience: no model reads the message, and the schedule
/// reads past it.
pub fn is_for_people(builder: &PlanBuilder, audience: Option<&Audience>) -> bool {
    let is_person = |id: &MembershipId| {
        let member = builder.member(*id);
        member.is_none_or(|it| it.kind == MembershipKind::Human)
    };
    audience.is_some_and(|it| it.members().iter().all(is_person))
}

/// Appends a whisper to people, under every input policy: it starts, replaces and ends nothing.
pub fn post_to_people(builder: &mut PlanBuilder, post: &NewPost, audience: Option<Audience>) {
    builder.push(PlanChange::Append(NewMessage {
        is_for_people: true,
        ..NewMessage::of_post(post, audience)
    }));
}
