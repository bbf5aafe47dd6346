//! Every endpoint that accepts an address from a member, tried with every spelling of a private
//! address, in each setup in which admins can use private addresses: no connection is made.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::address_fields;
use super::addresses::{NAMES, base_urls};
use super::member_calls::{MemberCalls, V1_FIELDS};
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::poll;
use crate::support::trap_server::TrapServer;

/// How an endpoint is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// For admins only: `blocked_addresses.rs` tries it as an admin, here a member is refused.
    Admin(&'static str),
    /// A new space, and a message in it.
    NewSpace,
    /// A document with `settings`, and a message in the space; `{space}` and the like are ids.
    Settings(&'static str),
    /// The fields of `/v1` in a body.
    V1(&'static str),
    /// The same over the socket.
    Socket,
}

/// Every endpoint that accepts an address.
const ROWS: [(&str, Way); 28] = [
    (
        "POST /api/providers base_url",
        Way::Admin("POST /api/providers"),
    ),
    (
        "PATCH /api/providers/{provider_id} base_url",
        Way::Admin("PATCH /api/providers/{provider}"),
    ),
    ("POST /api/spaces settings.tool_servers.url", Way::NewSpace),
    (
        "PATCH /api/spaces/{space_id} settings.tool_servers.url",
        Way::Settings("/api/spaces/{space}"),
    ),
    (
        "PATCH /api/conversations/{conversation_id} settings.tool_servers.url",
        Way::Settings("/api/conversations/{conversation}"),
    ),
    (
        "PATCH /api/memberships/{membership_id} settings.tool_servers.url",
        Way::Settings("/api/memberships/{membership}"),
    ),
    ("POST /v1/responses", Way::V1("/responses")),
    ("SOCKET /v1/responses", Way::Socket),
    ("POST /v1/responses/compact", Way::V1("/responses/compact")),
    (
        "POST /v1/responses/input_tokens",
        Way::V1("/responses/input_tokens"),
    ),
    (
        "POST /v1/responses/{id}/cancel",
        Way::V1("/responses/{response}/cancel"),
    ),
    ("POST /v1/conversations", Way::V1("/conversations")),
    (
        "POST /v1/conversations/{id}",
        Way::V1("/conversations/{chat}"),
    ),
    (
        "POST /v1/conversations/{id}/items",
        Way::V1("/conversations/{chat}/items"),
    ),
    ("POST /v1/assistants", Way::V1("/assistants")),
    (
        "POST /v1/assistants/{id}",
        Way::V1("/assistants/{assistant}"),
    ),
    ("POST /v1/threads", Way::V1("/threads")),
    ("POST /v1/threads/{id}", Way::V1("/threads/{thread}")),
    (
        "POST /v1/threads/{id}/messages",
        Way::V1("/threads/{thread}/messages"),
    ),
    (
        "POST /v1/threads/{id}/messages/{message_id}",
        Way::V1("/threads/{thread}/messages/{message}"),
    ),
    ("POST /v1/threads/runs", Way::V1("/threads/runs")),
    (
        "POST /v1/threads/{id}/runs",
        Way::V1("/threads/{thread}/runs"),
    ),
    (
        "POST /v1/threads/{id}/runs/{run_id}",
        Way::V1("/threads/{thread}/runs/{run}"),
    ),
    (
        "POST /v1/threads/{id}/runs/{run_id}/cancel",
        Way::V1("/threads/{thread}/runs/{run}/cancel"),
    ),
    (
        "POST /v1/threads/{id}/runs/{run_id}/submit_tool_outputs",
        Way::V1("/threads/{thread}/runs/{run}/submit_tool_outputs"),
    ),
    ("POST /v1/embeddings", Way::V1("/embeddings")),
    ("POST /v1/chat/completions", Way::V1("/chat/completions")),
    ("POST /v1/memory/query", Way::V1("/memory/query")),
];

/// A host that an admin lists, and the address that it resolves to.
const LISTED: &str = "tools.example";

const DEFAULT: &[(&str, &str)] = &[];
const BEHIND_A_PROXY: &[(&str, &str)] = &[
    ("TROUPE_PUBLIC_URL", "https://troupe.example"),
    ("TROUPE_TRUSTED_PROXIES", "127.0.0.1"),
];
const HOST_LISTED: &[(&str, &str)] = &[("TROUPE_ALLOWED_PRIVATE_HOSTS", LISTED)];

#[test]
fn every_endpoint_that_accepts_an_address_has_a_row() {
    let mut known: BTreeSet<String> = address_fields::of_the_document();
    known.extend(address_fields::calls_of_v1());
    let rows: BTreeSet<String> = ROWS.iter().map(|it| it.0.to_owned()).collect();
    let fields: BTreeSet<String> = V1_FIELDS.iter().map(|it| (*it).to_owned()).collect();

    assert_eq!(rows, known);
    assert_eq!(fields, address_fields::of_v1());
}

/// An outbound client in any other file would need its own rows.
#[test]
fn outbound_calls_are_made_in_these_files_only() {
    let known = [
        // Calls only the address that the operator has set.
        "crates/agent/src/tools/builtin/web_search.rs",
        "crates/agent/src/tools/mcp/session.rs",
        "crates/agent/src/tools/mcp/sessions.rs",
        "crates/agent/src/tools/mcp/tool_cache.rs",
        "crates/agent/src/tools/web_fetcher.rs",
        "crates/llm/src/endpoint.rs",
        "crates/llm/src/registry.rs",
        "crates/outbound-http/src/client.rs",
        "src/app.rs",
        "src/server/check.rs",
    ];

    let callers: Vec<String> = address_fields::callers().into_iter().collect();

    assert_eq!(callers, known);
}

/// Tries every row with these addresses.
async fn try_rows(fixture: &MemberCalls, urls: &[String]) {
    // Tool servers require https unless they are listed.
    let secure = urls.iter().map(|it| it.replacen("http:", "https:", 1));
    let both: Vec<String> = urls.iter().cloned().chain(secure).collect();
    for (_, way) in ROWS {
        match way {
            Way::Admin(call) => fixture.provider_is_refused(call, &urls[0]).await,
            Way::NewSpace => fixture.new_spaces(&both).await,
            Way::Settings(path) => fixture.settings(path, &both).await,
            Way::V1(path) => {
                for url in &both {
                    fixture.v1(path, url).await;
                }
            }
            Way::Socket => fixture.socket(&both).await,
        }
    }
    fixture.fetched_by_a_model(urls).await;
    fixture.cards(urls).await;
}

async fn no_connection_is_made(backend: TestBackend, set_up: &[(&str, &str)]) {
    let decoy = TrapServer::start();
    let fixture = MemberCalls::create(backend, set_up, &names()).await;
    let urls = base_urls(decoy.port);
    assert!(urls.len() >= 109, "{}", urls.len());

    try_rows(&fixture, &urls).await;

    let (n_urls, n_rows) = (urls.len(), ROWS.len());
    let n_came = decoy.n_came();
    eprintln!("{n_urls} spellings at {n_rows} endpoints: {n_came} connections");
    assert_eq!(n_came, 0);
    fixture.close().await;
}

fn names() -> Vec<(&'static str, &'static [&'static str])> {
    let listed: (&str, &[&str]) = (LISTED, &["127.0.0.1"]);
    let mut names = NAMES.to_vec();
    names.push(listed);
    names
}

on_sqlite! {
    async fn members_reach_no_private_address_of_a_server_on_loopback(backend) {
        no_connection_is_made(backend, DEFAULT).await;
    }

    async fn members_reach_no_private_address_behind_a_proxy(backend) {
        no_connection_is_made(backend, BEHIND_A_PROXY).await;
    }

    async fn members_reach_no_private_address_next_to_a_listed_host(backend) {
        no_connection_is_made(backend, HOST_LISTED).await;
    }
}

/// Ensures that the tests above could detect a connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_reach_a_listed_host_through_every_endpoint() {
    let decoy = TrapServer::start();
    let fixture = MemberCalls::create(TestBackend::Sqlite, HOST_LISTED, &names()).await;
    let url = [format!("http://{LISTED}:{}/a", decoy.port)];
    let wait_for_connection = async |what: &str, n: usize| {
        poll::until(what, async || (decoy.n_came() > n).then_some(())).await;
    };

    for (call, way) in ROWS {
        let n = decoy.n_came();
        match way {
            Way::NewSpace => fixture.new_spaces(&url).await,
            Way::Settings(path) if path.contains("spaces") => fixture.settings(path, &url).await,
            Way::V1(path) if fixture.leads_out(path) => fixture.v1(path, &url[0]).await,
            Way::Socket => fixture.socket(&url).await,
            Way::Admin(_) | Way::Settings(_) | Way::V1(_) => continue,
        }
        wait_for_connection(call, n).await;
    }
    let n = decoy.n_came();
    fixture.fetched_by_a_model(&url).await;
    wait_for_connection("the fetch of a model", n + 1).await;
    fixture.close().await;
}

/// Answers every connection with a redirect; returns its port and the count of connections.
async fn redirecting_server(target: String) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("a bound socket").port();
    let n_came = Arc::new(AtomicUsize::new(0));
    let n = n_came.clone();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            n.fetch_add(1, Ordering::SeqCst);
            let head = "HTTP/1.1 307 x\r\nconnection: close\r\ncontent-length: 0\r\n";
            let answer = format!("{head}location: {target}\r\n\r\n");
            let _ = socket.write_all(answer.as_bytes()).await;
            // Reads until the client closes: closing a socket with unread bytes would reset it.
            let mut rest = Vec::new();
            let _ = socket.read_to_end(&mut rest).await;
        }
    });
    (port, n_came)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_of_a_listed_host_is_not_followed() {
    let decoy = TrapServer::start();
    let target = format!("http://127.0.0.1:{}/a.png", decoy.port);
    let (port, n_came) = redirecting_server(target).await;
    let fixture = MemberCalls::create(TestBackend::Sqlite, HOST_LISTED, &names()).await;
    let url = [format!("http://{LISTED}:{port}/v1")];

    fixture.v1("/responses", &url[0]).await;
    fixture.new_spaces(&url).await;
    fixture.fetched_by_a_model(&url).await;

    // Three fields, the tool server of a space, and a page twice.
    assert_eq!(n_came.load(Ordering::SeqCst), 6);
    assert_eq!(decoy.n_came(), 0);
    fixture.close().await;
}

/// Returns settings of a space with these tool servers.
pub fn tool_servers(urls: &[String]) -> Value {
    let servers = urls.iter().enumerate().map(|(n, url)| {
        let label = format!("s{n}");
        json!({"label": label, "url": url, "use": "allowed"})
    });
    json!({"tool_servers": servers.collect::<Vec<_>>(), "tools": {"web_fetch": "allowed"}})
}
