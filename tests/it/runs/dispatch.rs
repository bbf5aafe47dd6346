//! Tests which runs the dispatcher claims, and in which order, when more are due than permits
//! exist.

use base::clock::Timestamp;
use base::ids::{RunId, SpaceId};
use llm::registry::ProviderKind;
use llm::secret::Secret;
use sea_orm::EntityTrait;
use troupe::providers::provider;
use troupe::runs::scheduling::scheduler;
use troupe::runs::store::run::RunStatus;
use troupe::runs::store::{due_runs, run};

use crate::support::backends::{TestBackend, on_both};
use crate::support::engine_test::EngineTest;
use crate::support::{model_call, transitions};

/// A conversation on a node that is not started, with a database that records every transition.
async fn open_app(backend: TestBackend, n_permits: usize) -> EngineTest {
    let app = EngineTest::builder(backend)
        .settings(|it| it.max_running = n_permits)
        .not_started()
        .open()
        .await;
    transitions::record(&mut app.facts().await).await;
    app
}

impl EngineTest {
    async fn status(&self, id: RunId) -> RunStatus {
        let row = run::Entity::find_by_id(id).one(self.db.reader()).await;
        row.expect("the query failed")
            .expect("the run is missing")
            .status
    }

    async fn wait_until_succeeded(&self, id: RunId) {
        self.until("the run has ended", async |it| {
            it.status(id).await == RunStatus::Succeeded
        })
        .await;
    }

    fn long_ago(&self) -> Timestamp {
        self.clock.now().plus_ms(-60_000)
    }
}

/// The number of runs claimed between two runs of the log.
fn n_between(claimed: &[RunId], from: usize, until: RunId) -> usize {
    let at = claimed.iter().position(|it| *it == until);
    at.expect("the run was not claimed") - from
}

on_both! {
    /// Measured in runs: the 500 runs have been waiting longer, and none is finished.
    async fn five_hundred_due_runs_of_one_space_do_not_hold_up_the_first_of_another(backend) {
        for n_permits in [1, 3] {
            let app = open_app(backend, n_permits).await;
            app.insert_due_runs(app.load_fixture().await, 500, app.long_ago()).await;
            let other = app.insert_due_runs(app.another_load_fixture().await, 1, app.clock.now()).await;

            app.engine.start().await.unwrap();
            app.wait_until_succeeded(other[0]).await;

            let n_before = n_between(&app.claimed_runs().await, 0, other[0]);
            assert!(n_before <= 2 * n_permits, "{n_before} came first");
            app.close_without_events().await;
        }
    }

    async fn a_new_space_at_full_load_gets_the_next_permit(backend) {
        let app = open_app(backend, 2).await;
        let node = app.another_node();
        let gate = app.upstream.gate();
        app.insert_due_runs(app.load_fixture().await, 500, app.long_ago()).await;
        for node in [&app.engine, &node] {
            node.start().await.unwrap();
        }
        app.upstream.wait_for_requests(4).await;
        let n_before = app.claimed_runs().await.len();

        let other = app.insert_due_runs(app.another_load_fixture().await, 1, app.clock.now()).await;
        gate.open();
        app.wait_until_succeeded(other[0]).await;

        let n_between = n_between(&app.claimed_runs().await, n_before, other[0]);
        assert_eq!(n_before, 4, "two nodes with two permits each");
        assert!(n_between <= 2 * 4, "{n_between} came first");
        app.stop(&node).await;
        app.close_without_events().await;
    }

    async fn many_spaces_share_the_permits(backend) {
        let app = open_app(backend, 8).await;
        let gate = app.upstream.gate();
        app.insert_due_runs(app.load_fixture().await, 100, app.long_ago()).await;
        let mut first_runs = Vec::new();
        for n in 0..7 {
            let fixture = app.another_load_fixture().await;
            first_runs.push(app.insert_due_runs(fixture, 40, app.clock.now().plus_ms(-n)).await[0]);
        }

        app.engine.start().await.unwrap();
        app.upstream.wait_for_requests(8).await;

        let claimed = app.claimed_runs().await;
        assert_eq!(claimed.len(), 8, "more runs than permits were claimed");
        assert!(first_runs.iter().all(|it| claimed.contains(it)), "a space got no permit");
        gate.open();
        app.close_without_events().await;
    }

    async fn a_full_provider_delays_no_run_of_another_provider(backend) {
        let app = EngineTest::builder(backend)
            .settings(|it| it.max_per_provider = 1)
            .not_started()
            .open()
            .await;
        transitions::record(&mut app.facts().await).await;
        let gate = app.upstream.gate();
        let (ada, other) = (app.load_fixture().await, app.another_load_fixture().await);
        let many = app.insert_due_runs(ada, 40, app.long_ago()).await;
        let others = app.insert_due_runs(other, 2, app.clock.now().plus_ms(-9)).await;
        app.use_another_provider(other.space).await;

        app.engine.start().await.unwrap();
        app.upstream.wait_for_requests(2).await;

        assert_eq!(app.claimed_runs().await.len(), 2);
        assert_eq!(app.status(many[0]).await, RunStatus::Running);
        assert_eq!(app.status(others[0]).await, RunStatus::Running);
        gate.open();
        for id in many.iter().chain(&others) {
            app.wait_until_succeeded(*id).await;
        }
        app.close_without_events().await;
    }

    async fn a_run_that_cannot_be_claimed_does_not_block_other_runs(backend) {
        let app = open_app(backend, 64).await;
        let ids = app.insert_due_runs(app.load_fixture().await, 9, app.long_ago()).await;
        app.reject_start(ids[4]).await;

        app.engine.start().await.unwrap();
        for id in ids.iter().filter(|it| **it != ids[4]) {
            app.wait_until_succeeded(*id).await;
        }

        assert_eq!(app.status(ids[4]).await, RunStatus::Queued);
        assert_eq!(transitions::illegal(&mut app.facts().await).await, Vec::<String>::new());
        app.close_without_events().await;
    }

    async fn a_conversation_locked_by_another_claim_is_skipped(backend) {
        let app = open_app(backend, 64).await;
        app.insert_due_runs(app.load_fixture().await, 3, app.long_ago()).await;
        let all = due_runs::list_next_due(app.db.reader(), &[], 9).await.unwrap();
        let context = app.engine.context();
        let node = app.another_node();

        // On SQLite the second claim waits for the whole first one and finds nothing left.
        let (one, two) = tokio::join!(
            scheduler::claim(context, all.clone()),
            scheduler::claim(node.context(), all.clone()),
        );

        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!(one.runs.len() + two.runs.len(), 3, "{one:?} {two:?}");
        assert_eq!((one.locked_conversation, two.locked_conversation), (None, None));
        app.close_without_events().await;
    }

    async fn due_runs_are_listed_space_by_space(backend) {
        let app = open_app(backend, 1).await;
        let mut spaces = Vec::new();
        for n in [3, 0, 2, 5] {
            let fixture = app.another_load_fixture().await;
            app.insert_due_runs(fixture, n, app.long_ago()).await;
            spaces.push(fixture.space);
        }
        let later = app.another_load_fixture().await;
        app.insert_due_runs(later, 2, app.clock.now().plus_ms(5_000)).await;
        let (db, now) = (app.db.reader(), app.clock.now());
        let due_in = async |after, limit| due_runs::list_due_spaces(db, now, after, limit).await.unwrap();

        assert_eq!(due_in(SpaceId(0), 9).await, [spaces[0], spaces[2], spaces[3]]);
        assert_eq!(due_in(SpaceId(0), 2).await, [spaces[0], spaces[2]]);
        assert_eq!(due_in(spaces[2], 2).await, [spaces[3]]);

        let lines = due_runs::list_for_spaces(db, now, &[], &[spaces[3], spaces[0]], 2).await.unwrap();
        let soonest = due_runs::list_next_due(db, &[], 99).await.unwrap();
        let of = |space| soonest.iter().filter(move |it| it.space_id == space).take(2).cloned();
        let expected: Vec<_> = of(spaces[3]).chain(of(spaces[0])).collect();
        assert_eq!(lines, expected, "the first due runs of each space");
        app.close_without_events().await;
    }
}

impl EngineTest {
    /// Gives the users of this space their own endpoint at the same fake provider.
    async fn use_another_provider(&self, space: SpaceId) {
        let new = provider::NewProvider {
            name: "Another".to_owned(),
            kind: ProviderKind::OpenaiCompatible,
            base_url: Some(self.upstream.base_url()),
            api_key: Some(Secret::new(model_call::KEY)),
            model: "scripted".to_owned(),
            is_default: false,
            disabled: false,
            settings: serde_json::json!({}),
        };
        let sealer = &self.engine.context().models.cipher;
        let made = provider::create(&self.db, sealer, new, self.clock.now()).await;
        let id = made.expect("the provider was not created").id;
        let sql =
            format!("UPDATE space_memberships SET llm_provider_id = {id} WHERE space_id = {space}");
        self.facts().await.execute(&sql).await;
    }

    /// Makes the database reject the start of this run.
    async fn reject_start(&self, id: RunId) {
        let mut facts = self.facts().await;
        let id = id.0.simple();
        let sql = match self.database.backend() {
            TestBackend::Sqlite => format!(
                "CREATE TRIGGER never BEFORE UPDATE ON conversation_runs WHEN NEW.status = 'running' AND NEW.id = X'{id}' BEGIN SELECT RAISE(ABORT, 'never'); END"
            ),
            TestBackend::Postgres => format!(
                "CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'never'; END $$;
                CREATE TRIGGER never BEFORE UPDATE ON conversation_runs FOR EACH ROW WHEN (NEW.status = 'running' AND NEW.id = '{id}') EXECUTE FUNCTION never()"
            ),
        };
        facts.execute(&sql).await;
    }
}

/// Many nodes race for the same runs; SQLite never has more than one node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_nodes_claim_two_thousand_runs_and_none_of_them_twice() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let app = open_app(TestBackend::Postgres, 64).await;
    let ids = app
        .insert_due_runs(app.load_fixture().await, 2_000, app.long_ago())
        .await;
    let nodes: Vec<_> = (0..8).map(|_| app.another_node()).collect();

    let claimers = nodes.iter().map(async |node| {
        let mut n_claimed = 0;
        loop {
            let all = due_runs::list_next_due(app.db.reader(), &[], 32)
                .await
                .unwrap();
            if all.is_empty() {
                return n_claimed;
            }
            let claims = scheduler::claim(node.context(), all).await.unwrap();
            n_claimed += claims.runs.len();
        }
    });
    let n_claimed = futures::future::join_all(claimers).await;

    let claimed = app.claimed_runs().await;
    assert_eq!(n_claimed.iter().sum::<usize>(), ids.len(), "{n_claimed:?}");
    assert_eq!(claimed.len(), ids.len());
    assert!(ids.iter().all(|it| claimed.contains(it)));
    let illegal = transitions::illegal(&mut app.facts().await).await;
    assert_eq!(illegal, Vec::<String>::new());
    app.close_without_events().await;
}
