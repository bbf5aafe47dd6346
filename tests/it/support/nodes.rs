//! Two nodes of one installation: one serves, one executes runs; each reaches Redis through its own
//! proxy. Users connect to the node that executes no run, so every run event they see came through
//! Redis.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, root_of};
use crate::support::poll;
use crate::support::redis::RedisServer;
use crate::support::redis_proxy::RedisProxy;
use crate::support::test_space::model_env;
use crate::support::ws_client::WsClient;

/// Within a test, nodes get run events only through Redis: heartbeats are far apart, and nodes poll
/// the database only every few seconds.
const FAR_APART: &[(&str, &str)] = &[
    ("RUN_HEARTBEAT_MS", "600000"),
    ("RUN_STALE_AFTER_MS", "1200000"),
    ("TROUPE_OPEN_REGISTRATION", "true"),
    ("STREAM_SLICE_MS", "0"),
];

pub struct Nodes {
    /// Serves requests and has no workers.
    pub front: TestApp,
    /// Executes the runs.
    pub back: TestApp,
    pub redis: RedisServer,
    pub front_proxy: RedisProxy,
    pub back_proxy: RedisProxy,
    pub upstream: FakeProvider,
    /// A client of the front node.
    pub ann: HttpClient,
    pub space: Value,
    pub conversation: i64,
}

/// Returns whether PostgreSQL is available. `bin/test` provides it.
pub fn are_given() -> bool {
    let is_available = TestBackend::Postgres.is_available();
    if !is_available {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
    }
    is_available
}

impl Nodes {
    /// Starts both nodes, connected to each other, and creates Ann's space with Ada.
    pub async fn open() -> Nodes {
        Nodes::open_with(&[]).await
    }

    pub async fn open_with(env: &[(&str, &str)]) -> Nodes {
        let redis = RedisServer::start().await;
        let nodes = Nodes::open_over(redis, env).await;
        nodes.wait_until_connected().await;
        nodes
    }

    /// The same with this Redis server, without waiting for the connections.
    pub async fn open_over(redis: RedisServer, env: &[(&str, &str)]) -> Nodes {
        let front_proxy = RedisProxy::to(redis.port()).await;
        let back_proxy = RedisProxy::to(redis.port()).await;
        let upstream = FakeProvider::start().await;
        let base_url = upstream.base_url();
        let common = [FAR_APART, &model_env(&base_url)].concat();
        let (front_url, back_url) = (front_proxy.url(), back_proxy.url());
        let serves = [("TROUPE_WORKERS", "0"), ("REDIS_URL", front_url.as_str())];
        let works = [("REDIS_URL", back_url.as_str())];
        let front =
            TestApp::start_with(TestBackend::Postgres, &[&common[..], &serves, env].concat()).await;
        let back = front
            .start_second_node(&[&common[..], &works, env].concat())
            .await;
        let ann = front.admin().await;
        let space = ann
            .create_space("Stage", json!({"reply_order": "list"}))
            .await;
        let ada = ann.create_character("Ada", None).await;
        ann.add_character(&space, &ada).await;
        let conversation = root_of(&space);
        Nodes {
            front,
            back,
            redis,
            front_proxy,
            back_proxy,
            upstream,
            ann,
            space,
            conversation,
        }
    }

    /// Waits until both nodes receive messages from Redis.
    pub async fn wait_until_connected(&self) {
        poll::until("both nodes receive messages from Redis", async || {
            let both = [&self.front, &self.back];
            let states = both.map(|it| {
                it.app
                    .hub
                    .bus()
                    .state()
                    .expect("Redis is configured")
                    .clone()
            });
            let are_connected = states
                .iter()
                .all(|it| it.metrics.connected.get() == 1 && it.metrics.received.get() > 0);
            are_connected.then_some(())
        })
        .await;
    }

    /// Returns Ann's client for the back node.
    pub fn ann_on_back_node(&self) -> HttpClient {
        self.ann.with_base(&self.back.base)
    }

    /// Opens a socket of Ann at the front node.
    pub async fn ws_client(&self) -> WsClient {
        WsClient::subscribed(&self.ann, self.conversation).await
    }

    /// Adds a user with an account at the front node as a member of the space.
    pub async fn member(&self, name: &str) -> HttpClient {
        let person = HttpClient::register(&self.front.base, name).await;
        let space = self.space["id"].as_i64().expect("a numeric id");
        self.ann.add_member(space, &person, "member").await;
        person
    }

    /// Posts a message of Ann at the front node.
    pub async fn post(&self, text: &str) -> Value {
        expect(
            201,
            self.ann.post_message(self.conversation, text, None).await,
        )
    }

    pub async fn close(self) {
        self.front.close().await;
        self.back.close().await;
    }
}
