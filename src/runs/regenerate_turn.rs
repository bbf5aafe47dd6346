//! A whole turn once more: what followed a human's message goes, and it is answered again.

use crate::conversations::message;
use crate::ids::MessageId;
use crate::rounds::round;
use crate::runs::choosing;
use crate::runs::choosing::Said;
use crate::runs::command::Refusal;
use crate::runs::draft::Draft;
use crate::runs::draft::Turn;
use crate::runs::plan::Change;
use crate::runs::plan::Reference;
use crate::runs::run;
use crate::spaces::space::GroupRegenerateMode;
use crate::spaces::space::ReplyOrder;
use crate::speakers::selection::SpeakerChoice;

/// The human's message that a regenerate is about, where it means the whole turn: in a group whose
/// space says so, if a human has spoken. In manual order nobody would answer it.
pub fn is_about<'a>(d: &Draft<'a>) -> Option<&'a message::Model> {
    let whole_turns = d.s.space.group_regenerate_mode == GroupRegenerateMode::LastTurn;
    let is_group = d.s.candidates().len() > 1;
    let somebody_answers = d.s.space.reply_order != ReplyOrder::Manual;
    let said = d.s.answered.as_ref();
    said.filter(|_| whole_turns && is_group && somebody_answers)
}

/// What follows `said` is hidden, and a new round answers it.
///
/// # Errors
/// [`Refusal::BranchFirst`] when other people's words or a branch were built on what would go.
pub fn last_turn(d: &mut Draft, said: &message::Model) -> Result<(), Refusal> {
    let choices = who_answers(d, said)?;
    let by_human = |it: &message::Model| it.role == message::MessageRole::User;
    if d.s.turn_has_fork_point || d.s.turn.iter().any(by_human) {
        return Err(Refusal::BranchFirst(said.id));
    }
    d.end_round(round::RoundStatus::Canceled, "regenerate");
    d.cancel_running(run::RunCancelReason::Superseded);
    d.push(Change::HideTurn(d.s.turn.clone()));
    begin(d, said.id, choices);
    Ok(())
}

/// The tail is a human's message, and is answered again: at the beginning of a branch.
///
/// # Errors
/// [`Refusal::NothingToRegenerate`], [`Refusal::NoSpeaker`].
pub fn answer_again(d: &mut Draft) -> Result<(), Refusal> {
    let tail = d.s.tail.as_ref();
    let said = tail.filter(|it| it.role == message::MessageRole::User);
    let said = said.ok_or(Refusal::NothingToRegenerate)?;
    let choices = who_answers(d, said)?;
    d.end_round(round::RoundStatus::Canceled, "regenerate");
    d.cancel_running(run::RunCancelReason::Superseded);
    begin(d, said.id, choices);
    Ok(())
}

/// Who would answer the message if it were said now.
fn who_answers(d: &Draft, said: &message::Model) -> Result<Vec<SpeakerChoice>, Refusal> {
    let said = Said {
        author: said.space_membership_id,
        text: &said.content,
        mentions: &[],
    };
    let choices = choosing::after_human(d, &said);
    match choices.is_empty() {
        true => Err(Refusal::NoSpeaker),
        false => Ok(choices),
    }
}

fn begin(d: &mut Draft, said: MessageId, choices: Vec<SpeakerChoice>) {
    d.new_round(
        round::RoundKind::UserTurn,
        choices,
        Reference::Message(said),
    );
    d.queue_current_slot(Turn::new(run::RunKind::UserTurn, run::RunReason::LastTurn));
}
