//! Runs the engine without HTTP: a fresh database, a scripted model, a clock that the test
//! advances, and a recorder of all events.
//!
//! ```text
//! let app = EngineTest::builder(backend).cast(&["Ada"]).rules(|it| it.user_turn_debounce_ms = 500).open().await;
//! app.user.post("Hello.").await;
//! app.clock.advance_ms(500);
//! app.settle().await;
//! assert_eq!(app.answers().await, ["Hello."]);
//! app.close().await;
//! ```

use base::clock::{Clock, Timestamp};
use base::ids::{ConversationId, MembershipId, MessageId, ProviderId, SpaceId};
use realtime::hub::Hub;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};
use tokio::time::timeout;
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::{conversation, message, token_usage};
use troupe::db::connect::Db;
use troupe::providers::provider;
use troupe::runs::engine::{PostResult, RunEngine};
use troupe::runs::error::EngineError;
use troupe::runs::reading::views::RuntimeView;
use troupe::runs::scheduling::command::MessageEdit;
use troupe::runs::scheduling::messages::new_post::{NewPost, RequestedAudience};
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

/// A conversation with its engine, model, clock and database.
pub struct EngineTest {
    pub engine: RunEngine,
    pub user: TestUser,
    pub upstream: FakeProvider,
    pub clock: Clock,
    pub db: Db,
    pub events: EventRecorder,
    pub space: SpaceId,
    pub conversation: ConversationId,
    /// Records the SQL statements, if the test requested it.
    pub postgres_proxy: Option<PostgresProxy>,
    /// Dropped last.
    pub database: TestDatabase,
}

/// A user who is a member of the space; Eve by default.
pub struct TestUser {
    pub membership: MembershipId,
    pub engine: RunEngine,
    pub conversation: ConversationId,
}

impl TestUser {
    /// Posts a message and asserts success.
    pub async fn post(&self, text: &str) -> PostResult {
        self.try_post(text).await.expect("the message is accepted")
    }

    pub async fn try_post(&self, text: &str) -> Result<PostResult, EngineError> {
        self.post_with_client_id(text, None).await
    }

    /// Posts a message with a `client_id`.
    pub async fn post_with_client_id(
        &self,
        text: &str,
        client_id: Option<&str>,
    ) -> Result<PostResult, EngineError> {
        let post = NewPost {
            client_id: client_id.map(str::to_owned),
            ..NewPost::new(self.membership, text.to_owned())
        };
        self.send(post).await
    }

    /// Posts this message.
    pub async fn send(&self, post: NewPost) -> Result<PostResult, EngineError> {
        let db = self.engine.context().db.reader();
        let author = membership::find(db, post.author).await?;
        let author = author.expect("the author is a member");
        self.engine.post(self.conversation, &author, post).await
    }

    /// Posts a whisper to another member and asserts success.
    pub async fn whisper(&self, text: &str, to: MembershipId) -> PostResult {
        let mut post = NewPost::new(self.membership, text.to_owned());
        post.requested.audience = RequestedAudience::Only(vec![to]);
        self.send(post).await.expect("the whisper is accepted")
    }

    /// Posts an answer to a message and asserts success.
    pub async fn reply(&self, text: &str, to: MessageId) -> PostResult {
        let post = NewPost {
            reply_to: Some(to),
            ..NewPost::new(self.membership, text.to_owned())
        };
        self.send(post).await.expect("the reply is accepted")
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

    /// Returns the conversation, for a viewer who sees everything.
    pub fn scope(&self) -> (ConversationId, Viewer) {
        (self.conversation, Viewer::Server)
    }

    /// Returns the membership of a character.
    pub async fn membership(&self, name: &str) -> membership::Model {
        let found = membership::Entity::find()
            .filter(membership::Column::SpaceId.eq(self.space))
            .filter(membership::Column::CachedDisplayName.eq(name))
            .one(self.db.reader())
            .await
            .expect("the database answers");
        found.expect("the membership exists")
    }

    /// Inserts another conversation of the space.
    pub async fn another_conversation(&self) -> ConversationId {
        fixtures::insert_conversation(&self.db, self.space, self.clock.now()).await
    }

    /// Inserts another provider with the same scripts, for a model of this name.
    pub async fn another_provider(&self, model: &str) -> ProviderId {
        let new = provider::NewProvider {
            model: model.to_owned(),
            is_default: false,
            ..fixtures::scripted_provider(&self.upstream.base_url())
        };
        let models = &self.engine.context().models;
        let now = self.clock.now();
        fixtures::insert_provider(&self.db, &models.cipher, now, new)
            .await
            .id
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

    /// Returns the same user at another node.
    pub fn user_at_node(&self, node: &RunEngine) -> TestUser {
        self.user_in_conversation(node, self.conversation)
    }

    /// Returns the same user at another node, in another conversation.
    pub fn user_in_conversation(&self, node: &RunEngine, conversation: ConversationId) -> TestUser {
        TestUser {
            membership: self.user.membership,
            engine: node.clone(),
            conversation,
        }
    }

    /// Opens a separate connection pool, like another process.
    pub async fn another_db(&self) -> Db {
        connect(self.database.url()).await
    }

    /// Stops a node and waits until its tasks have ended.
    pub async fn stop(&self, node: &RunEngine) {
        let shutdown = &node.context().shutdown;
        shutdown.draining.cancel();
        shutdown.stopping.cancel();
        let ended = timeout(DEADLINE, shutdown.wait()).await;
        ended.expect("every task ends when its node stops");
    }

    /// Sets the greeting of a character.
    pub async fn set_greeting(&self, name: &str, text: &str) {
        let membership = self.membership(name).await;
        fixtures::set_greeting(&self.db, membership, text).await;
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
        let membership = self.membership(name).await;
        fixtures::change_membership(&self.db, membership, change).await;
    }

    /// Returns all runs, in the order in which they were planned.
    pub async fn runs(&self) -> Vec<run::Model> {
        let all = run::Entity::find()
            .filter(run::Column::ConversationId.eq(self.conversation))
            .order_by_asc(run::Column::RunSeq)
            .all(self.db.reader())
            .await;
        all.expect("the database answers")
    }

    /// Returns the only run.
    pub async fn only_run(&self) -> run::Model {
        let mut runs = self.runs().await;
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.remove(0)
    }

    /// Returns all messages, including hidden ones.
    pub async fn messages(&self) -> Vec<message::Model> {
        let all = message::Entity::find()
            .filter(message::Column::ConversationId.eq(self.conversation))
            .order_by_asc(message::Column::Seq)
            .all(self.db.reader())
            .await;
        all.expect("the database answers")
    }

    /// Returns the texts of the characters' messages.
    pub async fn answers(&self) -> Vec<String> {
        let all = self.messages().await.into_iter();
        all.filter(|it| it.role == message::MessageRole::Assistant)
            .map(|it| it.content)
            .collect()
    }

    /// Returns the conversation's row.
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

    /// Opens a separate connection to the database.
    pub async fn facts(&self) -> DatabaseFacts {
        DatabaseFacts::open(&self.database).await
    }

    /// Polls for a condition that no event announces.
    pub async fn until(&self, what: &str, mut holds: impl AsyncFnMut(&Self) -> bool) {
        poll::until(what, async || holds(self).await.then_some(())).await;
    }

    /// Waits until this node executes no run.
    pub async fn wait_until_idle(&self) {
        let leases = &self.engine.context().leases;
        self.until("the node executes no run", async |_| leases.count() == 0)
            .await;
    }

    /// Returns the last heartbeat of each running run of the space.
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

    /// Returns the tokens that the space has used.
    pub async fn tokens_used(&self) -> i64 {
        let used = token_usage::find_for_space(self.db.reader(), self.space).await;
        used.expect("the database answers")
    }

    /// Waits until no run is running or due and all events were published.
    pub async fn settle(&self) {
        self.wait_until_settled(|app, rev| app.events.has_rev(rev))
            .await;
    }

    /// The same, without waiting for events: those of other nodes are not recorded.
    pub async fn settle_alone(&self) {
        self.wait_until_settled(|_, _| true).await;
    }

    async fn wait_until_settled(&self, is_published: impl Fn(&Self, i64) -> bool) {
        let settled = timeout(DEADLINE, async {
            loop {
                // The revision is read last, so that it includes the last change.
                if self.is_at_rest().await {
                    let rev = self.row().await.rev;
                    if is_published(self, rev) {
                        return;
                    }
                }
                self.events.next_frame_or_a_moment().await;
            }
        });
        if settled.await.is_err() {
            let runtime = self.runtime().await;
            panic!(
                "the conversation did not settle: {runtime:?}\n{:#?}",
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

    /// Stops the node and checks all invariants of events and of the database.
    pub async fn close(self) {
        let log = self.events.log();
        let violations = [event_invariants::violations(&log), self.events.violations()].concat();
        assert!(violations.is_empty(), "{}\n{log:#?}", violations.join("\n"));
        log.iter().for_each(api_contract::check_frame);
        self.close_without_events().await;
    }

    /// Stops the node without checks, for tests that violate the invariants on purpose.
    pub async fn close_broken(self) {
        self.stop(&self.engine).await;
        self.db.close().await;
    }

    /// Stops the node and checks the database only: events of other nodes are not recorded.
    pub async fn close_without_events(self) {
        let mut facts = self.facts().await;
        self.stop(&self.engine).await;
        let violations = invariants::at_any_instant(&mut facts).await;
        assert!(violations.is_empty(), "{}", violations.join("\n"));
        self.db.close().await;
    }
}

/// Returns an edit that replaces the current text of a message.
pub fn edit_of(message: &message::Model, content: &str) -> MessageEdit {
    MessageEdit {
        message: message.id,
        content: content.to_owned(),
        token_count: 0,
        expected_version: message.version,
        by: None,
        unscripted: None,
    }
}
