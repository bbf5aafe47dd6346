//! Tests the statements that change a run, on both databases: each succeeds only from the state
//! that it expects and under the lease that it names, and returns whether it did.

use base::ids::{MessageId, RunId};
use sea_orm::{ActiveModelTrait, ConnectionTrait, EntityTrait, IntoActiveModel};
use troupe::conversations::conversation;
use troupe::db::backend;
use troupe::db::backend::Backend;
use troupe::rounds::round;
use troupe::runs::store::queue::RunEnd;
use troupe::runs::store::run::RunStatus;
use troupe::runs::store::{due_runs, queue, run};

use crate::support::backends::on_both;
use crate::support::queue_fixture::{NODE, QueueFixture, run_error};

const MINUTE: i64 = 60_000;

const EVERY_STATUS: [RunStatus; 6] = [
    RunStatus::Queued,
    RunStatus::Running,
    RunStatus::Succeeded,
    RunStatus::Failed,
    RunStatus::Canceled,
    RunStatus::Skipped,
];

/// The verbs of `queue.rs`, each with the one state from which it may win.
const EVERY_MOVE: [(&str, RunStatus); 9] = [
    ("claim", RunStatus::Queued),
    ("skip", RunStatus::Queued),
    ("cancel_queued", RunStatus::Queued),
    ("fail_queued", RunStatus::Queued),
    ("request_cancel", RunStatus::Running),
    ("finish", RunStatus::Running),
    ("fail", RunStatus::Running),
    ("expire", RunStatus::Running),
    ("hand_back", RunStatus::Running),
];

on_both! {
    async fn each_move_wins_only_from_the_state_it_expects(backend) {
        let bench = QueueFixture::new(backend).await;

        for (verb, expected) in EVERY_MOVE {
            for status in EVERY_STATUS {
                let run = bench.in_status(status);
                bench.insert(&run).await;

                let won = bench.try_transition(verb, &run, run.lease).await;

                let after = bench.row(run.id).await;
                assert_eq!(won, status == expected, "{verb} from {status:?}");
                assert_eq!(won, after != run, "{verb} from {status:?}");
                bench.clear().await;
            }
        }
    }

    async fn an_end_wins_only_under_the_lease_that_runs(backend) {
        let bench = QueueFixture::new(backend).await;
        let run = bench.in_status(RunStatus::Running);
        bench.insert(&run).await;

        for verb in ["finish", "fail", "expire", "hand_back"] {
            for lease in [run.lease - 1, run.lease + 1] {
                assert!(!bench.try_transition(verb, &run, lease).await, "{verb} {lease}");
            }
        }

        assert_eq!(bench.row(run.id).await, run);
        assert!(bench.try_transition("finish", &run, run.lease).await);
    }

    async fn a_claim_raises_the_lease_and_names_its_node(backend) {
        let bench = QueueFixture::new(backend).await;
        let run = bench.new_run();
        bench.insert(&run).await;
        let claim = || queue::claim(bench.db(), run.id, NODE, bench.now(), bench.dialect());

        let claimed = claim().await.unwrap().expect("nobody else wants it");
        let again = claim().await.unwrap();
        queue::release(bench.db(), &run, 1).await.unwrap();
        let third = claim().await.unwrap().expect("it was given back");

        assert_eq!(claimed.status, RunStatus::Running);
        assert_eq!((claimed.lease, claimed.worker_id.as_deref()), (1, Some(NODE)));
        assert_eq!(claimed.started_at, Some(bench.now()));
        assert!(claimed.heartbeat_at.is_some());
        assert!(again.is_none());
        assert_eq!(third.lease, 2, "whoever held lease 1 is fenced out");
    }

    async fn the_second_run_of_a_conversation_is_not_claimed(backend) {
        let bench = QueueFixture::new(backend).await;
        let (running, waiting) = (bench.in_status(RunStatus::Running), bench.new_run());
        bench.insert(&running).await;
        bench.insert(&waiting).await;

        assert!(!bench.try_transition("claim", &waiting, 0).await);

        assert_eq!(bench.row(waiting.id).await, waiting);
        assert!(bench.try_transition("finish", &running, running.lease).await);
        assert!(bench.try_transition("claim", &waiting, 0).await);
    }

    async fn a_run_given_back_keeps_nothing_of_its_claim(backend) {
        let bench = QueueFixture::new(backend).await;
        let run = bench.new_run();
        bench.insert(&run).await;
        assert!(bench.try_transition("claim", &run, 0).await);
        queue::set_cutoff(bench.db(), run.id).await.unwrap();

        assert!(bench.try_transition("hand_back", &run, 1).await);

        assert_eq!(bench.row(run.id).await, run::Model { lease: 1, ..run });
    }

    async fn a_newer_plan_replaces_the_queued_run_and_keeps_its_row(backend) {
        let bench = QueueFixture::new(backend).await;
        let round = bench.past_round();
        bench.insert_round(&round).await.unwrap();
        let first = queue::enqueue(bench.db(), bench.new_run()).await.unwrap();

        // PostgreSQL plans a statement separately for its first five executions.
        for n in 1..=12 {
            bench.engine_test.clock.advance_ms(10);
            let newer = run::Model {
                kind: run::RunKind::ForceTalk,
                reason: run::RunReason::Generate,
                round_id: Some(round.id),
                slot_position: Some(n),
                attempt: 2,
                burst_started_at: Some(bench.now()),
                debug: run::RunDebug {
                    trigger_message_id: Some(MessageId(n)),
                    ..run::RunDebug::default()
                },
                ..bench.new_run()
            };

            let queued = queue::enqueue(bench.db(), newer.clone()).await.unwrap();

            let expected = run::Model {
                id: first.id,
                created_at: first.created_at,
                ..newer
            };
            assert_eq!(queued, expected);
            assert_eq!(bench.row(first.id).await, expected);
        }
        let all = run::Entity::find().all(bench.db()).await.unwrap();
        assert_eq!(all.len(), 1);
    }

    async fn the_queued_place_is_found_by_a_plan_for_any_value_too(backend) {
        let bench = QueueFixture::new(backend).await;
        if bench.dialect() == Backend::Postgres {
            // PostgreSQL's default from the sixth execution on.
            let generic = "SET plan_cache_mode = force_generic_plan";
            bench.db().execute_unprepared(generic).await.unwrap();
        }

        let first = queue::enqueue(bench.db(), bench.new_run()).await.unwrap();
        let second = queue::enqueue(bench.db(), bench.new_run()).await.unwrap();

        assert_eq!(first.id, second.id);
    }

    async fn a_queued_run_leaves_the_running_one_alone(backend) {
        let bench = QueueFixture::new(backend).await;
        let running = bench.in_status(RunStatus::Running);
        bench.insert(&running).await;

        let queued = queue::enqueue(bench.db(), bench.new_run()).await.unwrap();

        assert_ne!(queued.id, running.id);
        assert_eq!(bench.row(running.id).await, running);
    }

    async fn the_cutoff_is_the_newest_message_of_the_conversation(backend) {
        let bench = QueueFixture::new(backend).await;
        let run = bench.in_status(RunStatus::Running);
        bench.insert(&run).await;
        let row = bench.engine_test.row().await;
        let row = conversation::Model { last_seq: 42, ..row };
        row.into_active_model().reset_all().update(bench.db()).await.unwrap();

        assert_eq!(queue::set_cutoff(bench.db(), run.id).await.unwrap(), 42);
        assert_eq!(bench.row(run.id).await.cutoff_seq, Some(42));
    }

    async fn an_end_writes_its_story(backend) {
        let bench = QueueFixture::new(backend).await;
        let usage = run::RunUsage {
            prompt_tokens: 7,
            completion_tokens: 5,
            estimated: false,
        };
        let mut run = bench.in_status(RunStatus::Running);
        bench.insert(&run).await;
        run.usage = Some(usage);
        run.debug.chosen_because = Some("next in rotation".to_owned());
        bench.engine_test.clock.advance_ms(10);

        assert!(bench.try_transition("fail", &run, run.lease).await);

        let expected = run::Model {
            status: RunStatus::Failed,
            finished_at: Some(bench.now()),
            error: Some(run_error()),
            ..run
        };
        assert_eq!(bench.row(expected.id).await, expected);
    }

    async fn a_canceled_run_says_when_that_was_asked(backend) {
        let bench = QueueFixture::new(backend).await;
        let asked_before = bench.in_status(RunStatus::Running);
        bench.insert(&asked_before).await;
        assert!(bench.try_transition("request_cancel", &asked_before, 0).await);
        let asked = bench.row(asked_before.id).await;
        bench.engine_test.clock.advance_ms(10);

        let (db, now) = (bench.db(), bench.now());
        let won = queue::finish(db, &asked, asked.lease, &RunEnd::Canceled, now).await;

        assert!(won.unwrap());
        let after = bench.row(asked.id).await;
        assert_eq!(after.cancel_requested_at, asked.cancel_requested_at);
        assert_eq!((after.status, after.keep_partial), (RunStatus::Canceled, true));
    }

    async fn a_beat_renews_what_is_ours_and_brings_it_back(backend) {
        let bench = QueueFixture::new(backend).await;
        let there = bench.engine_test.another_conversation().await;
        let ours = bench.in_status(RunStatus::Running);
        let done = bench.in_status(RunStatus::Succeeded);
        let queued = bench.new_run();
        let mut theirs = bench.in_status(RunStatus::Running);
        theirs.conversation_id = there;
        theirs.worker_id = Some("node-b".to_owned());
        for run in [&ours, &done, &queued, &theirs] {
            bench.insert(run).await;
        }
        assert!(bench.try_transition("request_cancel", &ours, 0).await);

        let held = [&ours, &done, &queued, &theirs].map(|it| it.id);
        let alive = queue::heartbeat(bench.db(), NODE, &held, bench.now(), bench.dialect()).await.unwrap();

        let told: Vec<_> = alive.iter().map(|it| (it.id, it.lease)).collect();
        assert_eq!(told, [(ours.id, ours.lease)]);
        assert!(alive[0].cancel_requested_at.is_some());
        assert!(alive[0].heartbeat_at > ours.heartbeat_at);
        for run in [done, queued, theirs] {
            assert_eq!(bench.row(run.id).await, run);
        }
    }

    async fn only_a_silent_run_is_expired(backend) {
        let bench = QueueFixture::new(backend).await;
        let mut run = bench.in_status(RunStatus::Running);
        run.heartbeat_at = Some(bench.now().plus_ms(-10 * MINUTE));
        bench.insert(&run).await;
        let expired = async || {
            let all = queue::list_expired(bench.db(), bench.now(), &bench.stale()).await.unwrap();
            all.iter().map(|it| it.id).collect::<Vec<_>>()
        };

        assert!(expired().await.is_empty());
        assert!(!bench.try_transition("expire", &run, run.lease).await);

        bench.clear().await;
        run.heartbeat_at = Some(bench.now().plus_ms(-30 * MINUTE));
        bench.insert(&run).await;
        assert_eq!(expired().await, [run.id]);
        queue::heartbeat(bench.db(), NODE, &[run.id], bench.now(), bench.dialect()).await.unwrap();
        assert!(!bench.try_transition("expire", &run, run.lease).await, "it beats again");
    }

    async fn staleness_is_judged_by_one_clock(backend) {
        let bench = QueueFixture::new(backend).await;
        let mut run = bench.in_status(RunStatus::Running);
        run.heartbeat_at = Some(bench.now());
        bench.insert(&run).await;

        // A day later by this node's clock; the database's clock is unchanged.
        let now = bench.now().plus_ms(24 * 60 * MINUTE);
        let expired = queue::list_expired(bench.db(), now, &bench.stale()).await.unwrap();

        let judged_by_the_node = bench.dialect() == Backend::Sqlite;
        assert_eq!(expired.len(), usize::from(judged_by_the_node));
    }

    async fn a_conversation_has_one_queued_and_one_running_run(backend) {
        let bench = QueueFixture::new(backend).await;

        for status in EVERY_STATUS {
            bench.insert(&bench.in_status(status)).await;
            let second = bench.try_insert(&bench.in_status(status)).await;

            let is_refused = second.as_ref().is_err_and(backend::is_unique_violation);
            let is_active = matches!(status, RunStatus::Queued | RunStatus::Running);
            assert_eq!(is_refused, is_active, "{status:?}: {second:?}");
        }
    }

    async fn a_conversation_has_one_active_round(backend) {
        let bench = QueueFixture::new(backend).await;
        let insert = async |status| {
            let past = bench.past_round();
            bench.insert_round(&round::Model { status, ..past }).await
        };

        for status in [round::RoundStatus::Finished, round::RoundStatus::Finished, round::RoundStatus::Active] {
            insert(status).await.unwrap();
        }
        let second = insert(round::RoundStatus::Active).await;

        assert!(backend::is_unique_violation(&second.unwrap_err()));
    }

    async fn the_newest_run_is_the_one_with_the_greatest_number(backend) {
        let bench = QueueFixture::new(backend).await;
        let (early_id, late_id) = (RunId::new(), RunId::new());
        let first = run::Model { id: late_id, ..bench.in_status(RunStatus::Failed) };
        let second = run::Model { id: early_id, ..bench.in_status(RunStatus::Failed) };
        bench.insert(&first).await;
        bench.insert(&second).await;

        let newest = run::find_newest(bench.db(), second.conversation_id).await.unwrap();
        let doubled = run::Model { id: RunId::new(), ..second.clone() };

        assert_eq!(newest.map(|it| it.id), Some(early_id), "not the one with the greatest id");
        assert!(backend::is_unique_violation(&bench.try_insert(&doubled).await.unwrap_err()));
    }

    async fn the_dispatcher_sees_the_soonest_runs_of_free_conversations(backend) {
        let bench = QueueFixture::new(backend).await;
        let mut later = bench.new_run();
        later.run_after = Some(bench.now().plus_ms(500));
        let mut sooner = bench.new_run_in(bench.engine_test.another_conversation().await);
        sooner.run_after = Some(bench.now().plus_ms(-500));
        let busy = bench.engine_test.another_conversation().await;
        let mut running = bench.in_status(RunStatus::Running);
        running.conversation_id = busy;
        let blocked = bench.new_run_in(busy);
        for run in [&later, &sooner, &running, &blocked] {
            bench.insert(run).await;
        }

        let all = due_runs::list_next_due(bench.db(), &[], 32).await.unwrap();
        let first = due_runs::list_next_due(bench.db(), &[], 1).await.unwrap();

        let ids: Vec<_> = all.iter().map(|it| it.id).collect();
        assert_eq!(ids, [sooner.id, later.id]);
        assert_eq!(first[0].id, sooner.id);
        assert_eq!(first[0].run_after, sooner.run_after);
    }
}
