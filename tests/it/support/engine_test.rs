//! Runs the engine without HTTP: a fresh database, a scripted model, a clock that the test
//! advances, and a recorder of all events.
//!
//! ```text
//! let room = EngineTest::builder(backend).cast(&["Ada"]).rules(|it| it.user_turn_debounce_ms = 500).open().await;
//! room.user.post("Hello.").await;
//! room.clock.advance_ms(500);
//! room.settle().await;
//! assert_eq!(room.answers().await, ["Hello."]);
//! room.close().await;
//! ```

use base::clock::{Clock, Timestamp};
use base::ids::{ConversationId, MembershipId, SpaceId};
use realtime::hub::Hub;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};
use tokio::time::timeout;
use troupe::conversations::{conversation, message};
use troupe::db::connect::Db;
use troupe::runs::engine::{PostResult, RunEngine};
use troupe::runs::error::EngineError;
use troupe::runs::reading::views::RuntimeView;
use troupe::runs::scheduling::command::MessageEdit;
use troupe::runs::services::RunSettings;
use troupe::runs::store::run;
use troupe::spaces::{membership, space};

use crate::support::backends::TestDatabase;
use crate::support::database_facts::DatabaseFacts;
use crate::support::engine_test_builder::{connect, start_node};
use crate::support::event_recorder::EventRecorder;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::poll::DEADLINE;
use crate::support::postgres_proxy::PostgresProxy;
use crate::support::{api_contract, event_invariants, fixtures, invariants, poll};

/// A conversation, and all it stands on.
pub struct EngineTest {
    pub engine: RunEngine,
    pub user: TestUser,
    pub upstream: FakeProvider,
    pub clock: Clock,
    pub db: Db,
    pub events: EventRecorder,
    pub space: SpaceId,
    pub conversation: ConversationId,
    /// What counts the statements, if asked for.
    pub postgres_proxy: Option<PostgresProxy>,
    /// Dropped last.
    pub database: TestDatabase,
}

/// Eve, who sits in the room.
pub struct TestUser {
    pub membership: MembershipId,
    pub engine: RunEngine,
    pub conversation: ConversationId,
}

impl TestUser {
    /// Posts; it must be taken.
    pub async fn post(&self, text: &str) -> PostResult {
        self.try_post(text).await.expect("the post is taken")
    }

    pub async fn try_post(&self, text: &str) -> Result<PostResult, EngineError> {
        self.post_with_client_id(text, None).await
    }

    /// Posts under a `client_id`.
    pub async fn post_with_client_id(
        &self,
        text: &str,
        client_id: Option<&str>,
    ) -> Result<PostResult, EngineError> {
        let client_id = client_id.map(str::to_owned);
        self.engine
            .post_message(
                self.conversation,
                self.membership,
                text.to_owned(),
                client_id,
                Vec::new(),
            )
            .await
    }
}

impl EngineTest {
    /// Builds another node on the same database and the same models, not started and without
    /// subscribers.
    pub fn another_node(&self) -> RunEngine {
        self.another_node_with(|_| {})
    }

    pub fn another_node_with(&self, change: impl FnOnce(&mut RunSettings)) -> RunEngine {
        let context = self.engine.context();
        let mut settings = context.settings;
        change(&mut settings);
        start_node(
            &self.db,
            &Hub::new(),
            &self.clock,
            context.models.clone(),
            settings,
        )
    }

    /// The seat of a character.
    pub async fn membership(&self, name: &str) -> membership::Model {
        let found = membership::Entity::find()
            .filter(membership::Column::SpaceId.eq(self.space))
            .filter(membership::Column::CachedDisplayName.eq(name))
            .one(self.db.reader())
            .await
            .expect("the database answers");
        found.expect("a seat of the cast")
    }

    /// Another conversation of the space, of the same cast.
    pub async fn another_conversation(&self) -> ConversationId {
        fixtures::insert_conversation(&self.db, self.space, self.clock.now()).await
    }

    /// Adds another user as a member of the space.
    pub async fn another_user(&self, name: &str) -> TestUser {
        let now = self.clock.now();
        TestUser {
            membership: fixtures::insert_human(&self.db, self.space, name, now).await,
            engine: self.engine.clone(),
            conversation: self.conversation,
        }
    }

    /// The same human at another node.
    pub fn user_at_node(&self, node: &RunEngine) -> TestUser {
        self.user_in_conversation(node, self.conversation)
    }

    /// The same human at another node, in another conversation.
    pub fn user_in_conversation(&self, node: &RunEngine, conversation: ConversationId) -> TestUser {
        TestUser {
            membership: self.user.membership,
            engine: node.clone(),
            conversation,
        }
    }

    /// Connections of another process.
    pub async fn another_db(&self) -> Db {
        connect(self.database.url()).await
    }

    /// Stops a node, and waits for all it does.
    pub async fn stop(&self, node: &RunEngine) {
        let shutdown = &node.context().shutdown;
        shutdown.draining.cancel();
        shutdown.stopping.cancel();
        let ended = timeout(DEADLINE, shutdown.wait()).await;
        ended.expect("every task ends with its node");
    }

    /// Gives a character something to say when it enters.
    pub async fn set_greeting(&self, name: &str, text: &str) {
        let seat = self.membership(name).await;
        fixtures::set_greeting(&self.db, seat, text).await;
    }

    /// Deletes the conversation with everything that belongs to it.
    pub async fn delete_conversation(&self) {
        let gone = conversation::Entity::delete_by_id(self.conversation)
            .exec(self.db.heartbeat_connection());
        gone.await.expect("the database answers");
    }

    /// Changes the rules of the space in the database, without the engine.
    pub async fn change_rules(&self, change: impl FnOnce(&mut space::Model)) {
        fixtures::change_space(&self.db, self.space, change).await;
    }

    /// Changes a membership in the database, without the engine.
    pub async fn change_membership(&self, name: &str, change: impl FnOnce(&mut membership::Model)) {
        let seat = self.membership(name).await;
        fixtures::change_membership(&self.db, seat, change).await;
    }

    /// All runs, in the order in which they were planned.
    pub async fn runs(&self) -> Vec<run::Model> {
        let all = run::Entity::find()
            .filter(run::Column::ConversationId.eq(self.conversation))
            .order_by_asc(run::Column::RunSeq)
            .all(self.db.reader())
            .await;
        all.expect("the database answers")
    }

    /// The one run there is.
    pub async fn only_run(&self) -> run::Model {
        let mut runs = self.runs().await;
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.remove(0)
    }

    /// The timeline, hidden messages too.
    pub async fn messages(&self) -> Vec<message::Model> {
        let all = message::Entity::find()
            .filter(message::Column::ConversationId.eq(self.conversation))
            .order_by_asc(message::Column::Seq)
            .all(self.db.reader())
            .await;
        all.expect("the database answers")
    }

    /// What the characters said.
    pub async fn answers(&self) -> Vec<String> {
        let all = self.messages().await.into_iter();
        all.filter(|it| it.role == message::MessageRole::Assistant)
            .map(|it| it.content)
            .collect()
    }

    /// The conversation's row.
    pub async fn row(&self) -> conversation::Model {
        let row = conversation::Entity::find_by_id(self.conversation)
            .one(self.db.reader())
            .await;
        row.expect("the database answers")
            .expect("the conversation")
    }

    pub async fn runtime(&self) -> RuntimeView {
        let runtime = self.engine.runtime(self.conversation).await;
        runtime.expect("the database answers")
    }

    /// The database, read past the engine.
    pub async fn facts(&self) -> DatabaseFacts {
        DatabaseFacts::open(&self.database).await
    }

    /// Waits for a fact that no event announces.
    pub async fn until(&self, what: &str, mut holds: impl AsyncFnMut(&Self) -> bool) {
        poll::until(what, async || holds(self).await.then_some(())).await;
    }

    /// Waits until this node executes nothing any more.
    pub async fn wait_until_idle(&self) {
        let leases = &self.engine.context().leases;
        self.until("nothing is executed", async |_| leases.count() == 0)
            .await;
    }

    /// When each running run of the space was last heard of.
    pub async fn heartbeats(&self) -> Vec<Option<Timestamp>> {
        let running = run::Entity::find()
            .filter(run::Column::Status.eq(run::RunStatus::Running))
            .order_by_asc(run::Column::ConversationId)
            .order_by_asc(run::Column::RunSeq)
            .all(self.db.reader())
            .await;
        let running = running.expect("the database answers").into_iter();
        running.map(|it| it.heartbeat_at).collect()
    }

    /// What the space has spent.
    pub async fn tokens_used(&self) -> i64 {
        let row = space::Entity::find_by_id(self.space).one(self.db.reader());
        let row = row.await.expect("the database answers").expect("a space");
        row.tokens_used
    }

    /// Waits until nothing runs and nothing is due, and all events were published.
    pub async fn settle(&self) {
        self.wait_until_settled(|room, rev| room.events.has_rev(rev))
            .await;
    }

    /// The same where other nodes have a say, whom the ear does not hear.
    pub async fn settle_alone(&self) {
        self.wait_until_settled(|_, _| true).await;
    }

    async fn wait_until_settled(&self, is_told: impl Fn(&Self, i64) -> bool) {
        let settled = timeout(DEADLINE, async {
            loop {
                // In this order: what put it to rest is counted in the revision read after it.
                if self.is_at_rest().await {
                    let rev = self.row().await.rev;
                    if is_told(self, rev) {
                        return;
                    }
                }
                self.events.next_frame_or_a_moment().await;
            }
        });
        if settled.await.is_err() {
            let runtime = self.runtime().await;
            panic!(
                "it never settles: {runtime:?}\n{:#?}",
                self.events.event_names()
            );
        }
    }

    async fn is_at_rest(&self) -> bool {
        let runtime = self.runtime().await;
        let now = self.clock.now();
        let is_due = |it: &run::Model| it.run_after.is_none_or(|at| at <= now);
        runtime.running.is_none()
            && !runtime.queued.as_ref().is_some_and(is_due)
            && self.engine.context().leases.count() == 0
    }

    /// Stops the node and holds everything that happened to the laws.
    pub async fn close(self) {
        let log = self.events.log();
        let breaches = [event_invariants::violations(&log), self.events.violations()].concat();
        assert!(breaches.is_empty(), "{}\n{log:#?}", breaches.join("\n"));
        log.iter().for_each(api_contract::check_frame);
        self.close_without_events().await;
    }

    /// Stops the node where a test has broken the laws itself.
    pub async fn close_broken(self) {
        self.stop(&self.engine).await;
        self.db.close().await;
    }

    /// The same where other nodes had a say, whom the ear did not hear.
    pub async fn close_without_events(self) {
        let mut facts = self.facts().await;
        self.stop(&self.engine).await;
        let broken = invariants::at_any_instant(&mut facts).await;
        assert!(broken.is_empty(), "{}", broken.join("\n"));
        self.db.close().await;
    }
}

/// Another text for a message, made from the text it has now.
pub fn edit_of(message: &message::Model, content: &str) -> MessageEdit {
    MessageEdit {
        message: message.id,
        content: content.to_owned(),
        token_count: 0,
        expected_version: message.version,
        by: None,
    }
}
