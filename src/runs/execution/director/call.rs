//! Asks the director's model who speaks in a run: loads what it is told, calls it once, and reads its
//! answer.
//!
//! **Invariant:** the model is told only what everyone in the audience of the run may see. No
//! transaction is open during the call, which holds the permit of the run.

use std::time::Duration;

use agent::call_limits::CallLimits;
use agent::outcome::FailureCode;
use leased_jobs::lease::CancelReason;
use sea_orm::DbErr;

use crate::conversations::audience::shared_messages;
use crate::conversations::message;
use crate::providers::json_requests::json_request;
use crate::providers::json_requests::json_request::JsonCallError;
use crate::providers::{provider, usable_providers};
use crate::runs::execution::director::request::{DirectedCharacter, DirectedMessage};
use crate::runs::execution::director::{answer, request};
use crate::runs::execution::lease::RunLease;
use crate::runs::scheduling::director::candidates;
use crate::runs::scheduling::director::choice::{DirectorAnswer, DirectorChoice, DirectorFailure};
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::services::RunServices;
use crate::runs::store::run;
use crate::spaces::membership;
use crate::spaces::space::RepliesPerTurn;
use crate::speakers::selection::{Candidate, next_in_rotation};

/// The time limit of the call: readers wait for it before a reply begins.
pub const MAX_CALL_TIME: Duration = Duration::from_secs(10);
/// How many messages the model is told.
const MAX_MESSAGES: u64 = 20;

/// The run ended or must be released while the model was asked.
#[derive(Clone, Debug)]
pub struct ChoiceCanceled {
    pub reason: CancelReason,
    pub usage: Option<run::RunUsage>,
}

/// Returns whom the director chooses. If only one character can speak, the model is not asked.
///
/// # Errors
/// Returns `ChoiceCanceled` when the run is canceled during the call.
pub async fn ask(
    context: &RunServices,
    run: &run::Model,
    lease: &RunLease,
    state: &ScheduleState,
) -> Result<DirectorChoice, ChoiceCanceled> {
    let candidates = in_rotation(state, run);
    if let [only] = candidates.as_slice() {
        let answer = DirectorAnswer {
            speakers: vec![only.id],
            reason: "the only one who can speak".to_owned(),
        };
        return Ok(DirectorChoice {
            answer: Ok(answer),
            usage: None,
        });
    }
    let prepared = match load(context, run, state, &candidates).await {
        Ok(Some(prepared)) => prepared,
        Ok(None) => return Ok(failed(run, "no_provider", None)),
        Err(error) => {
            tracing::warn!(run.id = %run.id, %error, "failed to load the request to the director: {error}");
            return Ok(failed(run, "internal", None));
        }
    };
    let PreparedCall { row, request } = prepared;
    let provider = match context.models.create(&row) {
        Ok(provider) => provider,
        Err(error) => {
            tracing::warn!(run.id = %run.id, %error, "the provider of the director cannot be used: {error}");
            return Ok(failed(run, "no_provider", None));
        }
    };
    let limits = CallLimits {
        total: context.settings.call_limits.total.min(MAX_CALL_TIME),
        ..context.settings.call_limits
    };
    let cancel = &lease.cancel;
    let response =
        json_request::send(provider.as_ref(), &row, &request, &limits, &cancel.token).await;
    let usage = response.usage.map(run::RunUsage::from);
    match response.answer {
        Ok(text) => Ok(DirectorChoice {
            answer: answer::read(&text, &candidates).ok_or(DirectorFailure::NoUsableName),
            usage,
        }),
        Err(JsonCallError::Canceled) => Err(ChoiceCanceled {
            reason: cancel.reason(),
            usage,
        }),
        Err(JsonCallError::Failed(failure)) => {
            let mut choice = failed(run, failure.code.as_str(), usage);
            if failure.code == FailureCode::RunTimeout {
                choice.answer = Err(DirectorFailure::Timeout);
            }
            Ok(choice)
        }
    }
}

/// Returns the choice after a call that failed.
fn failed(run: &run::Model, code: &str, usage: Option<run::RunUsage>) -> DirectorChoice {
    tracing::warn!(
        run.id = %run.id, space.id = %run.space_id, error = code,
        "the director of run {} has not answered ({code}); choosing as in natural order", run.id
    );
    DirectorChoice {
        answer: Err(DirectorFailure::CallFailed),
        usage,
    }
}

/// Returns the candidates, beginning with the one that is next in rotation: a model without a preference
/// tends to choose the first.
fn in_rotation(state: &ScheduleState, run: &run::Model) -> Vec<Candidate> {
    let mut candidates = candidates::list(state, run);
    let input = candidates::selection_input(state, run);
    let all: Vec<&Candidate> = candidates.iter().collect();
    let next = next_in_rotation(&input, &all).map(|it| it.id);
    let at = candidates.iter().position(|it| Some(it.id) == next);
    candidates.rotate_left(at.unwrap_or_default());
    candidates
}

/// The provider to call and the request.
struct PreparedCall {
    row: provider::Model,
    request: json_request::JsonRequest,
}

/// Returns `None` if no provider can be used.
async fn load(
    context: &RunServices,
    run: &run::Model,
    state: &ScheduleState,
    candidates: &[Candidate],
) -> Result<Option<PreparedCall>, DbErr> {
    let db = context.db.reader();
    let chosen = state.space.director_provider_id;
    let Some(row) = usable_providers::find(db, chosen, None).await? else {
        return Ok(None);
    };
    let card_of = |id| state.member(id).and_then(|it| it.character_id);
    let ids = candidates.iter().filter_map(|it| card_of(it.id));
    let cards = context.prompt_caches.cards.load(db, ids).await?;
    let characters = candidates.iter().map(|it| {
        let card = card_of(it.id).and_then(|id| cards.get(&id));
        DirectedCharacter::new(it, card.and_then(|it| it.card.as_deref()))
    });
    let characters: Vec<DirectedCharacter> = characters.collect();
    let seen = run.cutoff_seq.unwrap_or(i64::MAX);
    let (id, audience) = (run.conversation_id, run.audience.as_ref());
    let messages = shared_messages::list_newest(db, id, audience, seen, MAX_MESSAGES).await?;
    let authors = messages.iter().map(|it| it.space_membership_id);
    let names = membership::list_display_names(db, authors).await?;
    let directed = |row: message::Model| {
        let name = names.get(&row.space_membership_id).cloned();
        DirectedMessage {
            author: row.space_membership_id,
            author_name: row.persona_name.or(name).unwrap_or_default(),
            text: row.content,
            created_at: row.created_at,
        }
    };
    let messages: Vec<DirectedMessage> = messages.into_iter().map(directed).collect();
    let is_several =
        state.space.replies_per_turn == RepliesPerTurn::Activated && run.kind.is_scheduled();
    let max_speakers = request::max_speakers(is_several, candidates.len());
    Ok(Some(PreparedCall {
        request: request::build(&characters, &messages, max_speakers, row.context_tokens()),
        row,
    }))
}
