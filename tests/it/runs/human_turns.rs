//! Tests of the turns of people: a round waits for a person, on every node and over restarts, and of a post
//! and the deadline at once one wins.

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};
use troupe::conversations::audience::viewer::Viewer;
use troupe::rounds::{round, slot};
use troupe::runs::error::EngineError;
use troupe::runs::reading::views::ConversationState;
use troupe::runs::scheduling::command::CommandError;
use troupe::spaces::membership::Participation;
use troupe::spaces::permissions::SkipRight;
use troupe::spaces::space::RepliesPerTurn;

use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::engine_test::{EngineTest, TestUser};

const TIMEOUT_S: i64 = 30;

/// Eve, Ada and Fay take turns by position, and Fay has 30 seconds.
async fn taking_turns(backend: TestBackend) -> (EngineTest, TestUser) {
    let app = EngineTest::builder(backend)
        .rules(|it| {
            it.humans_take_turns = true;
            it.human_turn_timeout_s = TIMEOUT_S;
            it.replies_per_turn = RepliesPerTurn::Activated;
        })
        .with_settable_clock()
        .open()
        .await;
    let fay = app.another_user("Fay").await;
    app.change_membership("Fay", |it| it.position = 9).await;
    (app, fay)
}

/// Eve has posted, Ada has replied, and it is Fay's turn.
async fn waiting(backend: TestBackend) -> (EngineTest, TestUser) {
    let (app, fay) = taking_turns(backend).await;
    app.user.post("Hello.").await;
    app.until("the round waits", async |app| is_waiting(app).await)
        .await;
    (app, fay)
}

async fn is_waiting(app: &EngineTest) -> bool {
    app.runtime().await.state() == ConversationState::Waiting
}

/// Returns the rounds in the order of their ids.
async fn rounds(app: &EngineTest) -> Vec<round::Model> {
    let all = round::Entity::find()
        .filter(round::Column::ConversationId.eq(app.conversation))
        .order_by_asc(round::Column::CreatedAt)
        .order_by_asc(round::Column::Id)
        .all(app.db.reader())
        .await;
    all.expect("the database answers")
}

/// Returns the status and the skip reason of the slots of all rounds.
async fn slots(app: &EngineTest) -> Vec<String> {
    let describe = |it: &slot::Slot| {
        let status = serde_json::json!(it.status);
        let words = status.as_str().into_iter().chain(it.skip_reason.as_deref());
        words.collect::<Vec<_>>().join(" ")
    };
    let rounds = rounds(app).await;
    rounds
        .iter()
        .flat_map(|it| &it.slots.0)
        .map(describe)
        .collect()
}

on_both! {
    async fn a_round_waits_for_a_person_whose_post_is_the_turn(backend) {
        let (app, fay) = waiting(backend).await;
        let round = app.runtime().await.round.expect("a round");
        assert_eq!(round.deadline_at, Some(app.clock.now().plus_ms(TIMEOUT_S * 1_000)));
        assert!(app.runtime().await.queued.is_none() && app.runtime().await.running.is_none());

        let posted = fay.post("My turn.").await;

        let after = app.runtime().await;
        assert_eq!(after.state(), ConversationState::Idle);
        assert_eq!(slots(&app).await, ["spoken", "spoken"]);
        let row = rounds(&app).await.remove(0);
        assert_eq!(row.slots.at(1).and_then(|it| it.message_id), Some(posted.message.id));
        assert_eq!(app.runs().await.len(), 1, "a turn starts no round");
        app.close().await;
    }

    async fn a_turn_ends_at_its_deadline_without_any_request(backend) {
        let (app, _fay) = waiting(backend).await;

        app.clock.advance_ms(TIMEOUT_S * 1_000);

        app.until("the turn is skipped", async |app| !is_waiting(app).await).await;
        assert_eq!(slots(&app).await, ["spoken", "skipped turn_timeout"]);
        app.close().await;
    }

    async fn of_a_post_and_the_deadline_at_once_one_wins(backend) {
        let (app, fay) = waiting(backend).await;
        let node = app.another_node();
        app.clock.advance_ms(TIMEOUT_S * 1_000);

        let (report, posted) = tokio::join!(node.run_recovery(), fay.try_post("Wait!"));

        report.expect("the sweep succeeds");
        posted.expect("a post is never refused for a deadline");
        let first = async |app: &EngineTest| rounds(app).await.remove(0);
        app.until("the first round is over", async |app| {
            first(app).await.status != round::RoundStatus::Active
        })
        .await;
        // The post was the turn, or it came later and started a round.
        let was_turn = first(&app).await.slots.at(1).is_some_and(|it| it.message_id.is_some());
        assert_eq!(rounds(&app).await.len(), if was_turn { 1 } else { 2 });
        let expected = if was_turn { "spoken" } else { "skipped turn_timeout" };
        assert_eq!(slots(&app).await[1], expected);
        app.stop(&node).await;
        app.close_without_events().await;
    }

    async fn a_missed_deadline_is_found_by_the_recovery_of_any_node(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| {
                it.humans_take_turns = true;
                it.human_turn_timeout_s = TIMEOUT_S;
            })
            .cast(&[])
            .not_started()
            .with_settable_clock()
            .open()
            .await;
        app.another_user("Fay").await;
        app.user.post("Hello.").await;
        assert!(is_waiting(&app).await);
        let node = app.another_node();
        app.clock.advance_ms(TIMEOUT_S * 1_000);

        let report = node.run_recovery().await.expect("the sweep succeeds");

        assert_eq!(report.turns_skipped, 1);
        assert_eq!(node.run_recovery().await.expect("the sweep succeeds").turns_skipped, 0);
        assert!(!is_waiting(&app).await);
        app.stop(&node).await;
        app.close_without_events().await;
    }

    async fn a_waiting_round_is_no_stalled_round(backend) {
        let (app, fay) = waiting(backend).await;

        let report = app.engine.run_recovery().await.expect("the sweep succeeds");

        assert_eq!(report, Default::default());
        fay.post("My turn.").await;
        assert_eq!(slots(&app).await, ["spoken", "spoken"]);
        app.close().await;
    }

    async fn a_muted_person_is_passed_over_at_once(backend) {
        let (app, fay) = waiting(backend).await;
        app.change_membership("Fay", |it| it.participation = Participation::Muted).await;

        app.engine.member_changed(app.space, fay.membership).await.expect("the change is applied");

        assert_eq!(slots(&app).await, ["spoken", "skipped not_schedulable"]);
        app.close().await;
    }
}

on_sqlite! {
    async fn a_skip_by_another_member_is_refused_and_one_by_a_moderator_is_not(backend) {
        let (app, _fay) = waiting(backend).await;
        let scope = (app.conversation, Viewer::Member(app.user.membership));

        let refused = app.engine.skip(scope, SkipRight::Characters).await;
        assert!(matches!(refused, Err(EngineError::Rejected(CommandError::Forbidden))));
        app.engine.skip(scope, SkipRight::Everyone).await.expect("a moderator may skip");

        assert_eq!(slots(&app).await, ["spoken", "skipped skipped_by_a_person"]);
        app.close().await;
    }

    async fn a_post_of_another_person_is_in_the_prompt_of_the_next_character(backend) {
        let (app, fay) = taking_turns(backend).await;
        app.change_membership("Fay", |it| it.position = 1).await;
        app.change_membership("Ada", |it| it.position = 9).await;
        app.user.post("Hello.").await;
        app.until("the round waits", async |app| is_waiting(app).await).await;

        app.user.post("Take your time.").await;
        assert!(is_waiting(&app).await, "the round is kept");
        fay.post("My turn.").await;
        app.settle().await;

        let prompt = app.upstream.body(app.upstream.n_requests() - 1).to_string();
        assert!(prompt.contains("Take your time.") && prompt.contains("My turn."), "{prompt}");
        assert_eq!(slots(&app).await, ["spoken", "spoken"]);
        app.close().await;
    }
}
