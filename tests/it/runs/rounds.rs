//! Tests rounds of several speakers through the whole engine: their order, and what interrupts it.

use serde_json::json;
use tavern::cards::card::Card;
use troupe::characters::character;
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::message::Visibility;
use troupe::rounds::{round, slot};
use troupe::runs::reading::views::ConversationState;
use troupe::runs::scheduling::command::ForcedTurn;
use troupe::runs::store::run::{RunReason, RunStatus};
use troupe::spaces::membership;
use troupe::spaces::membership::Participation;
use troupe::spaces::permissions::SkipRight;
use troupe::spaces::space::{RepliesPerTurn, ReplyOrder};

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::engine_test_builder::EngineTestBuilder;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};

fn builder(backend: TestBackend) -> EngineTestBuilder {
    EngineTest::builder(backend)
        .cast(&["Ada", "Bob", "Cid"])
        .rules(|it| it.replies_per_turn = RepliesPerTurn::Activated)
}

/// Ada has answered, and Bob has produced "One" of "One two three."; Cid is next.
async fn in_the_middle(backend: TestBackend) -> (EngineTest, HoldPoint) {
    let app = builder(backend).open().await;
    let gate = HoldPoint::closed();
    app.upstream.next(ResponseScript::say("I am Ada."));
    app.upstream
        .next(ResponseScript::say("One two three.").held_at(&gate));
    app.user.post("Count.").await;
    gate.step();
    app.events.wait_for_text("One").await;
    (app, gate)
}

impl EngineTest {
    /// The authors of the messages, in order.
    pub async fn speakers(&self) -> Vec<String> {
        let members = membership::list_for_space(self.db.reader(), self.space).await;
        let members = members.expect("the query failed");
        let name = |id| {
            let member = members.iter().find(|it| it.id == id);
            member
                .expect("the member is missing")
                .cached_display_name
                .clone()
        };
        let all = self.messages().await.into_iter();
        all.map(|it| name(it.space_membership_id)).collect()
    }

    pub async fn round(&self) -> round::Model {
        self.runtime().await.round.expect("no round is active")
    }

    /// State, cursor, and the status of each slot.
    pub async fn round_progress(&self) -> (round::RoundState, i64, Vec<slot::SlotStatus>) {
        let round = self.round().await;
        let slots = round.slots.0.iter().map(|it| it.status).collect();
        (round.state, round.cursor, slots)
    }

    pub async fn mute(&self, name: &str) {
        self.change_membership(name, |it| it.participation = Participation::Muted)
            .await;
        let id = self.membership(name).await.id;
        let applied = self.engine.member_changed(self.space, id).await;
        applied.expect("the change was not applied");
    }

    async fn set_talkativeness(&self, name: &str, talkativeness: f64) {
        let id = self
            .membership(name)
            .await
            .character_id
            .expect("the member has no character");
        let card = json!({"name": name, "extensions": {"talkativeness": talkativeness}});
        let document = json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": card});
        let card = Card::from_document(document).expect("the card is invalid");
        let replaced = character::replace_card(&self.db, id, card).await;
        replaced.expect("the card was not replaced");
    }
}

const SPOKEN: slot::SlotStatus = slot::SlotStatus::Spoken;
const SKIPPED: slot::SlotStatus = slot::SlotStatus::Skipped;
const PENDING: slot::SlotStatus = slot::SlotStatus::Pending;

on_sqlite! {
    async fn the_speakers_of_a_round_speak_one_after_the_other(backend) {
        let app = builder(backend).open().await;

        app.user.post("Hello.").await;
        app.settle().await;

        assert_eq!(app.speakers().await, ["Eve", "Ada", "Bob", "Cid"]);
        let runs = app.runs().await;
        let turns: Vec<_> = runs.iter().map(|it| (it.slot_position, it.reason, it.cutoff_seq)).collect();
        let expected = [
            (Some(0), RunReason::UserMessage, Some(1)),
            (Some(1), RunReason::NextSlot, Some(2)),
            (Some(2), RunReason::NextSlot, Some(3)),
        ];
        assert_eq!(turns, expected, "a speaker missed an earlier message");
        assert!(runs.iter().all(|it| it.round_id == runs[0].round_id));
        assert!(runs.iter().all(|it| it.view().chosen_because.as_deref() == Some("next by position")));
        assert_eq!(app.runtime().await.state(), ConversationState::Idle);
        app.close().await;
    }

    async fn natural_order_uses_the_talkativeness_of_the_membership_else_of_the_card(backend) {
        let app = builder(backend).rules(|it| it.reply_order = ReplyOrder::Natural).open().await;
        app.set_talkativeness("Ada", 1.0).await;
        app.set_talkativeness("Bob", 0.0).await;
        app.set_talkativeness("Cid", 0.0).await;
        app.change_membership("Cid", |it| it.talkativeness = Some(1.0)).await;

        app.user.post("Well?").await;
        app.settle().await;

        let mut spoke = app.speakers().await.split_off(1);
        spoke.sort();
        assert_eq!(spoke, ["Ada", "Cid"]);
        let because = app.runs().await[0].debug.chosen_because.clone().unwrap();
        // A draw of 0.995 or more is shown as 1.00.
        let drawn = because.strip_prefix("drew ").and_then(|it| it.strip_suffix(" ≤ 1.00"));
        let drawn: f64 = drawn.and_then(|it| it.parse().ok()).expect(&because);
        assert!((0.0..=1.0).contains(&drawn), "{because}");
        app.close().await;
    }

    async fn a_stopped_round_keeps_its_position_and_resumes_there(backend) {
        let (app, gate) = in_the_middle(backend).await;

        app.engine.stop(app.conversation, false).await.unwrap();
        gate.open();
        let stopped = app.round_progress().await;
        app.engine.resume(app.conversation).await.unwrap();
        app.settle().await;

        assert_eq!(stopped, (round::RoundState::Paused, 1, vec![SPOKEN, PENDING, PENDING]));
        assert_eq!(app.speakers().await, ["Eve", "Ada", "Bob", "Cid"]);
        app.close().await;
    }

    async fn a_stop_that_keeps_the_text_completes_the_slot_and_the_next_one_waits(backend) {
        let (app, gate) = in_the_middle(backend).await;

        app.engine.stop(app.conversation, true).await.unwrap();
        app.upstream.wait_for_disconnect(1).await;
        gate.open();
        app.settle().await;
        let stopped = app.round_progress().await;
        app.engine.resume(app.conversation).await.unwrap();
        app.settle().await;

        assert_eq!(stopped, (round::RoundState::Paused, 2, vec![SPOKEN, SPOKEN, PENDING]));
        assert_eq!(app.answers().await, ["I am Ada.", "One", "Hello."]);
        app.close().await;
    }

    async fn a_paused_round_finishes_its_reply_and_resumes_with_the_next_slot(backend) {
        let (app, gate) = in_the_middle(backend).await;

        app.engine.pause(app.conversation).await.unwrap();
        gate.open();
        app.settle().await;
        let paused = app.round_progress().await;
        app.engine.resume(app.conversation).await.unwrap();
        app.settle().await;

        assert_eq!(paused, (round::RoundState::Paused, 2, vec![SPOKEN, SPOKEN, PENDING]));
        assert_eq!(app.speakers().await, ["Eve", "Ada", "Bob", "Cid"]);
        app.close().await;
    }

    async fn a_skip_cancels_the_reply_and_the_next_one_speaks(backend) {
        let (app, gate) = in_the_middle(backend).await;

        app.engine.skip((app.conversation, Viewer::Server), SkipRight::Everyone).await.unwrap();
        gate.open();
        app.settle().await;

        assert_eq!(app.speakers().await, ["Eve", "Ada", "Cid"]);
        let statuses: Vec<_> = app.runs().await.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [RunStatus::Succeeded, RunStatus::Canceled, RunStatus::Succeeded]);
        app.close().await;
    }

    async fn a_speaker_muted_while_speaking_is_canceled_and_the_next_one_speaks(backend) {
        let (app, gate) = in_the_middle(backend).await;

        app.mute("Bob").await;
        let progress = app.round_progress().await;
        gate.open();
        app.settle().await;

        assert_eq!(progress.2, [SPOKEN, SKIPPED, PENDING]);
        assert_eq!(app.speakers().await, ["Eve", "Ada", "Cid"]);
        app.close().await;
    }

    async fn a_speaker_muted_before_its_turn_is_skipped(backend) {
        let (app, gate) = in_the_middle(backend).await;

        app.mute("Cid").await;
        let progress = app.round_progress().await;
        gate.open();
        app.settle().await;

        assert_eq!(progress.2, [SPOKEN, PENDING, PENDING], "a later slot was changed");
        assert_eq!(app.speakers().await, ["Eve", "Ada", "Bob"]);
        let mut facts = app.facts().await;
        let skipped = format!(
            "SELECT s.value ->> 'skip_reason' FROM conversation_rounds r, {} \
             WHERE s.value ->> 'status' = 'skipped'",
            facts.slots()
        );
        let skipped = facts.rows(&skipped).await;
        assert_eq!(skipped.len(), 1);
        assert!(format!("{skipped:?}").contains("not_schedulable"), "{skipped:?}");
        assert_eq!(app.runtime().await.state(), ConversationState::Idle);
        app.close().await;
    }

    async fn after_a_switch_to_manual_order_the_reply_finishes_and_no_speaker_follows(backend) {
        let (app, gate) = in_the_middle(backend).await;

        app.change_rules(|it| it.reply_order = ReplyOrder::Manual).await;
        app.engine.settings_changed(app.space).await.unwrap();
        gate.open();
        app.settle().await;

        assert_eq!(app.speakers().await, ["Eve", "Ada", "Bob"]);
        assert_eq!(app.runtime().await.state(), ConversationState::Idle);
        app.close().await;
    }

    async fn hiding_the_trigger_or_the_tail_ends_the_whole_round(backend) {
        for seq in [1, 2] {
            let (app, gate) = in_the_middle(backend).await;
            let hidden = app.messages().await[seq - 1].id;

            let hide = app.engine.set_visibility(app.scope(), hidden, Visibility::Hidden);
            hide.await.unwrap();
            gate.open();
            app.settle().await;

            assert_eq!(app.runs().await[1].status, RunStatus::Canceled);
            assert_eq!(app.runtime().await.state(), ConversationState::Idle);
            assert_eq!(app.messages().await.len(), 2, "another message followed");
            app.close().await;
        }
    }

    async fn a_failed_slot_keeps_its_position_until_a_retry_or_skip(backend) {
        for retries in [true, false] {
            let app = builder(backend).open().await;
            app.upstream.next(ResponseScript::say("I am Ada."));
            app.upstream.next(ResponseScript::status(400));
            app.user.post("Count.").await;
            app.settle().await;
            let failed = app.round_progress().await;

            if retries {
                app.engine.retry(app.scope(), true).await.unwrap();
            } else {
                app.engine.skip((app.conversation, Viewer::Server), SkipRight::Everyone).await.unwrap();
            }
            app.settle().await;

            assert_eq!(failed, (round::RoundState::Failed, 1, vec![SPOKEN, PENDING, PENDING]));
            let speakers = app.speakers().await.split_off(2);
            assert_eq!(speakers, if retries { vec!["Bob", "Cid"] } else { vec!["Cid"] });
            assert_eq!(app.runtime().await.state(), ConversationState::Idle);
            app.close().await;
        }
    }

    async fn the_token_limit_can_be_reached_in_the_middle_of_a_round(backend) {
        let app = builder(backend).rules(|it| it.token_limit = 10).open().await;
        app.upstream.always(ResponseScript::stream().role().text("Well.").finish("stop").usage(7, 3).done());

        app.user.post("Count.").await;
        app.settle().await;
        let failed = app.round_progress().await;
        app.change_rules(|it| it.token_limit = 0).await;
        app.engine.retry(app.scope(), true).await.unwrap();
        app.settle().await;

        assert_eq!(failed, (round::RoundState::Failed, 1, vec![SPOKEN, PENDING, PENDING]));
        let error = app.runs().await[1].error.clone().expect("the run has no error");
        assert_eq!(error.code, "token_limit_exceeded");
        assert_eq!(app.speakers().await, ["Eve", "Ada", "Bob", "Cid"]);
        app.close().await;
    }

    async fn a_forced_turn_ends_the_round_and_waits_for_its_reply(backend) {
        let (app, gate) = in_the_middle(backend).await;
        let ada = app.membership("Ada").await.id;

        app.engine.force_talk(app.conversation, ForcedTurn::new(Some(ada), "Eve", Viewer::Server)).await.unwrap();
        gate.open();
        app.settle().await;

        assert_eq!(app.speakers().await, ["Eve", "Ada", "Bob", "Ada"]);
        assert_eq!(app.runtime().await.state(), ConversationState::Idle);
        app.close().await;
    }
}
