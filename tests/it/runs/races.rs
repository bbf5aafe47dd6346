//! Tests races through the whole engine: simultaneous posts, stops and commits, on one node and on
//! several.

use futures::future::join_all;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};
use troupe::runs::error::EngineError;
use troupe::runs::scheduling::command::CommandError;
use troupe::runs::store::run;
use troupe::runs::store::run::RunStatus;
use troupe::spaces::space::InputPolicy;

use crate::support::backends::on_both;
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};
use crate::support::{poll, transitions};

on_both! {
    async fn a_simultaneous_stop_and_commit_leave_a_consistent_result(backend) {
        let app = EngineTest::builder(backend).open().await;
        let gate = app.upstream.gate();
        app.upstream.reply_with("Done.");
        let (mut n_stored, mut n_canceled) = (0, 0);

        for n in 0..200 {
            app.user.post("Again.").await;
            app.upstream.wait_for_requests(n + 1).await;
            // Each delay is closer to the commit: the stop comes before, during, or after the last
            // delta.
            let stop = async {
                if n % 3 > 0 {
                    app.upstream.wait_for_texts(n, 1).await;
                }
                if n % 3 > 1 {
                    app.upstream.finished(n).await;
                }
                app.engine.stop(app.conversation, false).await.unwrap();
                let runs = app.runs().await;
                runs[n].clone()
            };
            let (stopped, ()) = tokio::join!(stop, async { gate.step() });

            let texts = app.messages().await.into_iter();
            let n_texts = texts.filter(|it| it.conversation_run_id == Some(stopped.id)).count();
            match stopped.status {
                RunStatus::Succeeded => n_stored += 1,
                RunStatus::Canceled => n_canceled += 1,
                other => panic!("a stop was acknowledged, but the run is {other:?}"),
            }
            assert_eq!(n_texts, usize::from(stopped.status == RunStatus::Succeeded));
            app.events.drain();
        }
        gate.open();
        app.settle().await;

        // A canceled run stored nothing afterwards.
        assert_eq!(app.answers().await.len(), n_stored);
        assert_eq!(n_stored + n_canceled, 200);
        assert!(n_canceled > 0, "no stop came before its commit");
        app.close().await;
    }

    async fn the_same_post_sent_a_hundred_times_is_one_message(backend) {
        let app = EngineTest::builder(backend).open().await;
        let other = app.user_at_node(&app.another_node());

        let posts = (0..100).map(async |n| {
            let human = if n % 2 == 0 { &app.user } else { &other };
            human.post_with_client_id("Hi.", Some("c-1")).await.expect("the post was rejected")
        });
        let answers = join_all(posts).await;
        app.settle_alone().await;

        assert_eq!(answers.iter().filter(|it| !it.is_repeated).count(), 1);
        assert!(answers.iter().all(|it| it.message.id == answers[0].message.id));
        assert_eq!(app.messages().await.len(), 2, "one post, one answer");
        app.close_without_events().await;
    }

    async fn of_two_simultaneous_posts_the_reject_policy_accepts_one(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.during_generation_user_input_policy = InputPolicy::Reject)
            .open()
            .await;
        let other = app.user_at_node(&app.another_node());

        for n in 1..=20 {
            // A reply that ends before the second message would leave nothing to reject.
            let gate = HoldPoint::closed();
            app.upstream.next(ResponseScript::say("Hello.").held_at(&gate));
            let (one, two) = tokio::join!(
                app.user.try_post("Me first."),
                other.try_post("No, me.")
            );
            gate.open();
            app.settle_alone().await;

            let is_locked =
                |it: &Result<_, _>| matches!(it, Err(EngineError::Rejected(CommandError::GenerationLocked)));
            assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
            assert!(is_locked(&one) || is_locked(&two));
            assert_eq!(app.messages().await.len(), 2 * n);
        }
        app.close_without_events().await;
    }

    async fn nodes_share_the_runs_and_execute_none_twice(backend) {
        let app = EngineTest::builder(backend).not_started().open().await;
        let mut facts = app.facts().await;
        transitions::record(&mut facts).await;
        let nodes = [app.another_node(), app.another_node(), app.another_node()];
        for node in &nodes {
            node.start().await.unwrap();
        }
        let mut conversations = Vec::new();
        for _ in 0..12 {
            conversations.push(app.another_conversation().await);
        }

        let posts = conversations.iter().enumerate().map(async |(n, id)| {
            let human = app.user_in_conversation(&nodes[n % 3], *id);
            let mut planned = Vec::new();
            for text in ["One.", "Two.", "Three."] {
                let posted = human.post(text).await;
                planned.push((posted.run.expect("no run was planned").id, posted.message.seq));
            }
            planned
        });
        let planned = join_all(posts).await.concat();
        let active = run::Entity::find()
            .filter(run::Column::Status.is_in([RunStatus::Queued, RunStatus::Running]));
        poll::until("all work is done", async || {
            nodes[0].context().wakeup.notify();
            let left = active.clone().all(app.db.reader()).await.unwrap();
            left.is_empty().then_some(())
        })
        .await;

        assert_eq!(transitions::illegal(&mut facts).await, Vec::<String>::new());
        let runs = run::Entity::find().all(app.db.reader()).await.unwrap();
        assert!(runs.iter().all(|it| it.status == RunStatus::Succeeded), "{runs:?}");
        assert_eq!(app.upstream.n_requests(), runs.len(), "a run called the model more than once");
        for (id, seq) in planned {
            let run = runs.iter().find(|it| it.id == id).expect("the planned run is missing");
            assert!(run.cutoff_seq >= Some(seq), "message {seq} was not seen by {run:?}");
        }
        for node in &nodes {
            app.stop(node).await;
        }
        app.close_without_events().await;
    }
}
