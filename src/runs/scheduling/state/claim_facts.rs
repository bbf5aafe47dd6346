//! Collects the facts of a claim: the provider of the speaker, whether the space has used up its tokens,
//! and the message to which the run adds a version, if that is not the tail or is continued.

use std::collections::HashMap;

use base::ids::MessageId;
use sea_orm::{ConnectionTrait, DbErr};

use crate::conversations::message;
use crate::providers::usable_providers::UsableProviders;
use crate::runs::scheduling::state::command_facts::CommandFacts;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::run;
use crate::spaces::membership;

/// Returns the member that the queued run lets speak, unless it was removed or the director still
/// chooses it.
pub(super) fn queued_speaker(state: &ScheduleState) -> Option<&membership::Model> {
    state.member(state.queued.as_ref()?.speaker_space_membership_id?)
}

/// Returns the facts of a claim. A speaker that was removed has no provider of its own here: its run
/// is skipped.
pub(super) fn claim_facts(
    state: &ScheduleState,
    usable: &UsableProviders,
    has_reached_token_limit: bool,
    targets: &HashMap<MessageId, message::Model>,
) -> CommandFacts {
    let speaker = queued_speaker(state);
    let own = speaker.and_then(|it| it.llm_provider_id);
    let model = speaker.and_then(membership::Model::model_override);
    CommandFacts::Claim {
        provider: usable.find(own, model),
        has_reached_token_limit,
        is_target_hidden: unexpected_target(state).is_some_and(|it| !targets.contains_key(&it)),
        continued: continued_target(state).and_then(|id| {
            let tail = state.tail.as_ref().filter(|it| it.id == id);
            tail.or(targets.get(&id)).cloned()
        }),
    }
}

/// Returns the message that the queued run continues, if it does.
fn continued_target(state: &ScheduleState) -> Option<MessageId> {
    let run = state.queued.as_ref()?;
    let is_continue = run.kind == run::RunKind::Continue;
    run.debug.target_message_id.filter(|_| is_continue)
}

/// Returns the message to which the queued run adds a version although it is not the tail: in place, or
/// because later messages are whispers of others.
fn unexpected_target(state: &ScheduleState) -> Option<MessageId> {
    let debug = &state.queued.as_ref()?.debug;
    let tail = state.tail.as_ref().map(|it| it.id);
    let target = debug.target_message_id.filter(|it| Some(*it) != tail);
    target.filter(|_| debug.in_place || continued_target(state).is_some())
}

/// Returns those of these targets of queued runs that are not hidden. Most claims have none, and
/// execute no query.
pub(super) async fn load_shown_targets(
    tx: &impl ConnectionTrait,
    states: impl Iterator<Item = &ScheduleState>,
) -> Result<HashMap<MessageId, message::Model>, DbErr> {
    let targets: Vec<MessageId> = states.filter_map(unexpected_target).collect();
    if targets.is_empty() {
        return Ok(HashMap::new());
    }
    let shown = message::list_visible(tx, targets).await?;
    Ok(shown.into_iter().map(|it| (it.id, it)).collect())
}
