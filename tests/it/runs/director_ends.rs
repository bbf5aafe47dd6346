//! Tests what a stop, a crash or a shutdown during the choice of the director leaves.

use std::time::Duration;

use troupe::runs::execution::recovery::RecoveryReport;
use troupe::runs::store::run::{RunCancelReason, RunStatus};

use super::director::{choice, open};
use crate::support::backends::on_both;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};

/// One run failed, and its slot was planned again.
const RECOVERED: RecoveryReport = RecoveryReport {
    failed: 1,
    requeued: 1,
    turns_skipped: 0,
    rounds_closed: 0,
    jobs_continued: 0,
};

on_both! {
    async fn a_stop_during_the_choice_leaves_the_slot_undecided_and_its_cost_is_counted(backend) {
        let app = open(backend).await;
        let gate = app.post_and_hold(choice(&["Bob"], "Bob was asked.")).await;

        app.engine.stop(app.conversation, false).await.unwrap();
        app.upstream.wait_for_disconnect(0).await;
        gate.open();
        app.settle().await;

        let run = app.only_run().await;
        assert_eq!((run.status, run.canceled_because), (RunStatus::Canceled, Some(RunCancelReason::Stopped)));
        assert_eq!(run.speaker_space_membership_id, None);
        let round = app.runtime().await.round.expect("the round is paused");
        assert_eq!(round.slots.0[0].space_membership_id, None);
        // There is a cost if the answer had begun.
        app.usage_counted_once().await;
        assert!(app.answers().await.is_empty());
        app.close().await;
    }

    async fn a_stop_that_keeps_the_text_ends_the_choice_too(backend) {
        let app = open(backend).await;
        let gate = app.post_and_hold(choice(&["Bob"], "Bob was asked.")).await;

        app.engine.stop(app.conversation, true).await.unwrap();
        gate.open();
        app.settle().await;

        assert_eq!(app.only_run().await.status, RunStatus::Canceled);
        assert!(app.answers().await.is_empty());
        app.usage_counted_once().await;
        app.close().await;
    }

    async fn a_resumed_slot_is_chosen_again(backend) {
        let app = open(backend).await;
        let gate = app.post_and_hold(choice(&["Bob"], "Bob was asked.")).await;
        app.engine.stop(app.conversation, false).await.unwrap();
        gate.open();
        app.settle().await;
        app.upstream.next(choice(&["Cid"], "Cid was asked."));

        app.engine.resume(app.conversation).await.unwrap();
        app.settle().await;

        assert_eq!(app.repliers().await, ["Cid"]);
        app.close().await;
    }

    async fn a_node_that_dies_during_the_choice_is_replaced_and_its_answer_is_too_late(backend) {
        let app = open(backend).await;
        let gate = app.post_and_hold(choice(&["Bob"], "Bob was asked.")).await;
        app.engine.context().shutdown.draining.cancel();
        app.set_last_heartbeat(60_000).await;
        let node = app.another_node();

        let report = node.run_recovery().await.unwrap();
        gate.open();
        app.wait_until_idle().await;
        let runs = app.runs().await;
        app.upstream.next(choice(&["Cid"], "Cid was asked."));
        node.start().await.unwrap();
        app.until("the second attempt has answered", async |it| !it.answers().await.is_empty()).await;

        assert_eq!(report, RECOVERED);
        let speakers: Vec<_> = runs.iter().map(|it| it.speaker_space_membership_id).collect();
        assert_eq!(speakers, [None, None]);
        assert_eq!((runs[1].status, runs[1].attempt), (RunStatus::Queued, 2));
        assert_eq!(app.repliers().await, ["Cid"]);
        app.settle_alone().await;
        app.stop(&node).await;
        app.close_without_events().await;
    }

    async fn a_node_that_dies_after_the_choice_leaves_the_chosen_one_to_the_next(backend) {
        let app = open(backend).await;
        app.upstream.next(choice(&["Bob"], "Bob was asked."));
        let gate = HoldPoint::closed();
        app.upstream.next(ResponseScript::say("One two three.").held_at(&gate));
        app.user.post("Who is there?").await;
        app.upstream.wait_for_requests(2).await;
        app.engine.context().shutdown.draining.cancel();
        app.set_last_heartbeat(60_000).await;
        let node = app.another_node();

        let report = node.run_recovery().await.unwrap();

        assert_eq!(report, RECOVERED);
        let again = &app.runs().await[1];
        assert_eq!(again.speaker_space_membership_id, Some(app.id_of("Bob").await));
        assert_eq!(again.debug.chosen_because.as_deref(), Some("director: Bob was asked."));
        gate.open();
        app.wait_until_idle().await;
        app.close_without_events().await;
    }

    async fn a_node_that_shuts_down_during_the_choice_releases_the_run_without_a_speaker(backend) {
        let app = open(backend).await;
        let gate = app.post_and_hold(choice(&["Bob"], "Bob was asked.")).await;

        app.engine.drain(Duration::ZERO).await;
        gate.open();
        app.wait_until_idle().await;

        let run = app.only_run().await;
        assert_eq!((run.status, run.attempt), (RunStatus::Queued, 1));
        assert_eq!(run.speaker_space_membership_id, None);
        app.stop(&app.engine).await;
        app.close().await;
    }
}
