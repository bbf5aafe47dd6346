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

/// The transitions of `queue.rs`, each with the only state from which it succeeds.
const EVERY_TRANSITION: [(&str, RunStatus); 9] = [
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
    async fn each_transition_succeeds_only_from_the_state_it_expects(backend) {
        let fixture = QueueFixture::new(backend).await;

        for (transition, expected) in EVERY_TRANSITION {
            for status in EVERY_STATUS {
                let run = fixture.in_status(status);
                fixture.insert(&run).await;

                let changed = fixture.try_transition(transition, &run, run.lease).await;

                let after = fixture.row(run.id).await;
                assert_eq!(changed, status == expected, "{transition} from {status:?}");
                assert_eq!(changed, after != run, "{transition} from {status:?}");
                fixture.clear().await;
            }
        }
    }

    async fn a_run_ends_only_under_its_current_lease(backend) {
        let fixture = QueueFixture::new(backend).await;
        let run = fixture.in_status(RunStatus::Running);
        fixture.insert(&run).await;

        for transition in ["finish", "fail", "expire", "hand_back"] {
            for lease in [run.lease - 1, run.lease + 1] {
                assert!(
                    !fixture.try_transition(transition, &run, lease).await,
                    "{transition} {lease}"
                );
            }
        }

        assert_eq!(fixture.row(run.id).await, run);
        assert!(fixture.try_transition("finish", &run, run.lease).await);
    }

    async fn a_claim_increments_the_lease_and_stores_its_node(backend) {
        let fixture = QueueFixture::new(backend).await;
        let run = fixture.new_run();
        fixture.insert(&run).await;
        let claim = || queue::claim(fixture.db(), run.id, NODE, fixture.now(), fixture.backend());

        let claimed = claim().await.unwrap().expect("the run can be claimed");
        let again = claim().await.unwrap();
        queue::release(fixture.db(), &run, 1).await.unwrap();
        let third = claim().await.unwrap().expect("the released run can be claimed");

        assert_eq!(claimed.status, RunStatus::Running);
        assert_eq!((claimed.lease, claimed.worker_id.as_deref()), (1, Some(NODE)));
        assert_eq!(claimed.started_at, Some(fixture.now()));
        assert!(claimed.heartbeat_at.is_some());
        assert!(again.is_none());
        assert_eq!(third.lease, 2, "the claim did not increment the lease");
    }

    async fn the_second_run_of_a_conversation_is_not_claimed(backend) {
        let fixture = QueueFixture::new(backend).await;
        let (running, queued) = (fixture.in_status(RunStatus::Running), fixture.new_run());
        fixture.insert(&running).await;
        fixture.insert(&queued).await;

        assert!(!fixture.try_transition("claim", &queued, 0).await);

        assert_eq!(fixture.row(queued.id).await, queued);
        assert!(fixture.try_transition("finish", &running, running.lease).await);
        assert!(fixture.try_transition("claim", &queued, 0).await);
    }

    async fn a_released_run_keeps_only_the_lease_of_its_claim(backend) {
        let fixture = QueueFixture::new(backend).await;
        let run = fixture.new_run();
        fixture.insert(&run).await;
        assert!(fixture.try_transition("claim", &run, 0).await);
        assert!(fixture.row(run.id).await.cutoff_seq.is_some());

        assert!(fixture.try_transition("hand_back", &run, 1).await);

        assert_eq!(fixture.row(run.id).await, run::Model { lease: 1, ..run });
    }

    async fn enqueueing_again_replaces_the_queued_run_and_keeps_its_row(backend) {
        let fixture = QueueFixture::new(backend).await;
        let round = fixture.past_round();
        fixture.insert_round(&round).await.unwrap();
        let first = queue::enqueue(fixture.db(), fixture.new_run()).await.unwrap();

        // PostgreSQL plans a statement separately for its first five executions.
        for n in 1..=12 {
            fixture.engine_test.clock.advance_ms(10);
            let newer = run::Model {
                kind: run::RunKind::ForceTalk,
                reason: run::RunReason::Generate,
                round_id: Some(round.id),
                slot_position: Some(n),
                attempt: 2,
                burst_started_at: Some(fixture.now()),
                debug: run::RunDebug {
                    trigger_message_id: Some(MessageId(n)),
                    ..run::RunDebug::default()
                },
                ..fixture.new_run()
            };

            let queued = queue::enqueue(fixture.db(), newer.clone()).await.unwrap();

            let expected = run::Model {
                id: first.id,
                created_at: first.created_at,
                ..newer
            };
            assert_eq!(queued, expected);
            assert_eq!(fixture.row(first.id).await, expected);
        }
        let all = run::Entity::find().all(fixture.db()).await.unwrap();
        assert_eq!(all.len(), 1);
    }

    async fn the_queued_run_is_also_found_with_a_generic_query_plan(backend) {
        let fixture = QueueFixture::new(backend).await;
        if fixture.backend() == Backend::Postgres {
            // PostgreSQL may choose this by itself from the sixth execution on.
            let generic = "SET plan_cache_mode = force_generic_plan";
            fixture.db().execute_unprepared(generic).await.unwrap();
        }

        let first = queue::enqueue(fixture.db(), fixture.new_run()).await.unwrap();
        let second = queue::enqueue(fixture.db(), fixture.new_run()).await.unwrap();

        assert_eq!(first.id, second.id);
    }

    async fn enqueueing_a_run_does_not_change_the_running_one(backend) {
        let fixture = QueueFixture::new(backend).await;
        let running = fixture.in_status(RunStatus::Running);
        fixture.insert(&running).await;

        let queued = queue::enqueue(fixture.db(), fixture.new_run()).await.unwrap();

        assert_ne!(queued.id, running.id);
        assert_eq!(fixture.row(running.id).await, running);
    }

    async fn the_cutoff_is_the_newest_message_of_the_conversation(backend) {
        let fixture = QueueFixture::new(backend).await;
        let run = fixture.new_run();
        fixture.insert(&run).await;
        let row = fixture.engine_test.row().await;
        let row = conversation::Model { last_seq: 42, ..row };
        row.into_active_model().reset_all().update(fixture.db()).await.unwrap();

        assert!(fixture.try_transition("claim", &run, 0).await);

        assert_eq!(fixture.row(run.id).await.cutoff_seq, Some(42));
    }

    async fn ending_a_run_stores_its_usage_and_debug_data(backend) {
        let fixture = QueueFixture::new(backend).await;
        let usage = run::RunUsage {
            prompt_tokens: 7,
            completion_tokens: 5,
            estimated: false,
        };
        let mut run = fixture.in_status(RunStatus::Running);
        fixture.insert(&run).await;
        run.usage = Some(usage);
        run.debug.chosen_because = Some("next in rotation".to_owned());
        fixture.engine_test.clock.advance_ms(10);

        assert!(fixture.try_transition("fail", &run, run.lease).await);

        let expected = run::Model {
            status: RunStatus::Failed,
            finished_at: Some(fixture.now()),
            error: Some(run_error()),
            ..run
        };
        assert_eq!(fixture.row(expected.id).await, expected);
    }

    async fn a_canceled_run_keeps_the_time_of_the_cancel_request(backend) {
        let fixture = QueueFixture::new(backend).await;
        let running = fixture.in_status(RunStatus::Running);
        fixture.insert(&running).await;
        assert!(fixture.try_transition("request_cancel", &running, 0).await);
        let requested = fixture.row(running.id).await;
        fixture.engine_test.clock.advance_ms(10);

        let (db, now) = (fixture.db(), fixture.now());
        let changed = queue::finish(db, &requested, requested.lease, &RunEnd::Canceled, now).await;

        let after = fixture.row(requested.id).await;
        assert_eq!(changed.unwrap().as_ref(), Some(&after));
        assert_eq!(after.cancel_requested_at, requested.cancel_requested_at);
        assert_eq!((after.status, after.keep_partial), (RunStatus::Canceled, true));
    }

    async fn a_heartbeat_renews_and_returns_only_running_runs_of_its_node(backend) {
        let fixture = QueueFixture::new(backend).await;
        let other_conversation = fixture.engine_test.another_conversation().await;
        let own = fixture.in_status(RunStatus::Running);
        let done = fixture.in_status(RunStatus::Succeeded);
        let queued = fixture.new_run();
        let mut foreign = fixture.in_status(RunStatus::Running);
        foreign.conversation_id = other_conversation;
        foreign.worker_id = Some("node-b".to_owned());
        for run in [&own, &done, &queued, &foreign] {
            fixture.insert(run).await;
        }
        assert!(fixture.try_transition("request_cancel", &own, 0).await);

        let ids = [&own, &done, &queued, &foreign].map(|it| it.id);
        let alive = queue::heartbeat(fixture.db(), NODE, &ids, fixture.now(), fixture.backend()).await.unwrap();

        let renewed: Vec<_> = alive.iter().map(|it| (it.id, it.lease)).collect();
        assert_eq!(renewed, [(own.id, own.lease)]);
        assert!(alive[0].cancel_requested_at.is_some());
        assert!(alive[0].heartbeat_at > own.heartbeat_at);
        for run in [done, queued, foreign] {
            assert_eq!(fixture.row(run.id).await, run);
        }
    }

    async fn only_a_run_with_a_stale_heartbeat_expires(backend) {
        let fixture = QueueFixture::new(backend).await;
        let mut run = fixture.in_status(RunStatus::Running);
        run.heartbeat_at = Some(fixture.now().plus_ms(-10 * MINUTE));
        fixture.insert(&run).await;
        let expired = async || {
            let all = queue::list_expired(fixture.db(), fixture.now(), &fixture.stale())
                .await
                .unwrap();
            all.iter().map(|it| it.id).collect::<Vec<_>>()
        };

        assert!(expired().await.is_empty());
        assert!(!fixture.try_transition("expire", &run, run.lease).await);

        fixture.clear().await;
        run.heartbeat_at = Some(fixture.now().plus_ms(-30 * MINUTE));
        fixture.insert(&run).await;
        assert_eq!(expired().await, [run.id]);
        queue::heartbeat(
            fixture.db(),
            NODE,
            &[run.id],
            fixture.now(),
            fixture.backend(),
        )
        .await
        .unwrap();
        assert!(
            !fixture.try_transition("expire", &run, run.lease).await,
            "a run with a new heartbeat expired"
        );
    }

    async fn staleness_is_judged_by_one_clock(backend) {
        let fixture = QueueFixture::new(backend).await;
        let mut run = fixture.in_status(RunStatus::Running);
        run.heartbeat_at = Some(fixture.now());
        fixture.insert(&run).await;

        // A day later by this node's clock; the database's clock is unchanged.
        let now = fixture.now().plus_ms(24 * 60 * MINUTE);
        let expired = queue::list_expired(fixture.db(), now, &fixture.stale()).await.unwrap();

        let uses_node_clock = fixture.backend() == Backend::Sqlite;
        assert_eq!(expired.len(), usize::from(uses_node_clock));
    }

    async fn a_conversation_has_one_queued_and_one_running_run(backend) {
        let fixture = QueueFixture::new(backend).await;

        for status in EVERY_STATUS {
            fixture.insert(&fixture.in_status(status)).await;
            let second = fixture.try_insert(&fixture.in_status(status)).await;

            let is_refused = second.as_ref().is_err_and(backend::is_unique_violation);
            let is_active = matches!(status, RunStatus::Queued | RunStatus::Running);
            assert_eq!(is_refused, is_active, "{status:?}: {second:?}");
        }
    }

    async fn a_conversation_has_one_active_round(backend) {
        let fixture = QueueFixture::new(backend).await;
        let insert = async |status| {
            let past = fixture.past_round();
            fixture.insert_round(&round::Model { status, ..past }).await
        };

        for status in [round::RoundStatus::Finished, round::RoundStatus::Finished, round::RoundStatus::Active] {
            insert(status).await.unwrap();
        }
        let second = insert(round::RoundStatus::Active).await;

        assert!(backend::is_unique_violation(&second.unwrap_err()));
    }

    async fn the_newest_run_is_the_one_with_the_greatest_number(backend) {
        let fixture = QueueFixture::new(backend).await;
        let (early_id, late_id) = (RunId::new(), RunId::new());
        let first = run::Model { id: late_id, ..fixture.in_status(RunStatus::Failed) };
        let second = run::Model { id: early_id, ..fixture.in_status(RunStatus::Failed) };
        fixture.insert(&first).await;
        fixture.insert(&second).await;

        let newest = run::find_newest(fixture.db(), second.conversation_id).await.unwrap();
        let doubled = run::Model { id: RunId::new(), ..second.clone() };

        assert_eq!(newest.map(|it| it.id), Some(early_id), "the newest run was chosen by its id");
        assert!(backend::is_unique_violation(&fixture.try_insert(&doubled).await.unwrap_err()));
    }

    async fn the_dispatcher_lists_the_next_due_runs_of_idle_conversations(backend) {
        let fixture = QueueFixture::new(backend).await;
        let mut later = fixture.new_run();
        later.run_after = Some(fixture.now().plus_ms(500));
        let mut sooner = fixture.new_run_in(fixture.engine_test.another_conversation().await);
        sooner.run_after = Some(fixture.now().plus_ms(-500));
        let busy = fixture.engine_test.another_conversation().await;
        let mut running = fixture.in_status(RunStatus::Running);
        running.conversation_id = busy;
        let blocked = fixture.new_run_in(busy);
        for run in [&later, &sooner, &running, &blocked] {
            fixture.insert(run).await;
        }

        let all = due_runs::list_next_due(fixture.db(), &[], 32).await.unwrap();
        let first = due_runs::list_next_due(fixture.db(), &[], 1).await.unwrap();

        let ids: Vec<_> = all.iter().map(|it| it.id).collect();
        assert_eq!(ids, [sooner.id, later.id]);
        assert_eq!(first[0].id, sooner.id);
        assert_eq!(first[0].run_after, sooner.run_after);
    }
}
