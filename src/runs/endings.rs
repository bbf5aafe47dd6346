//! What becomes of a run: its turn comes, it ends, its node dies or closes.

use crate::conversations::message;
use crate::generation::outcome::FailureCode;
use crate::generation::outcome::GenerationFailure;
use crate::ids::RunId;
use crate::rounds::round;
use crate::rounds::slot;
use crate::runs::choosing::Said;
use crate::runs::command::End;
use crate::runs::command::Refusal;
use crate::runs::command::Sent;
use crate::runs::command::Written;
use crate::runs::control;
use crate::runs::copilot;
use crate::runs::draft::Draft;
use crate::runs::draft::Turn;
use crate::runs::due::is_due;
use crate::runs::followup;
use crate::runs::plan::Change;
use crate::runs::plan::Enqueue;
use crate::runs::plan::NewMessage;
use crate::runs::plan::Reference;
use crate::runs::queue;
use crate::runs::regenerate;
use crate::runs::run;
use crate::runs::run::RunCancelReason;
use crate::spaces::membership;
use crate::spaces::space;

/// A run whose node died is tried so often, the first time included.
const MOST_ATTEMPTS: i64 = 2;

/// The run's time has come: is it still worth running?
pub fn due(d: &mut Draft, id: RunId) {
    let Some(run) = d.queued.clone().filter(|it| it.id == id) else {
        return;
    };
    if d.running.is_some() || !is_due(run.run_after, run.created_at, d.now) {
        return;
    }
    if d.s.space.status == space::SpaceStatus::Archived {
        // Planned by a step that still saw the space open: archiving has been here before.
        return control::closed(d, RunCancelReason::Archived);
    }
    if let Some(expected) = run.debug.expected_last_message_id
        && d.s.tail.as_ref().map(|it| it.id) != Some(expected)
    {
        return pass_over(d, run, "expected_last_message_mismatch");
    }
    if !may_take_its_turn(d, &run) {
        return pass_over(d, run, "speaker_unavailable");
    }
    if d.s.space.has_reached_token_limit(0) {
        let failure = token_limit_exceeded();
        return fail_at_the_claim(d, run, failure.code, &failure.message);
    }
    if d.s.provider.is_none() {
        let message = "No model is connected. Connect one, then try again.";
        return fail_at_the_claim(d, run, FailureCode::NoProvider, message);
    }
    d.queued = None;
    d.push(Change::Claim(run));
}

/// Why no model is asked in a space whose tokens are used up.
pub fn token_limit_exceeded() -> GenerationFailure {
    GenerationFailure {
        code: FailureCode::TokenLimitExceeded,
        message: "This space has used up its tokens. Its owner can raise the limit.".to_owned(),
        is_retryable: true,
    }
}

/// Whether the speaker of a run may still speak in it.
pub fn may_take_its_turn(d: &Draft, run: &run::Model) -> bool {
    let Some(seat) = d.member(run.speaker_space_membership_id) else {
        return false;
    };
    let here = d.s.conversation.id;
    match (run.kind.is_scheduled(), seat.kind) {
        (true, membership::MembershipKind::Character) => seat.can_be_scheduled(),
        (true, membership::MembershipKind::Human) => copilot::may_play(seat, here),
        (false, _) => seat.can_speak(here),
    }
}

fn pass_over(d: &mut Draft, mut run: run::Model, why: &'static str) {
    d.queued = None;
    run.debug.skipped_because = Some(why.to_owned());
    d.push(Change::SkipQueued(run.clone()));
    if d.is_current_turn(&run) {
        let tail = d.s.tail.as_ref().map(|it| Reference::Message(it.id));
        d.advance(
            slot::SlotStatus::Skipped,
            Some(why),
            Turn::after(&run, tail),
        );
    }
}

fn fail_at_the_claim(d: &mut Draft, mut run: run::Model, code: FailureCode, message: &str) {
    d.queued = None;
    // What it would have seen: a retry is possible until a newer message.
    run.cutoff_seq = Some(d.s.conversation.last_seq);
    let error = run::Error {
        code: code.to_string(),
        message: message.to_owned(),
        retryable: true,
    };
    d.push(Change::FailQueued(run.clone(), error));
    if d.is_current_turn(&run) {
        d.set_round_state(round::RoundState::Failed);
    }
}

/// The executor is done.
pub fn ended(d: &mut Draft, id: RunId, lease: i64, end: &End) -> Result<(), Refusal> {
    let mut run = still_ours(d, id, lease)?;
    d.running = None;
    if let Some(written) = end.text()
        && !is_still_member(d, &run)
    {
        discard(d, run, written);
        keep(d, id, end);
        return Ok(());
    }
    match end {
        End::Succeeded(written) => {
            commit(d, run, written, queue::End::Succeeded);
        }
        End::Canceled {
            partial: Some(written),
            ..
        } => {
            run.canceled_because = Some(RunCancelReason::Stopped);
            commit(d, run, written, queue::End::Canceled);
        }
        End::Canceled {
            partial: None,
            usage,
            prompt,
        } => {
            note(&mut run, *usage, prompt.as_ref());
            run.canceled_because = Some(RunCancelReason::Stopped);
            d.push(Change::Finish {
                run,
                end: queue::End::Canceled,
            });
        }
        End::Failed {
            error,
            usage,
            prompt,
        } => {
            note(&mut run, *usage, prompt.as_ref());
            let end = queue::End::Failed(error.clone());
            d.push(Change::Finish {
                run: run.clone(),
                end,
            });
            if d.is_current_turn(&run) {
                d.set_round_state(round::RoundState::Failed);
            }
        }
    }
    keep(d, id, end);
    Ok(())
}

fn is_still_member(d: &Draft, run: &run::Model) -> bool {
    let speaker = d.member(run.speaker_space_membership_id);
    speaker.is_some_and(|it| it.status == membership::MembershipStatus::Active)
}

/// The speaker was removed meanwhile: the text is not stored, and the turn passes on.
fn discard(d: &mut Draft, mut run: run::Model, written: &Written) {
    note(&mut run, written.usage, written.prompt.as_ref());
    run.canceled_because = Some(RunCancelReason::SpeakerUnavailable);
    d.push(Change::Finish {
        run: run.clone(),
        end: queue::End::Canceled,
    });
    if d.is_current_turn(&run) {
        let next = Turn::new(run.kind, run::RunReason::NextSlot);
        d.advance(slot::SlotStatus::Skipped, Some("not_schedulable"), next);
    }
}

/// What was sent is kept for whoever asks. What macros and lore have noted is remembered if the turn
/// came to its end, and as if it had never been if it did not.
fn keep(d: &mut Draft, run: RunId, end: &End) {
    let Some(sent) = end.sent() else {
        return;
    };
    d.push(Change::Keep(run, sent.record.clone()));
    if d.has_succeeded(run) {
        d.push(Change::Remember(sent.memory.clone()));
    }
}

/// The text becomes a message, and the slot is spoken.
fn commit(d: &mut Draft, mut run: run::Model, written: &Written, end: queue::End) {
    note(&mut run, written.usage, written.prompt.as_ref());
    if run.debug.target_message_id.is_some() {
        return regenerate::commit(d, run, written, end);
    }
    // The fence first: if it does not hold, nothing of this plan is written.
    d.push(Change::Finish {
        run: run.clone(),
        end,
    });
    let speaks_as_human = d
        .member(run.speaker_space_membership_id)
        .is_some_and(|it| it.kind == membership::MembershipKind::Human);
    d.push(Change::Append(NewMessage {
        author: run.speaker_space_membership_id,
        role: if speaks_as_human {
            message::MessageRole::User
        } else {
            message::MessageRole::Assistant
        },
        content: written.content.clone(),
        token_count: written.token_count,
        client_id: None,
        run: Some(run.id),
        alternates: Vec::new(),
        metadata: written.metadata.clone(),
    }));
    let was_stopped = run.cancel_requested_at.is_some();
    let mut rests = false;
    if d.is_current_turn(&run) {
        rests = !in_progress(d);
        let turn = Turn::after(&run, Some(Reference::Appended));
        d.advance(slot::SlotStatus::Spoken, None, turn);
    }
    let said = Said {
        author: run.speaker_space_membership_id,
        text: &written.content,
        mentions: &[],
    };
    if speaks_as_human {
        copilot::spoke(d, &said, was_stopped);
    } else if !was_stopped {
        followup::after_text(d, &said, rests);
    }
}

/// What it cost is added to what it had cost before it was handed back; the space's count rises
/// with the end of the run.
fn note(run: &mut run::Model, usage: Option<run::Usage>, prompt: Option<&Sent>) {
    run.usage = run::Usage::and(run.usage, usage);
    run.debug.prompt = prompt.map(|it| it.figures.clone());
}

/// The run's heartbeat stopped. A crash must not cost a reader their reply: the same turn is
/// planned once more, unless something newer waits.
pub fn abandoned(d: &mut Draft, id: RunId, lease: i64, silent_for_ms: i64) -> Result<(), Refusal> {
    let mut run = still_ours(d, id, lease)?;
    d.running = None;
    if run.cancel_requested_at.is_some() {
        run.canceled_because = Some(RunCancelReason::Stopped);
        d.push(Change::Expire {
            run,
            end: queue::End::Canceled,
            silent_for_ms,
        });
        return Ok(());
    }
    let error = run::Error {
        code: FailureCode::StaleRunningRun.to_string(),
        message: "The server stopped while this reply was being written.".to_owned(),
        retryable: true,
    };
    d.push(Change::Expire {
        run: run.clone(),
        end: queue::End::Failed(error),
        silent_for_ms,
    });
    if d.queued.is_some() {
        return Ok(());
    }
    let again = run.attempt < MOST_ATTEMPTS;
    match (run.round_id.is_some(), d.is_current_turn(&run)) {
        (true, true) if again && in_progress(d) => {
            let turn = Turn {
                attempt: run.attempt + 1,
                ..Turn::new(run.kind_of_next_slot(), run::RunReason::Recovered)
            };
            d.queue_current_slot(turn);
        }
        (true, true) => d.set_round_state(round::RoundState::Failed),
        // A round that is over wants nothing any more.
        (true, false) => {}
        (false, _) if again => replan(d, &run, run::RunReason::Recovered, run.attempt + 1),
        (false, _) => {}
    }
    Ok(())
}

fn in_progress(d: &Draft) -> bool {
    d.round
        .as_ref()
        .is_some_and(|it| it.row.state == round::RoundState::Generating)
}

/// The same kind, speaker and target once more, for a run without a round.
pub fn replan(d: &mut Draft, run: &run::Model, reason: run::RunReason, attempt: i64) {
    let mut again = d.blank_run(run.speaker_space_membership_id, run.kind, reason);
    again.attempt = attempt;
    again.debug = run::Debug {
        chosen_because: run.debug.chosen_because.clone(),
        target_message_id: run.debug.target_message_id,
        expected_last_message_id: run.debug.expected_last_message_id,
        ..Default::default()
    };
    let trigger = run.debug.trigger_message_id.map(Reference::Message);
    let expected_tail = run.debug.expected_last_message_id.map(Reference::Message);
    d.enqueue(Enqueue {
        run: again,
        trigger,
        expected_tail,
    });
}

/// A closing node puts a run back, for another one to go on with at once.
pub fn handed_back(
    d: &mut Draft,
    (id, lease): (RunId, i64),
    usage: Option<run::Usage>,
) -> Result<(), Refusal> {
    let mut run = still_ours(d, id, lease)?;
    run.usage = run::Usage::and(run.usage, usage);
    d.running = Some(run.clone());
    let superseded = d.queued.is_some();
    let stopped = run.cancel_requested_at.is_some();
    // Its slot waits at the cursor for a person; queued, it would speak before.
    let rests = d.is_current_turn(&run) && !in_progress(d);
    let reason = match (superseded, stopped) {
        (true, _) => Some(RunCancelReason::Superseded),
        (false, true) => Some(RunCancelReason::Stopped),
        (false, false) => rests.then_some(RunCancelReason::Paused),
    };
    if let Some(reason) = reason {
        d.cancel_running(reason);
        return Ok(());
    }
    d.running = None;
    d.push(Change::HandBack(run));
    Ok(())
}

/// A round goes on, but nothing moves it: a person may try again.
pub fn adrift(d: &mut Draft) -> Result<(), Refusal> {
    if d.running.is_some() || d.queued.is_some() || !in_progress(d) {
        return Err(Refusal::NoRound); // somebody else was faster
    }
    d.end_round(round::RoundStatus::Canceled, "left_without_a_run");
    Ok(())
}

fn still_ours(d: &Draft, id: RunId, lease: i64) -> Result<run::Model, Refusal> {
    d.running
        .clone()
        .filter(|it| it.id == id && it.lease == lease)
        .ok_or(Refusal::AlreadyFinished)
}
