//! Tests of editing the queue of a round.

use base::ids::{MembershipId, RoundId};

use crate::conversations::audience::viewer::Viewer;
use crate::rounds::round::RoundState;
use crate::runs::scheduling::command::{Command, CommandError, SlotsEdit};
use crate::runs::scheduling::planner::fixture::{
    ADA, BOB, EVE, PlannerFixture, RETRY, failure, success,
};
use crate::spaces::membership::{MembershipStatus, Participation};
use crate::spaces::space::RepliesPerTurn;

const CID: MembershipId = MembershipId(4);

/// Ada's turn is queued after a debounce, in a round of Ada, Bob and Cid.
fn queued() -> PlannerFixture {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob", "Cid"]);
    fixture.state.space.replies_per_turn = RepliesPerTurn::Activated;
    fixture.state.space.user_turn_debounce_ms = 500;
    fixture.post_as_eve("Hi.").unwrap();
    fixture
}

/// Ada's turn is running.
fn running() -> PlannerFixture {
    let mut fixture = queued();
    fixture.now = fixture.now.plus_ms(500);
    fixture.claim_due();
    fixture
}

pub fn edit(round: RoundId, slots: &[MembershipId]) -> Command {
    Command::EditQueue(SlotsEdit {
        round,
        slots: slots.iter().copied().map(Some).collect(),
        by: "Eve".to_owned(),
        viewer: Viewer::Server,
    })
}

impl PlannerFixture {
    fn edit_queue(&mut self, slots: &[MembershipId]) -> Result<Vec<String>, CommandError> {
        let round = self.state.round.as_ref().expect("a round").id;
        self.run_command(&edit(round, slots))
    }

    /// Returns the pending speakers with their reasons.
    fn pending_slots(&self) -> Vec<(Option<MembershipId>, &str)> {
        let round = self.state.round.as_ref().expect("a round");
        let slots = round.slots.0.iter();
        slots
            .filter(|it| it.position >= round.cursor)
            .map(|it| (it.space_membership_id, it.chosen_because.as_str()))
            .collect()
    }

    /// Returns the speakers until the round is over.
    fn speakers_until_end(&mut self) -> Vec<MembershipId> {
        let before = self.messages.len();
        while self.state.queued.is_some() || self.state.running.is_some() {
            if self.state.running.is_none() {
                self.now = self.now.plus_ms(1_000);
                self.claim_due();
            }
            self.end_run(success("Well."));
        }
        let new_messages = self.messages[before..].iter();
        new_messages.map(|it| it.space_membership_id).collect()
    }
}

#[test]
fn the_list_replaces_the_slots_after_the_running_one() {
    let mut fixture = running();

    let plan = fixture.edit_queue(&[CID, BOB, CID]).unwrap();

    assert_eq!(plan, ["slots from 1: Cid, Bob, Cid"]);
    assert_eq!(fixture.speakers_until_end(), [ADA, CID, BOB, CID]);
}

#[test]
fn the_slot_at_the_cursor_is_replaced_too_while_its_run_is_queued() {
    let mut fixture = queued();
    let before = fixture.state.queued.clone().unwrap();

    let plan = fixture.edit_queue(&[CID, ADA]).unwrap();

    let expected = [
        "slots from 0: Cid, Ada",
        "queue Cid: user_turn, user_message, in 500 ms",
    ];
    assert_eq!(plan, expected);
    let after = fixture.state.queued.clone().unwrap();
    assert_eq!(after.id, before.id, "the row keeps its id");
    assert_eq!(after.burst_started_at, before.burst_started_at);
    assert_eq!(
        after.debug.trigger_message_id,
        before.debug.trigger_message_id
    );
    assert_eq!(fixture.speakers_until_end(), [CID, ADA]);
}

#[test]
fn the_run_of_an_unchanged_first_slot_is_kept() {
    let mut fixture = queued();
    let before = fixture.state.queued.clone();

    let plan = fixture.edit_queue(&[ADA, CID]).unwrap();

    assert_eq!(plan, ["slots from 0: Ada, Cid"]);
    assert_eq!(fixture.state.queued, before);
}

#[test]
fn kept_slots_keep_their_reason_and_new_slots_name_the_editor() {
    let mut fixture = queued();

    fixture.edit_queue(&[BOB, BOB, ADA]).unwrap();

    let by_position = "next by position";
    let expected = [
        (Some(BOB), by_position),
        (Some(BOB), "put in the queue by Eve"),
        (Some(ADA), by_position),
    ];
    assert_eq!(fixture.pending_slots(), expected);
}

#[test]
fn the_same_list_changes_nothing() {
    assert!(queued().edit_queue(&[ADA, BOB, CID]).unwrap().is_empty());
    assert!(running().edit_queue(&[BOB, CID]).unwrap().is_empty());
}

#[test]
fn an_unschedulable_member_cannot_be_queued() {
    let refusal = |change: fn(&mut PlannerFixture), slots: &[MembershipId]| {
        let mut fixture = queued();
        change(&mut fixture);
        fixture.edit_queue(slots).unwrap_err()
    };

    let mute: fn(&mut PlannerFixture) =
        |it| it.member_mut(BOB).participation = Participation::Muted;
    let remove: fn(&mut PlannerFixture) =
        |it| it.member_mut(BOB).status = MembershipStatus::Removed;
    assert_eq!(refusal(mute, &[ADA, BOB]), CommandError::NotSchedulable);
    assert_eq!(refusal(remove, &[BOB]), CommandError::NotSchedulable);
    assert_eq!(refusal(|_| (), &[EVE]), CommandError::NotSchedulable);
    let unknown = MembershipId(99);
    assert_eq!(refusal(|_| (), &[unknown]), CommandError::NotSchedulable);
}

#[test]
fn a_list_for_another_round_is_stale() {
    let mut fixture = running();
    let old = fixture.state.round.as_ref().unwrap().id;
    fixture.post_as_eve("And now?").unwrap();
    let mut idle = PlannerFixture::with_characters(&["Ada"]);

    assert_eq!(
        fixture.run_command(&edit(old, &[BOB])),
        Err(CommandError::StaleRound)
    );
    assert_eq!(
        idle.run_command(&edit(old, &[ADA])),
        Err(CommandError::StaleRound)
    );
}

#[test]
fn an_empty_queue_finishes_the_round_once_no_reply_runs() {
    let mut waits = queued();
    let mut speaks = running();

    let of_queued = waits.edit_queue(&[]).unwrap();
    let of_running = speaks.edit_queue(&[]).unwrap();

    let expected = [
        "slots from 0: ",
        "cancel queued Ada",
        "round finished: queue_emptied",
    ];
    assert_eq!(of_queued, expected);
    assert_eq!(of_running, ["slots from 1: "]);
    assert_eq!(speaks.speakers_until_end(), [ADA]);
    assert!(speaks.state.round.is_none());
}

#[test]
fn a_paused_or_failed_round_keeps_its_state_when_its_queue_is_edited() {
    let mut paused = running();
    paused.run_command(&Command::Pause).unwrap();
    paused.end_run(success("Well."));
    let mut failed = running();
    failed.end_run(failure());

    let of_paused = paused.edit_queue(&[CID]).unwrap();
    let of_failed = failed.edit_queue(&[CID, BOB]).unwrap();

    assert_eq!(of_paused, ["slots from 1: Cid"]);
    assert_eq!(of_failed, ["slots from 0: Cid, Bob"]);
    let state = |fixture: &PlannerFixture| fixture.state.round.as_ref().map(|it| it.state);
    assert_eq!(state(&paused), Some(RoundState::Paused));
    assert_eq!(state(&failed), Some(RoundState::Failed));
    paused.run_command(&Command::Resume).unwrap();
    failed.run_command(&RETRY).unwrap();
    assert_eq!(paused.speakers_until_end(), [CID]);
    assert_eq!(failed.speakers_until_end(), [CID, BOB]);
}

#[test]
fn a_running_reply_of_an_older_round_does_not_protect_the_first_slot() {
    let mut fixture = running();
    fixture.post_as_eve("And now?").unwrap();

    fixture.edit_queue(&[CID]).unwrap();

    assert_eq!(fixture.speakers_until_end(), [ADA, CID]);
}
