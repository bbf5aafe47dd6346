//! Collects the facts of a claim: the provider of the speaker, whether the space has used up its tokens,
//! and whether the message that an in-place run regenerates is hidden.

use std::collections::HashSet;

use base::ids::MessageId;
use sea_orm::{ConnectionTrait, DbErr};

use crate::conversations::message;
use crate::providers::usable_providers::UsableProviders;
use crate::runs::scheduling::state::command_facts::CommandFacts;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::spaces::membership;

/// Returns the member that the queued run lets speak, unless it was removed.
pub(super) fn queued_speaker(state: &ScheduleState) -> Option<&membership::Model> {
    state.member(state.queued.as_ref()?.speaker_space_membership_id)
}

/// Returns the facts of a claim. A speaker that was removed has no provider of its own here: its run
/// is skipped.
pub(super) fn claim_facts(
    state: &ScheduleState,
    usable: &UsableProviders,
    has_reached_token_limit: bool,
    shown_targets: &HashSet<MessageId>,
) -> CommandFacts {
    let speaker = queued_speaker(state);
    let own = speaker.and_then(|it| it.llm_provider_id);
    let model = speaker.and_then(membership::Model::model_override);
    CommandFacts::Claim {
        provider: usable.find(own, model),
        has_reached_token_limit,
        is_target_hidden: in_place_target(state).is_some_and(|it| !shown_targets.contains(&it)),
    }
}

/// Returns the message that the queued run regenerates in place, if it does.
fn in_place_target(state: &ScheduleState) -> Option<MessageId> {
    let debug = &state.queued.as_ref()?.debug;
    debug.target_message_id.filter(|_| debug.in_place)
}

/// Returns those targets of queued in-place runs that are not hidden. Most claims have none, and
/// execute no query.
pub(super) async fn load_shown_targets(
    tx: &impl ConnectionTrait,
    states: impl Iterator<Item = &ScheduleState>,
) -> Result<HashSet<MessageId>, DbErr> {
    let targets: Vec<MessageId> = states.filter_map(in_place_target).collect();
    if targets.is_empty() {
        return Ok(HashSet::new());
    }
    let shown = message::list_visible(tx, targets).await?;
    Ok(shown.into_iter().map(|it| it.id).collect())
}
