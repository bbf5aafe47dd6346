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

/// A node that died is missed after two seconds.
const HEARTBEATS: [(&str, &str); 3] = [
    ("RUN_HEARTBEAT_MS", "200"),
    ("RUN_STALE_AFTER_MS", "2000"),
    ("REAPER_INTERVAL_MS", "200"),
];

/// Ann's server is the first node; Bob uses the second.
struct Nodes {
    company: SeveralUsers,
    redis: RedisServer,
}

impl Nodes {
    /// The first one.
    async fn open() -> Nodes {
        let upstream = FakeProvider::start().await;
        let redis = RedisServer::start().await;
        let (model, bus) = (upstream.base_url(), redis.url());
        let env = settings(&model, &bus, &[("TROUPE_OPEN_REGISTRATION", "true")]);
        let test_server = TestServer::on(TestBackend::Postgres, upstream, &env).await;
        let company = SeveralUsers::of(test_server, "member").await;
        Nodes { company, redis }
    }

    /// One more.
    async fn second(&self, more: &[(&'static str, &'static str)]) -> Server {
        let (model, bus) = (
            self.company.test_server.upstream.base_url(),
            self.redis.url(),
        );
        let env = settings(&model, &bus, more);
        self.company.test_server.another_node(&env).await
    }

    /// One more that runs nothing: what is seen there is written on the first.
    async fn second_that_serves(&self) -> Server {
        self.second(&[("TROUPE_WORKERS", "0")]).await
    }

    /// A browser of theirs, at this address.
    async fn page(&self, base: &str, person: &HttpClient) -> Page {
        let page = Page::open(base, Viewport::Desktop).await;
        page.set_cookie(person.cookie()).await;
        page.go(&self.company.room.path()).await;
        page.see("#sidebar").await;
        page.see(FIELD).await;
        page
    }

    /// The next answer comes a word at a time.
    fn next_is_slow(&self, text: &str) -> HoldPoint {
        let gate = HoldPoint::closed();
        let script = ResponseScript::say(text).held_at(&gate);
        self.company.test_server.upstream.next(script);
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
    let ann = nodes.company.room.page().await;
    let bob = nodes.page(&second.url(), &nodes.company.bob).await;

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
    let ann = nodes.company.room.page().await;
    let bob = nodes.page(&second.url(), &nodes.company.bob).await;

    bob.click(".queue [aria-label='Trigger Mina']").await;
    gate.step();
    gate.step();
    bob.see_text(STREAMING, "Once upon").await;
    bob.click("[aria-label=Stop]").await;
    nodes
        .company
        .test_server
        .upstream
        .wait_for_disconnect(0)
        .await;

    for page in [&ann, &bob] {
        page.see_text(FINAL, "Stopped").await;
        page.gone(STREAMING).await;
    }
    let texts = nodes.company.room.texts().await;
    assert_eq!(
        texts.iter().map(|it| it.trim()).collect::<Vec<_>>(),
        ["Once upon"]
    );
}

#[tokio::test]
async fn typing_presence_and_removal_are_visible_on_the_other_node() {
    let nodes = Nodes::open().await;
    let second = nodes.second_that_serves().await;
    let ann = nodes.company.room.page().await;
    let bob = nodes.page(&second.url(), &nodes.company.bob).await;

    ann.see(".presence-list[aria-label='Online: bob']").await;
    bob.see(".presence-list[aria-label='Online: ann']").await;
    bob.write(FIELD, "I was about to say").await;
    ann.see_text(".typing-indicator", "bob is typing").await;
    let seat = format!("/api/memberships/{}", nodes.company.seat);
    expect(204, nodes.company.room.ann.delete(&seat).await);

    bob.see_text("h1", "You were removed from Harbor Lights")
        .await;
    ann.gone(".presence-list").await;
}

#[tokio::test]
async fn a_round_continues_when_its_node_is_killed() {
    let mut nodes = Nodes::open().await;
    let space = format!("/api/spaces/{}", nodes.company.space);
    let rules = json!({"reply_order": "list", "replies_per_turn": "activated"});
    expect(200, nodes.company.room.ann.patch(&space, rules).await);
    let door = ProxyServer::start(&nodes.company.test_server.server).await;
    let ann = nodes.page(&door.url(), &nodes.company.room.ann).await;
    let begun = ResponseScript::stream()
        .role()
        .words("Once upon a time ")
        .hang();
    nodes.company.test_server.upstream.next(begun);

    ann.send_message("Both of you").await;
    ann.see_text(STREAMING, "Once upon a time").await;
    let second = nodes.second(&[]).await;
    let bob = nodes.page(&second.url(), &nodes.company.bob).await;
    bob.see_text(STREAMING, "Once upon a time").await;
    nodes.company.test_server.server.kill9();
    ann.see_text(".banner", "Reconnecting").await;
    door.set_target(&second);

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

/// What stands before the nodes, as a proxy would: one address, and behind it the node that lives.
struct ProxyServer {
    address: String,
    behind: Arc<Mutex<String>>,
    letting_in: JoinHandle<()>,
}

impl ProxyServer {
    async fn start(server: &Server) -> ProxyServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let behind = Arc::new(Mutex::new(place_of(server)));
        let letting_in = tokio::spawn(accept(listener, Arc::clone(&behind)));
        ProxyServer {
            address: address.to_string(),
            behind,
            letting_in,
        }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sends every new connection to this node.
    fn set_target(&self, server: &Server) {
        *self.behind.lock() = place_of(server);
    }
}

impl Drop for ProxyServer {
    fn drop(&mut self) {
        self.letting_in.abort();
    }
}

fn place_of(server: &Server) -> String {
    server.url().replace("http://", "")
}

async fn accept(listener: TcpListener, behind: Arc<Mutex<String>>) {
    let mut visits = JoinSet::new();
    while let Ok((mut visitor, _)) = listener.accept().await {
        while visits.try_join_next().is_some() {}
        let place = behind.lock().clone();
        visits.spawn(async move {
            if let Ok(mut node) = TcpStream::connect(place).await {
                let _ = copy_bidirectional(&mut visitor, &mut node).await;
            }
        });
    }
}
