//! Tests of the MCP client against a fake server.

use std::sync::Arc;

use agent::tools::mcp::message::McpError;
use agent::tools::mcp::remote_server::{Credentials, McpServer};
use agent::tools::mcp::result_text;
use agent::tools::mcp::session::McpSession;
use agent::tools::mcp::tool_cache::McpToolCache;
use base::ids::UserId;
use outbound_http::client::{OutboundClient, SystemResolver};
use serde_json::{Map, Value, json};

use crate::support::fake_mcp_server::{FakeMcpServer, tool};

fn egress(allow_private: bool) -> OutboundClient {
    OutboundClient::new(Arc::new(SystemResolver), allow_private).unwrap()
}

fn server(mcp: &FakeMcpServer) -> McpServer {
    McpServer {
        label: "test".to_owned(),
        url: mcp.url.parse().unwrap(),
        credentials: Credentials {
            query: Some("tenant=7".to_owned()),
            authorization: Some("token".to_owned()),
            headers: vec![("x-team".to_owned(), "blue".to_owned())],
        },
    }
}

fn arguments(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[tokio::test]
async fn a_session_sends_its_credentials_from_the_handshake_to_its_end() {
    let mcp = FakeMcpServer::start(vec![tool("a", true), tool("b", false), tool("c", true)]).await;

    let session = McpSession::open(&egress(true), &server(&mcp))
        .await
        .unwrap();
    let tools = session.list_tools().await.unwrap();
    let called = session.call_tool("a", &arguments(json!({ "q": 1 }))).await;
    session.close().await;

    let names: Vec<&str> = tools.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(tools[0].is_read_only() && !tools[1].is_read_only());
    assert_eq!(
        result_text::result_text(&called.unwrap()).unwrap(),
        r#"a got {"q":1}"#
    );
    let methods = [
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/list",
        "tools/call",
        "DELETE",
    ];
    assert_eq!(mcp.methods(), methods);
    for (at, request) in mcp.received().iter().enumerate() {
        assert_eq!(request.header("authorization"), Some("Bearer token"));
        assert_eq!(request.header("x-team"), Some("blue"));
        let is_first = at == 0;
        assert_eq!(request.header("mcp-session-id").is_none(), is_first);
        let version = request.header("mcp-protocol-version");
        assert_eq!(version, Some("2025-06-18").filter(|_| !is_first));
    }
}

#[tokio::test]
async fn a_result_may_arrive_in_a_stream_with_other_events() {
    let mcp = FakeMcpServer::start(vec![tool("a", true)]).await;
    mcp.set_behavior(|it| it.streams = true);
    let session = McpSession::open(&egress(true), &server(&mcp))
        .await
        .unwrap();

    let called = session.call_tool("fail", &Map::new()).await.unwrap();

    assert_eq!(session.list_tools().await.unwrap().len(), 1);
    assert_eq!(
        result_text::result_text(&called),
        Err("fail got {}".to_owned())
    );
}

#[tokio::test]
async fn the_tool_list_is_requested_once_per_owner_and_key() {
    let mcp = FakeMcpServer::start(vec![tool("a", true)]).await;
    let lists = McpToolCache::new(egress(true));
    let other = McpServer {
        credentials: Credentials::default(),
        ..server(&mcp)
    };

    for _ in 0..3 {
        let list = lists.tools_of(UserId(1), &server(&mcp)).await.unwrap();
        assert_eq!(list.len(), 1);
    }
    lists.tools_of(UserId(2), &server(&mcp)).await.unwrap();
    lists.tools_of(UserId(1), &other).await.unwrap();

    let n_lists = mcp
        .methods()
        .iter()
        .filter(|it| *it == "tools/list")
        .count();
    assert_eq!(n_lists, 3);
}

#[tokio::test]
async fn an_invalid_tool_server_is_reported_and_queried_again() {
    let mcp = FakeMcpServer::start(vec![]).await;
    let lists = McpToolCache::new(egress(true));
    let huge = "x".repeat(3 * 1024 * 1024);
    let of = async || lists.tools_of(UserId(1), &server(&mcp)).await.unwrap_err();

    mcp.set_behavior(|it| it.status = Some(401));
    assert_eq!(of().await, McpError::Unauthorized);
    mcp.set_behavior(|it| it.status = Some(302));
    assert_eq!(of().await, McpError::Status(302));
    mcp.set_behavior(|it| it.status = None);
    for (body, error) in [
        ("{", McpError::InvalidResponse),
        ("{}", McpError::InvalidResponse),
        (&huge, McpError::TooLarge),
    ] {
        mcp.set_behavior(|it| it.body = Some(body.to_owned()));
        assert_eq!(of().await, error);
    }
    mcp.set_behavior(|it| it.body = None);
    assert_eq!(
        lists
            .tools_of(UserId(1), &server(&mcp))
            .await
            .unwrap()
            .len(),
        0
    );
}

#[tokio::test]
async fn no_private_address_is_called() {
    let mcp = FakeMcpServer::start(vec![]).await;

    let refused = McpSession::open(&egress(false), &server(&mcp)).await.err();

    assert_eq!(refused, Some(McpError::Forbidden));
    assert!(mcp.received().is_empty());
    for (text, is_open) in [
        ("https://mcp.example.com/mcp?key=1", true),
        ("http://mcp.example.com/mcp", false),
        ("https://127.0.0.1/mcp", false),
        ("https://user:word@mcp.example.com", false),
        ("https://mcp.example.com/#x", false),
        ("mcp.example.com", false),
    ] {
        assert_eq!(
            egress(false).parse_tool_server_url(text).is_some(),
            is_open,
            "{text}"
        );
    }
    assert!(
        egress(true)
            .parse_tool_server_url("http://127.0.0.1/mcp")
            .is_some()
    );
}
