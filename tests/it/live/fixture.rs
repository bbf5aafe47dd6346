//! Fixture of the WebSocket tests: two users and a conversation, on a server whose runs the test
//! simulates.

use base::ids::{ConversationId, MembershipId, RunId, SpaceId, UserId};
use realtime::envelope::{Envelope, Event, StreamBoundary};
use realtime::receivers::Receivers;
use realtime::topic::Topic;
use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};
use troupe::app::App;
use troupe::runs::events::TypingStart;
use troupe::runs::store::run::RunKind;

use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::ws_client::WsClient;

/// Ann created the space, and Bob is a member of it.
pub struct LiveFixture {
    pub house: TestApp,
    pub ann: HttpClient,
    pub bob: HttpClient,
    pub space: SpaceId,
    pub conversation: ConversationId,
    pub anns_seat: i64,
    pub bobs_seat: i64,
    pub bobs_id: UserId,
}

/// Open registration and no workers: nothing happens unless the test causes it.
const SETTINGS: &[(&str, &str)] = &[
    ("TROUPE_OPEN_REGISTRATION", "true"),
    ("TROUPE_WORKERS", "0"),
    ("LIMIT_REGISTRATIONS_PER_HOUR", "0"),
];

impl LiveFixture {
    pub async fn open() -> LiveFixture {
        LiveFixture::open_changed(&[], |_| {}).await
    }

    /// Opens the fixture with more settings, after `change` has modified the app.
    pub async fn open_changed(env: &[(&str, &str)], change: impl FnOnce(&mut App)) -> LiveFixture {
        LiveFixture::open_on(TestBackend::Sqlite, env, change).await
    }

    /// Opens the fixture with a character whose replies come from `upstream`.
    pub async fn with_character(upstream: &FakeProvider) -> LiveFixture {
        let base_url = upstream.base_url();
        let env = [
            ("TROUPE_WORKERS", "1"),
            ("TROUPE_LLM_BASE_URL", base_url.as_str()),
            ("TROUPE_LLM_MODEL", "scripted"),
            ("TROUPE_ALLOW_PRIVATE_PROVIDERS", "true"),
            ("STREAM_SLICE_MS", "0"),
        ];
        let fixture = LiveFixture::open_changed(&env, |_| {}).await;
        let character = fixture.ann.create_character("Ada", None).await;
        let space = json!({"id": fixture.space});
        fixture.ann.add_character(&space, &character).await;
        fixture
    }

    /// The same on a given database.
    pub async fn open_on(
        backend: TestBackend,
        env: &[(&str, &str)],
        change: impl FnOnce(&mut App),
    ) -> LiveFixture {
        let env = [SETTINGS, env].concat();
        let house = TestApp::start_changed(backend, &env, change).await;
        let ann = HttpClient::set_up(&house.base, "ann").await;
        let (bob, bobs_id) = register(&house.base, "bob").await;
        let space = ann.create_space("Stage", json!({})).await;
        let memberships = format!("/api/spaces/{}/memberships", space["id"]);
        let (_, page) = ann.get(&memberships).await;
        let anns_seat = id(&page["data"][0]);
        let bobs_seat = id(&ann.add_member(id(&space), &bob, "member").await);
        LiveFixture {
            house,
            ann,
            bob,
            space: SpaceId(id(&space)),
            conversation: ConversationId(root_of(&space)),
            anns_seat,
            bobs_seat,
            bobs_id: UserId(bobs_id),
        }
    }

    /// Opens Bob's socket, subscribed to the conversation.
    pub async fn bobs_ws_client(&self) -> WsClient {
        WsClient::subscribed(&self.bob, self.conversation.0).await
    }

    /// Posts a message through the API.
    pub async fn post(&self, person: &HttpClient, text: &str) {
        let (status, answer) = person.post_message(self.conversation.0, text, None).await;
        assert_eq!(status, 201, "{answer}");
    }

    /// Publishes an event to the subscribers of the conversation.
    pub fn publish(&self, event: &impl Event) {
        let topic = Topic::Conversation(self.conversation);
        self.house.app.hub.publish(Envelope::plain(topic, event));
    }

    /// Starts the stream of a run whose speaker is Ann's membership.
    pub fn start_run(&self) -> RunId {
        let run = RunId::new();
        let live = &self.house.app.engine.context().live_streams;
        let start = TypingStart {
            conversation_id: self.conversation,
            run_id: run,
            membership_id: MembershipId(self.anns_seat),
            kind: RunKind::UserTurn,
            target_message_id: None,
            base_length: None,
        };
        live.open(&start, 1, Receivers::Everyone);
        self.mark(run, StreamBoundary::Start);
        run
    }

    pub fn write_delta(&self, run: RunId, text: &str) {
        let live = &self.house.app.engine.context().live_streams;
        assert!(live.append(self.conversation, run, text));
    }

    pub fn end_run(&self, run: RunId) {
        let live = &self.house.app.engine.context().live_streams;
        live.close(self.conversation, run, 1);
        self.mark(run, StreamBoundary::Complete);
        self.mark(run, StreamBoundary::Stop);
    }

    fn mark(&self, run_id: RunId, mark: StreamBoundary) {
        let name = match mark {
            StreamBoundary::Start => "typing_start",
            StreamBoundary::Reset => "stream_reset",
            StreamBoundary::Complete => "stream_complete",
            StreamBoundary::Stop => "typing_stop",
        };
        let conversation_id = self.conversation;
        let event = OfRun {
            name,
            conversation_id,
            run_id,
        };
        let topic = Topic::Conversation(conversation_id);
        let envelope = Envelope::stream(topic, &event, (run_id.0, 1), mark);
        self.house.app.hub.publish(envelope);
    }

    pub async fn close(self) {
        self.house.close().await;
    }
}

#[derive(Serialize)]
struct OfRun {
    #[serde(skip)]
    name: &'static str,
    conversation_id: ConversationId,
    run_id: RunId,
}

impl Event for OfRun {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// An event of any size and of a type that clients ignore.
#[derive(Serialize)]
pub struct Note {
    pub text: String,
}

impl Event for Note {
    fn name(&self) -> &'static str {
        "note"
    }
}

/// Registers a user and signs in; returns the client and the account id.
pub async fn register(base: &str, username: &str) -> (HttpClient, i64) {
    let body = json!({
        "username": username,
        "password": "correct horse battery",
        "display_name": username,
    });
    let answer = HttpClient::new(base)
        .attempt(Method::POST, "/api/users", Some(&body))
        .await
        .expect("the request failed");
    let user = expect(201, answer);
    (HttpClient::sign_in(base, username).await, id(&user["user"]))
}

/// Returns the error code of an answer on a socket.
pub fn code(answer: &Value) -> &str {
    answer["error"]["code"]
        .as_str()
        .unwrap_or_else(|| panic!("no error: {answer}"))
}
