//! Tests two servers on one PostgreSQL and one Redis, with a browser on each: a change on one is
//! shown on the other, and when one is killed the other continues.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::page::{FIELD, Page, Viewport};
use crate::several_users::SeveralUsers;
use crate::support::backends::TestBackend;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect};
use crate::support::process::Server;
use crate::support::redis::RedisServer;
use crate::test_server::TestServer;

const STREAMING: &str = ".message[data-state=streaming]";
const FINAL: &str = ".message[data-state=final]";

/// A node without a heartbeat counts as dead after two seconds.
const HEARTBEATS: [(&str, &str); 3] = [
    ("RUN_HEARTBEAT_MS", "200"),
    ("RUN_STALE_AFTER_MS", "2000"),
    ("REAPER_INTERVAL_MS", "200"),
];

/// Ann's server is the first node; Bob uses the second.
struct Nodes {
    users: SeveralUsers,
    redis: RedisServer,
}

impl Nodes {
    /// Starts the first node.
    async fn open() -> Nodes {
        let upstream = FakeProvider::start().await;
        let redis = RedisServer::start().await;
        let (model, bus) = (upstream.base_url(), redis.url());
        let env = settings(&model, &bus, &[("TROUPE_OPEN_REGISTRATION", "true")]);
        let test_server = TestServer::on(TestBackend::Postgres, upstream, &env).await;
        let users = SeveralUsers::of(test_server, "member").await;
        Nodes { users, redis }
    }

    /// Starts another node.
    async fn second(&self, more: &[(&'static str, &'static str)]) -> Server {
        let (model, bus) = (self.users.test_server.upstream.base_url(), self.redis.url());
        let env = settings(&model, &bus, more);
        self.users.test_server.another_node(&env).await
    }

    /// Starts another node without workers: only the first node executes runs.
    async fn second_that_serves(&self) -> Server {
        self.second(&[("TROUPE_WORKERS", "0")]).await
    }

    /// Opens a browser of this user at this address.
    async fn page(&self, base: &str, person: &HttpClient) -> Page {
        let page = Page::open(base, Viewport::Desktop).await;
        page.set_cookie(person.cookie()).await;
        page.go(&self.users.test_space.path()).await;
        page.see("#sidebar").await;
        page.see(FIELD).await;
        page
    }

    /// The next response arrives word by word.
    fn next_is_slow(&self, text: &str) -> HoldPoint {
        let gate = HoldPoint::closed();
        let script = ResponseScript::say(text).held_at(&gate);
        self.users.test_server.upstream.next(script);
        gate
    }
}

fn settings<'a>(
    model: &'a str,
    bus: &'a str,
    more: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let mut all = HEARTBEATS.to_vec();
    all.extend([
        ("TROUPE_LLM_BASE_URL", model),
        ("TROUPE_LLM_MODEL", "scripted"),
        ("REDIS_URL", bus),
    ]);
    all.extend(more);
    all
}

#[tokio::test]
async fn messages_and_replies_of_one_node_are_visible_on_the_other() {
    let nodes = Nodes::open().await;
    let second = nodes.second_that_serves().await;
    let gate = nodes.next_is_slow("Once upon a time");
    let ann = nodes.users.test_space.page().await;
    let bob = nodes.page(&second.url(), &nodes.users.bob).await;

    bob.send_message("Tell me a story").await;
    ann.see_text(FINAL, "Tell me a story").await;
    bob.click(".queue [aria-label='Trigger Mina']").await;
    gate.step();
    gate.step();
    for page in [&ann, &bob] {
        page.see_text(STREAMING, "Once upon").await;
        page.see_text(".queue__now", "Mina is writing").await;
    }
    bob.reload().await;
    bob.see_text(STREAMING, "Once upon").await;
    gate.open();

    assert_eq!(ann.answered_by("Mina").await, "Once upon a time");
    assert_eq!(bob.answered_by("Mina").await, "Once upon a time");
}

#[tokio::test]
async fn stop_on_one_node_ends_a_reply_of_the_other() {
    let nodes = Nodes::open().await;
    let second = nodes.second_that_serves().await;
    let gate = nodes.next_is_slow("Once upon a time");
    let ann = nodes.users.test_space.page().await;
    let bob = nodes.page(&second.url(), &nodes.users.bob).await;

    bob.click(".queue [aria-label='Trigger Mina']").await;
    gate.step();
    gate.step();
    bob.see_text(STREAMING, "Once upon").await;
    bob.click("[aria-label=Stop]").await;
    nodes
        .users
        .test_server
        .upstream
        .wait_for_disconnect(0)
        .await;

    for page in [&ann, &bob] {
        page.see_text(FINAL, "Stopped").await;
        page.gone(STREAMING).await;
    }
    let texts = nodes.users.test_space.texts().await;
    assert_eq!(
        texts.iter().map(|it| it.trim()).collect::<Vec<_>>(),
        ["Once upon"]
    );
}

#[tokio::test]
async fn typing_presence_and_removal_are_visible_on_the_other_node() {
    let nodes = Nodes::open().await;
    let second = nodes.second_that_serves().await;
    let ann = nodes.users.test_space.page().await;
    let bob = nodes.page(&second.url(), &nodes.users.bob).await;

    ann.see(".presence-list[aria-label='Online: bob']").await;
    bob.see(".presence-list[aria-label='Online: ann']").await;
    bob.write(FIELD, "I was about to say").await;
    ann.see_text(".typing-indicator", "bob is typing").await;
    let membership = format!("/api/memberships/{}", nodes.users.membership);
    expect(204, nodes.users.test_space.ann.delete(&membership).await);

    bob.see_text("h1", "You were removed from Harbor Lights")
        .await;
    ann.gone(".presence-list").await;
}

#[tokio::test]
async fn a_round_continues_when_its_node_is_killed() {
    let mut nodes = Nodes::open().await;
    let space = format!("/api/spaces/{}", nodes.users.space);
    let rules = json!({"reply_order": "list", "replies_per_turn": "activated"});
    expect(200, nodes.users.test_space.ann.patch(&space, rules).await);
    let proxy = ProxyServer::start(&nodes.users.test_server.server).await;
    let ann = nodes.page(&proxy.url(), &nodes.users.test_space.ann).await;
    let begun = ResponseScript::stream()
        .role()
        .words("Once upon a time ")
        .hang();
    nodes.users.test_server.upstream.next(begun);

    ann.send_message("Both of you").await;
    ann.see_text(STREAMING, "Once upon a time").await;
    let second = nodes.second(&[]).await;
    let bob = nodes.page(&second.url(), &nodes.users.bob).await;
    bob.see_text(STREAMING, "Once upon a time").await;
    nodes.users.test_server.server.kill9();
    ann.see_text(".banner", "Reconnecting").await;
    proxy.set_target(&second);

    let shown = "[...document.querySelectorAll('.message[data-state=final] .message__body')].map((it) => it.innerText.trim())";
    for page in [&ann, &bob] {
        page.answered_by("Rook").await;
        assert_eq!(
            page.value(shown).await,
            json!(["Both of you", "Hello.", "Hello."])
        );
        page.gone(".banner").await;
    }
}

/// A reverse proxy: one address that forwards to a node which can be changed.
struct ProxyServer {
    address: String,
    target: Arc<Mutex<String>>,
    accepting: JoinHandle<()>,
}

impl ProxyServer {
    async fn start(server: &Server) -> ProxyServer {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("bind a free port");
        let address = listener.local_addr().expect("the socket is bound");
        let target = Arc::new(Mutex::new(address_of(server)));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&target)));
        ProxyServer {
            address: address.to_string(),
            target,
            accepting,
        }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sends every new connection to this node.
    fn set_target(&self, server: &Server) {
        *self.target.lock() = address_of(server);
    }
}

impl Drop for ProxyServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn address_of(server: &Server) -> String {
    server.url().replace("http://", "")
}

async fn accept(listener: TcpListener, target: Arc<Mutex<String>>) {
    let mut connections = JoinSet::new();
    while let Ok((mut client, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let address = target.lock().clone();
        connections.spawn(async move {
            if let Ok(mut node) = TcpStream::connect(address).await {
                let _ = copy_bidirectional(&mut client, &mut node).await;
            }
        });
    }
}
