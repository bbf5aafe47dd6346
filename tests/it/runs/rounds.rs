//! Tests rounds of several speakers through the whole engine: their order, and what interrupts it.

use serde_json::json;
use tavern::cards::card::Card;
use troupe::characters::character;
use troupe::conversations::message::Visibility;
use troupe::rounds::active_round::ActiveRound;
use troupe::rounds::{round, slot};
use troupe::runs::error::EngineError;
use troupe::runs::reading::views::ConversationState;
use troupe::runs::scheduling::command::CommandError;
use troupe::runs::store::run::{RunReason, RunStatus};
use troupe::spaces::membership;
use troupe::spaces::membership::Participation;
use troupe::spaces::space::{InputPolicy, RepliesPerTurn, ReplyOrder};

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::engine_test_builder::EngineTestBuilder;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};

fn blueprint(backend: TestBackend) -> EngineTestBuilder {
    EngineTest::builder(backend)
        .cast(&["Ada", "Bob", "Cid"])
        .rules(|it| it.replies_per_turn = RepliesPerTurn::Activated)
}

/// Ada has answered, and Bob has produced "One" of "One two three."; Cid is next.
async fn in_the_middle_of(blueprint: EngineTestBuilder) -> (EngineTest, HoldPoint) {
    let room = blueprint.open().await;
    let gate = HoldPoint::closed();
    room.upstream.next(ResponseScript::say("I am Ada."));
    room.upstream
        .next(ResponseScript::say("One two three.").held_at(&gate));
    room.user.post("Count.").await;
    gate.step();
    room.events.wait_for_text("One").await;
    (room, gate)
}

async fn in_the_middle(backend: TestBackend) -> (EngineTest, HoldPoint) {
    in_the_middle_of(blueprint(backend)).await
}

impl EngineTest {
    /// The authors of the messages, in order.
    pub async fn speakers(&self) -> Vec<String> {
        let seats = membership::list_for_space(self.db.reader(), self.space).await;
        let seats = seats.expect("the database answers");
        let name = |id| {
            let seat = seats.iter().find(|it| it.id == id);
            seat.expect("a seat").cached_display_name.clone()
        };
        let all = self.messages().await.into_iter();
        all.map(|it| name(it.space_membership_id)).collect()
    }

    pub async fn round(&self) -> ActiveRound {
        self.runtime().await.round.expect("a round is active")
    }

    /// State, cursor, and the status of each slot.
    pub async fn place(&self) -> (round::RoundState, i64, Vec<slot::SlotStatus>) {
        let round = self.round().await;
        let slots = round.slots.iter().map(|it| it.status).collect();
        (round.row.state, round.row.cursor, slots)
    }

    pub async fn mute(&self, name: &str) {
        self.change_membership(name, |it| it.participation = Participation::Muted)
            .await;
        let seat = self.membership(name).await.id;
        let told = self.engine.member_changed(self.space, seat).await;
        told.expect("the schedule is told");
    }

    async fn set_talkativeness(&self, name: &str, talkativeness: f64) {
        let id = self
            .membership(name)
            .await
            .character_id
            .expect("a character");
        let card = json!({"name": name, "extensions": {"talkativeness": talkativeness}});
        let document = json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": card});
        let card = Card::from_document(document).expect("a card");
        let replaced = character::replace_card(&self.db, id, card).await;
        replaced.expect("the card is replaced");
    }
}

const SPOKEN: slot::SlotStatus = slot::SlotStatus::Spoken;
const SKIPPED: slot::SlotStatus = slot::SlotStatus::Skipped;
const PENDING: slot::SlotStatus = slot::SlotStatus::Pending;

on_sqlite! {
    async fn the_speakers_of_a_round_speak_one_after_the_other(backend) {
        let room = blueprint(backend).open().await;

        room.user.post("Hello.").await;
        room.settle().await;

        assert_eq!(room.speakers().await, ["Eve", "Ada", "Bob", "Cid"]);
        let runs = room.runs().await;
        let turns: Vec<_> = runs.iter().map(|it| (it.slot_position, it.reason, it.cutoff_seq)).collect();
        let expected = [
            (Some(0), RunReason::UserMessage, Some(1)),
            (Some(1), RunReason::NextSlot, Some(2)),
            (Some(2), RunReason::NextSlot, Some(3)),
        ];
        assert_eq!(turns, expected, "each has seen what was said before");
        assert!(runs.iter().all(|it| it.round_id == runs[0].round_id));
        assert!(runs.iter().all(|it| it.view().chosen_because.as_deref() == Some("next by position")));
        assert_eq!(room.runtime().await.state(), ConversationState::Idle);
        room.close().await;
    }

    async fn natural_order_uses_the_talkativeness_of_the_membership_else_of_the_card(backend) {
        let room = blueprint(backend).rules(|it| it.reply_order = ReplyOrder::Natural).open().await;
        room.set_talkativeness("Ada", 1.0).await;
        room.set_talkativeness("Bob", 0.0).await;
        room.set_talkativeness("Cid", 0.0).await;
        room.change_membership("Cid", |it| it.talkativeness = Some(1.0)).await;

        room.user.post("Well?").await;
        room.settle().await;

        let mut spoke = room.speakers().await.split_off(1);
        spoke.sort();
        assert_eq!(spoke, ["Ada", "Cid"]);
        let because = room.runs().await[0].debug.chosen_because.clone().unwrap();
        assert!(because.starts_with("drew 0.") && because.ends_with("≤ 1.00"), "{because}");
        room.close().await;
    }

    async fn under_queue_a_message_in_the_middle_comes_before_the_reply_and_ends_the_round(backend) {
        let (room, gate) = in_the_middle(backend).await;
        let first = room.round().await.row.id;

        room.user.post("And then?").await;
        gate.open();
        room.settle().await;

        let expected = ["Eve", "Ada", "Eve", "Bob", "Ada", "Bob", "Cid"];
        assert_eq!(room.speakers().await, expected, "Cid's turn of the first round is gone");
        let of_first = room.runs().await.iter().filter(|it| it.round_id == Some(first)).count();
        assert_eq!(of_first, 2);
        room.close().await;
    }

    async fn under_restart_a_message_in_the_middle_drops_the_reply_and_the_round(backend) {
        let rules = blueprint(backend).rules(|it| it.during_generation_user_input_policy = InputPolicy::Restart);
        let (room, gate) = in_the_middle_of(rules).await;

        room.user.post("And then?").await;
        gate.open();
        room.settle().await;

        assert_eq!(room.speakers().await, ["Eve", "Ada", "Eve", "Ada", "Bob", "Cid"]);
        assert_eq!(room.runs().await[1].status, RunStatus::Canceled);
        room.close().await;
    }

    async fn under_reject_a_message_in_the_middle_is_refused(backend) {
        let rules = blueprint(backend).rules(|it| it.during_generation_user_input_policy = InputPolicy::Reject);
        let (room, gate) = in_the_middle_of(rules).await;

        let refused = room.user.try_post("And then?").await;
        gate.open();
        room.settle().await;

        assert!(matches!(refused, Err(EngineError::Rejected(CommandError::GenerationLocked))));
        assert_eq!(room.speakers().await, ["Eve", "Ada", "Bob", "Cid"]);
        room.close().await;
    }

    async fn a_stopped_round_keeps_its_place_and_resumes_there(backend) {
        let (room, gate) = in_the_middle(backend).await;

        room.engine.stop(room.conversation, false).await.unwrap();
        gate.open();
        let stopped = room.place().await;
        room.engine.resume(room.conversation).await.unwrap();
        room.settle().await;

        assert_eq!(stopped, (round::RoundState::Paused, 1, vec![SPOKEN, PENDING, PENDING]));
        assert_eq!(room.speakers().await, ["Eve", "Ada", "Bob", "Cid"]);
        room.close().await;
    }

    async fn what_a_stop_keeps_makes_the_slot_spoken_and_the_next_one_waits(backend) {
        let (room, gate) = in_the_middle(backend).await;

        room.engine.stop(room.conversation, true).await.unwrap();
        room.upstream.wait_for_disconnect(1).await;
        gate.open();
        room.settle().await;
        let stopped = room.place().await;
        room.engine.resume(room.conversation).await.unwrap();
        room.settle().await;

        assert_eq!(stopped, (round::RoundState::Paused, 2, vec![SPOKEN, SPOKEN, PENDING]));
        assert_eq!(room.answers().await, ["I am Ada.", "One", "Hello."]);
        room.close().await;
    }

    async fn a_paused_round_lets_its_reply_finish_and_goes_on_with_the_next(backend) {
        let (room, gate) = in_the_middle(backend).await;

        room.engine.pause(room.conversation).await.unwrap();
        gate.open();
        room.settle().await;
        let paused = room.place().await;
        room.engine.resume(room.conversation).await.unwrap();
        room.settle().await;

        assert_eq!(paused, (round::RoundState::Paused, 2, vec![SPOKEN, SPOKEN, PENDING]));
        assert_eq!(room.speakers().await, ["Eve", "Ada", "Bob", "Cid"]);
        room.close().await;
    }

    async fn a_skip_cancels_the_reply_and_the_next_one_speaks(backend) {
        let (room, gate) = in_the_middle(backend).await;

        room.engine.skip(room.conversation).await.unwrap();
        gate.open();
        room.settle().await;

        assert_eq!(room.speakers().await, ["Eve", "Ada", "Cid"]);
        let statuses: Vec<_> = room.runs().await.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [RunStatus::Succeeded, RunStatus::Canceled, RunStatus::Succeeded]);
        room.close().await;
    }

    async fn a_speaker_muted_while_speaking_is_canceled_and_the_next_one_speaks(backend) {
        let (room, gate) = in_the_middle(backend).await;

        room.mute("Bob").await;
        let place = room.place().await;
        gate.open();
        room.settle().await;

        assert_eq!(place.2, [SPOKEN, SKIPPED, PENDING]);
        assert_eq!(room.speakers().await, ["Eve", "Ada", "Cid"]);
        room.close().await;
    }

    async fn a_speaker_muted_before_its_turn_is_skipped(backend) {
        let (room, gate) = in_the_middle(backend).await;

        room.mute("Cid").await;
        let place = room.place().await;
        gate.open();
        room.settle().await;

        assert_eq!(place.2, [SPOKEN, PENDING, PENDING], "its turn has not come");
        assert_eq!(room.speakers().await, ["Eve", "Ada", "Bob"]);
        let mut facts = room.facts().await;
        let skipped = facts.rows("SELECT skip_reason FROM round_slots WHERE status = 'skipped'").await;
        assert_eq!(skipped.len(), 1);
        assert!(format!("{skipped:?}").contains("not_schedulable"), "{skipped:?}");
        assert_eq!(room.runtime().await.state(), ConversationState::Idle);
        room.close().await;
    }

    async fn when_all_remaining_speakers_are_muted_the_round_ends(backend) {
        let (room, gate) = in_the_middle(backend).await;

        room.mute("Cid").await;
        room.mute("Bob").await;
        gate.open();
        room.settle().await;

        assert_eq!(room.speakers().await, ["Eve", "Ada"]);
        assert_eq!(room.runtime().await.state(), ConversationState::Idle);
        room.close().await;
    }

    async fn switched_to_manual_the_reply_finishes_and_no_speaker_follows(backend) {
        let (room, gate) = in_the_middle(backend).await;

        room.change_rules(|it| it.reply_order = ReplyOrder::Manual).await;
        room.engine.settings_changed(room.space).await.unwrap();
        gate.open();
        room.settle().await;

        assert_eq!(room.speakers().await, ["Eve", "Ada", "Bob"]);
        assert_eq!(room.runtime().await.state(), ConversationState::Idle);
        room.close().await;
    }

    async fn another_order_leaves_the_round_as_it_is(backend) {
        let (room, gate) = in_the_middle(backend).await;

        room.change_rules(|it| it.reply_order = ReplyOrder::Natural).await;
        room.engine.settings_changed(room.space).await.unwrap();
        gate.open();
        room.settle().await;

        assert_eq!(room.speakers().await, ["Eve", "Ada", "Bob", "Cid"]);
        room.close().await;
    }

    async fn hiding_the_trigger_or_the_tail_ends_the_whole_round(backend) {
        for seq in [1, 2] {
            let (room, gate) = in_the_middle(backend).await;
            let hidden = room.messages().await[seq - 1].id;

            let hide = room.engine.set_visibility(room.conversation, hidden, Visibility::Hidden);
            hide.await.unwrap();
            gate.open();
            room.settle().await;

            assert_eq!(room.runs().await[1].status, RunStatus::Canceled);
            assert_eq!(room.runtime().await.state(), ConversationState::Idle);
            assert_eq!(room.messages().await.len(), 2, "nothing follows");
            room.close().await;
        }
    }

    async fn a_failed_slot_keeps_its_place_until_a_person_decides(backend) {
        for way in ["retry", "skip", "stop", "message"] {
            let room = blueprint(backend).open().await;
            room.upstream.next(ResponseScript::say("I am Ada."));
            room.upstream.next(ResponseScript::status(400));
            room.user.post("Count.").await;
            room.settle().await;
            let failed = room.place().await;

            match way {
                "retry" => _ = room.engine.retry(room.conversation).await.unwrap(),
                "skip" => room.engine.skip(room.conversation).await.unwrap(),
                "stop" => room.engine.stop(room.conversation, false).await.unwrap(),
                _ => _ = room.user.post("Again.").await,
            }
            room.settle().await;

            assert_eq!(failed, (round::RoundState::Failed, 1, vec![SPOKEN, PENDING, PENDING]));
            let (speakers, state) = (room.speakers().await.split_off(2), room.runtime().await.state());
            match way {
                "retry" => assert_eq!((speakers, state), (words(&["Bob", "Cid"]), ConversationState::Idle)),
                "skip" => assert_eq!((speakers, state), (words(&["Cid"]), ConversationState::Idle)),
                "stop" => assert_eq!((speakers, state), (words(&[]), ConversationState::Failed)),
                _ => assert_eq!((speakers, state), (words(&["Eve", "Ada", "Bob", "Cid"]), ConversationState::Idle)),
            }
            room.close().await;
        }
    }

    async fn the_tokens_may_end_in_the_middle_of_a_round(backend) {
        let room = blueprint(backend).rules(|it| it.token_limit = 10).open().await;
        room.upstream.always(ResponseScript::stream().role().text("Well.").finish("stop").usage(7, 3).done());

        room.user.post("Count.").await;
        room.settle().await;
        let failed = room.place().await;
        room.change_rules(|it| it.token_limit = 0).await;
        room.engine.retry(room.conversation).await.unwrap();
        room.settle().await;

        assert_eq!(failed, (round::RoundState::Failed, 1, vec![SPOKEN, PENDING, PENDING]));
        let error = room.runs().await[1].error.clone().expect("it says why");
        assert_eq!(error.code, "token_limit_exceeded");
        assert_eq!(room.speakers().await, ["Eve", "Ada", "Bob", "Cid"]);
        room.close().await;
    }

    async fn a_forced_turn_ends_the_round_and_waits_for_its_reply(backend) {
        let (room, gate) = in_the_middle(backend).await;
        let ada = room.membership("Ada").await.id;

        room.engine.force_talk(room.conversation, Some(ada), "Eve".to_owned()).await.unwrap();
        gate.open();
        room.settle().await;

        assert_eq!(room.speakers().await, ["Eve", "Ada", "Bob", "Ada"]);
        assert_eq!(room.runtime().await.state(), ConversationState::Idle);
        room.close().await;
    }
}

fn words(them: &[&str]) -> Vec<String> {
    them.iter().map(|it| (*it).to_owned()).collect()
}
