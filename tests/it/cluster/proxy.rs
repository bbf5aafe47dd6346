//! Two nodes behind a real nginx, with exactly the configuration of the operations page.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use crate::support::backends::{TestBackend, TestDatabase, fresh_database};
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, http_client, root_of};
use crate::support::nodes::are_given;
use crate::support::process::Server;
use crate::support::redis::RedisServer;
use crate::support::test_space::{SHORT_LEASES, model_env};
use crate::support::ws_client::WsClient;
use crate::support::{invariants, poll};

const PAGE: &str = include_str!("../../../docs/operations.md");

/// Returns the documented configuration: the block that begins with the two nodes.
fn documented_config() -> &'static str {
    let from = PAGE
        .find("upstream troupe {")
        .expect("the page has no configuration");
    let to = from + PAGE[from..].find("```").expect("the block does not end");
    &PAGE[from..to]
}

/// A private nginx, stopped on drop.
struct Nginx {
    process: Child,
    _folder: TempDir,
}

impl Nginx {
    /// Starts nginx; only the ports of the configuration are replaced by those of this test.
    async fn start(port: u16, nodes: [&Server; 2]) -> Nginx {
        let mut config =
            documented_config().replace("listen 8080;", &format!("listen 127.0.0.1:{port};"));
        for (of_the_page, node) in ["127.0.0.1:8081", "127.0.0.1:8082"].iter().zip(nodes) {
            assert!(config.contains(of_the_page), "{config}");
            let own = node.url().replace("http://", "");
            config = config.replace(of_the_page, &own);
        }
        let folder = tempfile::tempdir().expect("no temporary folder");
        let folder_path = folder.path().display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|it| format!("{it}_temp_path {folder_path}/{it};\n"))
            .concat();
        let whole = format!(
            "{}pid {folder_path}/pid;\nerror_log {folder_path}/log;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}{config}}}\n",
            user(),
        );
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, whole).expect("the configuration was not written");
        let process = Command::new("nginx")
            .arg("-c")
            .arg(&file)
            .args(["-e", "stderr", "-g", "daemon off;"])
            .stdout(Stdio::null())
            .spawn()
            .expect("nginx is not installed; bin/test installs it");
        let client = http_client();
        poll::until("nginx forwards requests", async || {
            let asked = client.get(format!("http://127.0.0.1:{port}/readyz")).send();
            asked.await.ok().filter(|it| it.status() == 200).map(drop)
        })
        .await;
        Nginx {
            process,
            _folder: folder,
        }
    }
}

/// Workers of an nginx started by root must read a folder that only root can read.
fn user() -> &'static str {
    let id = Command::new("id").arg("-u").output().expect("`id` failed");
    match id.stdout.as_slice() {
        b"0\n" => "user root;\n",
        _ => "",
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // A graceful quit, so that its workers exit too.
        let pid = self.process.id().to_string();
        let _ = Command::new("kill").args(["-QUIT", &pid]).status();
        let _ = self.process.wait();
    }
}

/// An installation of two processes behind nginx.
struct ProxiedNodes {
    nodes: [Server; 2],
    base: String,
    upstream: FakeProvider,
    _nginx: Nginx,
    _redis: RedisServer,
    database: TestDatabase,
}

impl ProxiedNodes {
    async fn open() -> ProxiedNodes {
        let database = fresh_database(&TestBackend::Postgres).await;
        let redis = RedisServer::start().await;
        let upstream = FakeProvider::start().await;
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|it| it.local_addr())
            .expect("no free port")
            .port();
        let base = format!("http://127.0.0.1:{port}");
        let (model, redis_url) = (upstream.base_url(), redis.url());
        let own = [
            ("REDIS_URL", redis_url.as_str()),
            ("TROUPE_PUBLIC_URL", base.as_str()),
            ("TROUPE_TRUSTED_PROXIES", "127.0.0.1"),
        ];
        let env = [SHORT_LEASES, &model_env(&model), &own].concat();
        let nodes = [
            Server::start(&database, &env).await,
            Server::start(&database, &env).await,
        ];
        let nginx = Nginx::start(port, [&nodes[0], &nodes[1]]).await;
        ProxiedNodes {
            nodes,
            base,
            upstream,
            _nginx: nginx,
            _redis: redis,
            database,
        }
    }

    /// Signs Ann in through nginx and creates a conversation with Ada.
    async fn create_space(&self) -> (HttpClient, i64) {
        let ann = HttpClient::set_up(&self.base, "ann").await;
        let conversation = create_space_of(&ann, "The stage").await;
        (ann, conversation)
    }
}

async fn create_space_of(ann: &HttpClient, name: &str) -> i64 {
    let rules = json!({"reply_order": "list", "user_turn_debounce_ms": 0});
    let space = ann.create_space(name, rules).await;
    let ada = ann.create_character(&format!("Ada of {name}"), None).await;
    ann.add_character(&space, &ada).await;
    root_of(&space)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_behind_the_documented_nginx_streams_replies_of_both_nodes() {
    if !are_given() {
        return;
    }
    let installation = ProxiedNodes::open().await;
    let (ann, conversation) = installation.create_space().await;
    // One on each node: nginx distributes connections in turn.
    let clients = [
        WsClient::subscribed(&ann, conversation).await,
        WsClient::subscribed(&ann, conversation).await,
    ];
    let gate = installation.upstream.gate();
    installation.upstream.reply_with("One two three.");

    ann.post_message(conversation, "Count.", None).await;
    gate.step();
    for client in &clients {
        // It is forwarded immediately, before the rest is generated.
        client
            .wait_for("the first word", |it| it["delta"] == "One")
            .await;
    }
    gate.open();

    for client in &clients {
        client
            .wait_for("the end of the run", |it| it["type"] == "typing_stop")
            .await;
        let answer = |it: &serde_json::Value| it["message"]["content"] == "One two three.";
        client.wait_for("the reply", answer).await;
    }
}

/// Posts messages, each until it is accepted, as a client does; returns their count.
async fn keep_posting(ann: HttpClient, conversation: i64, enough: Arc<AtomicBool>) -> i64 {
    // Not an `HttpClient`, which checks answers against the API document: some are nginx's own.
    let client = http_client();
    let url = format!("{}/api/conversations/{conversation}/messages", ann.base());
    let mut n = 0;
    while !enough.load(Ordering::Relaxed) {
        let body = json!({"content": format!("Post {n}."), "client_id": format!("c-{n}")});
        loop {
            let request = client.post(&url).header("cookie", ann.cookie());
            let answer = request.json(&body).send().await;
            match answer.map(|it| it.status().as_u16()) {
                Ok(200 | 201) => break,
                Ok(502..=504) | Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                Ok(status) => panic!("a post returned {status}"),
            }
        }
        n += 1;
    }
    n
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_post_is_lost_or_duplicated_while_nodes_are_replaced() {
    if !are_given() {
        return;
    }
    let mut installation = ProxiedNodes::open().await;
    let mut n_answers = 0;
    installation.upstream.answer_with(move |_| {
        n_answers += 1;
        ResponseScript::say(&format!("Answer number {n_answers}."))
    });
    let (ann, first) = installation.create_space().await;
    let second = create_space_of(&ann, "Another").await;
    let enough = Arc::new(AtomicBool::new(false));
    let load =
        [first, second].map(|it| tokio::spawn(keep_posting(ann.clone(), it, enough.clone())));

    for node in &mut installation.nodes {
        node.sigterm();
        let exit = node.wait_exit().await;
        assert!(exit.success(), "{exit}");
        node.restart().await;
    }
    enough.store(true, Ordering::Relaxed);

    let mut facts = DatabaseFacts::open(&installation.database).await;
    for (conversation, posting) in [first, second].into_iter().zip(load) {
        let n_posted = posting.await.expect("posting failed");
        let count = |what: &str| {
            format!(
                "SELECT CAST(count({what}) AS TEXT) FROM messages \
                 WHERE conversation_id = {conversation} AND role = 'user'"
            )
        };
        assert!(n_posted > 0, "nothing was posted");
        assert_eq!(facts.number(&count("*")).await, n_posted);
        assert_eq!(facts.number(&count("DISTINCT client_id")).await, n_posted);
    }
    let unfinished = "SELECT CAST(count(*) AS TEXT) FROM conversation_runs \
                      WHERE status IN ('queued', 'running')";
    poll::until("nothing is queued or running", async || {
        (facts.number(unfinished).await == 0).then_some(())
    })
    .await;
    let failed = "SELECT CAST(count(*) AS TEXT) FROM conversation_runs WHERE status = 'failed'";
    assert_eq!(
        facts.number(failed).await,
        0,
        "a graceful shutdown failed a run"
    );
    let broken = invariants::at_rest(&mut facts).await;
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
