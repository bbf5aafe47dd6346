//! What becomes of a round whose queue a person puts together anew.

use crate::ids::MembershipId;
use crate::ids::RoundId;
use crate::rounds::round::RoundState;
use crate::runs::command::Command;
use crate::runs::command::Refusal;
use crate::runs::planner::stage::ADA;
use crate::runs::planner::stage::BOB;
use crate::runs::planner::stage::EVE;
use crate::runs::planner::stage::Stage;
use crate::runs::planner::stage::failure;
use crate::runs::planner::stage::success;
use crate::spaces::membership::MembershipStatus;
use crate::spaces::membership::Participation;
use crate::spaces::space::RepliesPerTurn;

const CID: MembershipId = MembershipId(4);

/// Ada's turn of a round of Ada, Bob and Cid is queued, after a debounce.
fn queued() -> Stage {
    let mut stage = Stage::of(&["Ada", "Bob", "Cid"]);
    stage.s.space.replies_per_turn = RepliesPerTurn::Activated;
    stage.s.space.user_turn_debounce_ms = 500;
    stage.eve_says("Hi.").unwrap();
    stage
}

/// Ada's turn is running.
fn running() -> Stage {
    let mut stage = queued();
    stage.now = stage.now.plus_ms(500);
    stage.due();
    stage
}

pub fn edit(round: RoundId, slots: &[MembershipId]) -> Command {
    Command::EditQueue {
        round,
        slots: slots.to_vec(),
        by: "Eve".to_owned(),
    }
}

impl Stage {
    fn edits(&mut self, slots: &[MembershipId]) -> Result<Vec<String>, Refusal> {
        let round = self.s.round.as_ref().expect("a round").row.id;
        self.does(&edit(round, slots))
    }

    /// Who is yet to speak, with the reason.
    fn pending(&self) -> Vec<(MembershipId, &str)> {
        let round = self.s.round.as_ref().expect("a round");
        let slots = round.slots.iter();
        slots
            .filter(|it| it.position >= round.row.cursor)
            .map(|it| (it.space_membership_id, it.chosen_because.as_str()))
            .collect()
    }

    /// Who speaks until the round is over.
    fn plays_out(&mut self) -> Vec<MembershipId> {
        let before = self.messages.len();
        while self.s.queued.is_some() || self.s.running.is_some() {
            if self.s.running.is_none() {
                self.now = self.now.plus_ms(1_000);
                self.due();
            }
            self.ends(success("Well."));
        }
        let said = self.messages[before..].iter();
        said.map(|it| it.space_membership_id).collect()
    }
}

#[test]
fn the_list_replaces_the_slots_after_the_one_that_speaks() {
    let mut stage = running();

    let plan = stage.edits(&[CID, BOB, CID]).unwrap();

    assert_eq!(plan, ["slots from 1: Cid, Bob, Cid"]);
    assert_eq!(stage.plays_out(), [ADA, CID, BOB, CID]);
}

#[test]
fn while_its_reply_has_not_begun_the_slot_at_the_cursor_is_replaced_too() {
    let mut stage = queued();
    let before = stage.s.queued.clone().unwrap();

    let plan = stage.edits(&[CID, ADA]).unwrap();

    let expected = [
        "slots from 0: Cid, Ada",
        "queue Cid: user_turn, user_message, in 500 ms",
    ];
    assert_eq!(plan, expected);
    let after = stage.s.queued.clone().unwrap();
    assert_eq!(after.id, before.id, "the row keeps its id");
    assert_eq!(after.burst_started_at, before.burst_started_at);
    assert_eq!(
        after.debug.trigger_message_id,
        before.debug.trigger_message_id
    );
    assert_eq!(stage.plays_out(), [CID, ADA]);
}

#[test]
fn who_stays_first_keeps_the_run_as_it_is() {
    let mut stage = queued();
    let before = stage.s.queued.clone();

    let plan = stage.edits(&[ADA, CID]).unwrap();

    assert_eq!(plan, ["slots from 0: Ada, Cid"]);
    assert_eq!(stage.s.queued, before);
}

#[test]
fn who_was_there_keeps_the_reason_and_who_is_new_says_by_whom() {
    let mut stage = queued();

    stage.edits(&[BOB, BOB, ADA]).unwrap();

    let by_position = "next by position";
    let expected = [
        (BOB, by_position),
        (BOB, "put in the queue by Eve"),
        (ADA, by_position),
    ];
    assert_eq!(stage.pending(), expected);
}

#[test]
fn the_same_list_changes_nothing() {
    assert!(queued().edits(&[ADA, BOB, CID]).unwrap().is_empty());
    assert!(running().edits(&[BOB, CID]).unwrap().is_empty());
}

#[test]
fn who_cannot_be_scheduled_cannot_be_put_in_the_queue() {
    let refusal = |change: fn(&mut Stage), slots: &[MembershipId]| {
        let mut stage = queued();
        change(&mut stage);
        stage.edits(slots).unwrap_err()
    };

    let mute: fn(&mut Stage) = |it| it.seat(BOB).participation = Participation::Muted;
    let remove: fn(&mut Stage) = |it| it.seat(BOB).status = MembershipStatus::Removed;
    assert_eq!(refusal(mute, &[ADA, BOB]), Refusal::NotSchedulable);
    assert_eq!(refusal(remove, &[BOB]), Refusal::NotSchedulable);
    assert_eq!(refusal(|_| (), &[EVE]), Refusal::NotSchedulable);
    let stranger = MembershipId(99);
    assert_eq!(refusal(|_| (), &[stranger]), Refusal::NotSchedulable);
}

#[test]
fn a_list_for_another_round_is_stale() {
    let mut stage = running();
    let old = stage.s.round.as_ref().unwrap().row.id;
    stage.eve_says("And now?").unwrap();
    let mut idle = Stage::of(&["Ada"]);

    assert_eq!(stage.does(&edit(old, &[BOB])), Err(Refusal::StaleRound));
    assert_eq!(idle.does(&edit(old, &[ADA])), Err(Refusal::StaleRound));
}

#[test]
fn nobody_left_finishes_the_round_once_nobody_speaks() {
    let mut waits = queued();
    let mut speaks = running();

    let of_queued = waits.edits(&[]).unwrap();
    let of_running = speaks.edits(&[]).unwrap();

    let expected = [
        "slots from 0: ",
        "cancel queued Ada",
        "round finished: queue_emptied",
    ];
    assert_eq!(of_queued, expected);
    assert_eq!(of_running, ["slots from 1: "]);
    assert_eq!(speaks.plays_out(), [ADA]);
    assert!(speaks.s.round.is_none());
}

#[test]
fn a_round_that_rests_goes_on_resting_with_its_new_queue() {
    let mut paused = running();
    paused.does(&Command::Pause).unwrap();
    paused.ends(success("Well."));
    let mut failed = running();
    failed.ends(failure());

    let of_paused = paused.edits(&[CID]).unwrap();
    let of_failed = failed.edits(&[CID, BOB]).unwrap();

    assert_eq!(of_paused, ["slots from 1: Cid"]);
    assert_eq!(of_failed, ["slots from 0: Cid, Bob"]);
    let state = |stage: &Stage| stage.s.round.as_ref().map(|it| it.row.state);
    assert_eq!(state(&paused), Some(RoundState::Paused));
    assert_eq!(state(&failed), Some(RoundState::Failed));
    paused.does(&Command::Resume).unwrap();
    failed.does(&Command::Retry).unwrap();
    assert_eq!(paused.plays_out(), [CID]);
    assert_eq!(failed.plays_out(), [CID, BOB]);
}

#[test]
fn a_reply_of_an_older_round_does_not_hold_the_first_slot() {
    let mut stage = running();
    stage.eve_says("And now?").unwrap();

    stage.edits(&[CID]).unwrap();

    assert_eq!(stage.plays_out(), [ADA, CID]);
}
