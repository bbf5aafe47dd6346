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
async fn room(backend: TestBackend, n_places: usize) -> EngineTest {
    let room = EngineTest::builder(backend)
        .settings(|it| it.max_running = n_places)
        .not_started()
        .open()
        .await;
    transitions::record(&mut room.facts().await).await;
    room
}

impl EngineTest {
    async fn status(&self, id: RunId) -> RunStatus {
        let row = run::Entity::find_by_id(id).one(self.db.reader()).await;
        row.expect("the database answers").expect("the run").status
    }

    async fn has_ended(&self, id: RunId) {
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
    at.expect("it was claimed") - from
}

on_both! {
    /// Measured in runs: the 500 runs have been waiting longer, and none is finished.
    async fn five_hundred_due_runs_of_one_space_do_not_hold_up_the_first_of_another(backend) {
        for n_places in [1, 3] {
            let room = room(backend, n_places).await;
            room.insert_due_runs(room.load_fixture().await, 500, room.long_ago()).await;
            let other = room.insert_due_runs(room.another_load_fixture().await, 1, room.clock.now()).await;

            room.engine.start().await.unwrap();
            room.has_ended(other[0]).await;

            let n_before = n_between(&room.claimed_runs().await, 0, other[0]);
            assert!(n_before <= 2 * n_places, "{n_before} came first");
            room.close_without_events().await;
        }
    }

    async fn a_new_space_at_full_load_gets_the_next_permit(backend) {
        let room = room(backend, 2).await;
        let node = room.another_node();
        let gate = room.upstream.gate();
        room.insert_due_runs(room.load_fixture().await, 500, room.long_ago()).await;
        for node in [&room.engine, &node] {
            node.start().await.unwrap();
        }
        room.upstream.wait_for_requests(4).await;
        let n_before = room.claimed_runs().await.len();

        let other = room.insert_due_runs(room.another_load_fixture().await, 1, room.clock.now()).await;
        gate.open();
        room.has_ended(other[0]).await;

        let n_between = n_between(&room.claimed_runs().await, n_before, other[0]);
        assert_eq!(n_before, 4, "two nodes of two places");
        assert!(n_between <= 2 * 4, "{n_between} came first");
        room.stop(&node).await;
        room.close_without_events().await;
    }

    async fn many_spaces_share_the_places(backend) {
        let room = room(backend, 8).await;
        let gate = room.upstream.gate();
        room.insert_due_runs(room.load_fixture().await, 100, room.long_ago()).await;
        let mut houses = Vec::new();
        for n in 0..7 {
            let house = room.another_load_fixture().await;
            houses.push(room.insert_due_runs(house, 40, room.clock.now().plus_ms(-n)).await[0]);
        }

        room.engine.start().await.unwrap();
        room.upstream.wait_for_requests(8).await;

        let claimed = room.claimed_runs().await;
        assert_eq!(claimed.len(), 8, "what does not fit stays queued");
        assert!(houses.iter().all(|it| claimed.contains(it)), "each has one place");
        gate.open();
        room.close_without_events().await;
    }

    async fn a_full_provider_delays_no_run_of_another_provider(backend) {
        let room = EngineTest::builder(backend)
            .settings(|it| it.max_per_provider = 1)
            .not_started()
            .open()
            .await;
        transitions::record(&mut room.facts().await).await;
        let gate = room.upstream.gate();
        let (ada, other) = (room.load_fixture().await, room.another_load_fixture().await);
        let many = room.insert_due_runs(ada, 40, room.long_ago()).await;
        let seats = room.insert_due_runs(other, 2, room.clock.now().plus_ms(-9)).await;
        room.speaks_through_another_provider(other.space).await;

        room.engine.start().await.unwrap();
        room.upstream.wait_for_requests(2).await;

        assert_eq!(room.claimed_runs().await.len(), 2);
        assert_eq!(room.status(many[0]).await, RunStatus::Running);
        assert_eq!(room.status(seats[0]).await, RunStatus::Running);
        gate.open();
        for id in many.iter().chain(&seats) {
            room.has_ended(*id).await;
        }
        room.close_without_events().await;
    }

    async fn one_that_cannot_be_claimed_spoils_nothing_for_the_others(backend) {
        let room = room(backend, 64).await;
        let ids = room.insert_due_runs(room.load_fixture().await, 9, room.long_ago()).await;
        room.refuses_to_run(ids[4]).await;

        room.engine.start().await.unwrap();
        for id in ids.iter().filter(|it| **it != ids[4]) {
            room.has_ended(*id).await;
        }

        assert_eq!(room.status(ids[4]).await, RunStatus::Queued);
        assert_eq!(transitions::illegal(&mut room.facts().await).await, Vec::<String>::new());
        room.close_without_events().await;
    }

    async fn a_conversation_that_another_has_locked_is_left_to_them(backend) {
        let room = room(backend, 64).await;
        room.insert_due_runs(room.load_fixture().await, 3, room.long_ago()).await;
        let all = due_runs::list_next_due(room.db.reader(), &[], 9).await.unwrap();
        let context = room.engine.context();
        let node = room.another_node();

        // On SQLite the second claim waits for the whole first one and finds nothing left.
        let (one, two) = tokio::join!(
            scheduler::claim(context, all.clone()),
            scheduler::claim(node.context(), all.clone()),
        );

        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!(one.runs.len() + two.runs.len(), 3, "{one:?} {two:?}");
        assert_eq!((one.locked_conversation, two.locked_conversation), (None, None));
        room.close_without_events().await;
    }

    async fn each_look_hops_from_space_to_space(backend) {
        let room = room(backend, 1).await;
        let mut spaces = Vec::new();
        for n in [3, 0, 2, 5] {
            let house = room.another_load_fixture().await;
            room.insert_due_runs(house, n, room.long_ago()).await;
            spaces.push(house.space);
        }
        let later = room.another_load_fixture().await;
        room.insert_due_runs(later, 2, room.clock.now().plus_ms(5_000)).await;
        let (db, now) = (room.db.reader(), room.clock.now());
        let due_in = async |after, limit| due_runs::list_due_spaces(db, now, after, limit).await.unwrap();

        assert_eq!(due_in(SpaceId(0), 9).await, [spaces[0], spaces[2], spaces[3]]);
        assert_eq!(due_in(SpaceId(0), 2).await, [spaces[0], spaces[2]]);
        assert_eq!(due_in(spaces[2], 2).await, [spaces[3]]);

        let lines = due_runs::list_for_spaces(db, now, &[], &[spaces[3], spaces[0]], 2).await.unwrap();
        let soonest = due_runs::list_next_due(db, &[], 99).await.unwrap();
        let of = |space| soonest.iter().filter(move |it| it.space_id == space).take(2).cloned();
        let expected: Vec<_> = of(spaces[3]).chain(of(spaces[0])).collect();
        assert_eq!(lines, expected, "the soonest of each");
        room.close_without_events().await;
    }
}

impl EngineTest {
    /// Gives the users of this space their own endpoint at the same fake provider.
    async fn speaks_through_another_provider(&self, space: SpaceId) {
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
        let id = made.expect("a provider can be made").id;
        let sql =
            format!("UPDATE space_memberships SET llm_provider_id = {id} WHERE space_id = {space}");
        self.facts().await.execute(&sql).await;
    }

    /// Makes the database reject the start of this run.
    async fn refuses_to_run(&self, id: RunId) {
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
    let room = room(TestBackend::Postgres, 64).await;
    let ids = room
        .insert_due_runs(room.load_fixture().await, 2_000, room.long_ago())
        .await;
    let nodes: Vec<_> = (0..8).map(|_| room.another_node()).collect();

    let claimers = nodes.iter().map(async |node| {
        let mut n_claimed = 0;
        loop {
            let all = due_runs::list_next_due(room.db.reader(), &[], 32)
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

    let claimed = room.claimed_runs().await;
    assert_eq!(n_claimed.iter().sum::<usize>(), ids.len(), "{n_claimed:?}");
    assert_eq!(claimed.len(), ids.len());
    assert!(ids.iter().all(|it| claimed.contains(it)));
    let illegal = transitions::illegal(&mut room.facts().await).await;
    assert_eq!(illegal, Vec::<String>::new());
    room.close_without_events().await;
}
