//! A member who enters addresses in every possible field, with a session and with an API key.

use reqwest::Method;
use serde_json::{Value, json};

use super::member_addresses::tool_servers;
use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::poll;
use crate::support::test_resolver::TestResolver;
use crate::support::v1_client::V1Client;
use crate::support::ws_client::{WsClient, connect_with_key};

/// The fields under `/v1` that accept an address.
pub const V1_FIELDS: [&str; 4] = ["file_url", "image_url", "server_url", "url"];

/// The maximum number of tool servers in a space.
const SERVERS_OF_A_SPACE: usize = 8;

/// The maximum number of fetches in one run.
const FETCHES_OF_A_TURN: usize = 16;

/// A server with a model, and a member with a space in which a character answers.
pub struct MemberCalls {
    app: TestApp,
    upstream: FakeProvider,
    member: HttpClient,
    program: V1Client,
    space: i64,
    conversation: i64,
    /// The id of each word in a path.
    ids: Vec<(&'static str, String)>,
}

impl MemberCalls {
    /// Leaves private providers at their default, which allows them on a loopback bind.
    pub async fn create(
        backend: TestBackend,
        set_up: &[(&str, &str)],
        names: &[(&'static str, &'static [&'static str])],
    ) -> MemberCalls {
        let upstream = FakeProvider::start().await;
        upstream.always(ResponseScript::say("Fine."));
        let base_url = upstream.base_url();
        let own = [
            ("TROUPE_LLM_BASE_URL", base_url.as_str()),
            ("TROUPE_LLM_MODEL", "scripted"),
            ("TROUPE_OPEN_REGISTRATION", "true"),
            ("TROUPE_WEB_FETCH", "true"),
            ("LIMIT_POSTS_PER_MINUTE", "0"),
            ("RESPONSES_RATE_PER_MINUTE", "0"),
        ];
        let app = TestApp::start_with_resolver(
            backend,
            &[&own, set_up].concat(),
            TestResolver::new(names),
        )
        .await;
        let admin = app.admin().await;
        let provider =
            json!({"name": "x", "kind": "openai_compatible", "model": "m", "base_url": base_url});
        let provider = id(&expect(201, admin.post("/api/providers", provider).await));
        let member = app.register("ann").await;
        let program = V1Client::new(&member).await;
        let (space, conversation, membership) =
            create_space_with_character(&member, json!({})).await;
        let (_, chat) = program.post("/conversations", json!({})).await;
        let assistant = json!({"model": "scripted"});
        let (_, assistant) = program.post("/assistants", assistant).await;
        let (_, thread) = program.post("/threads", json!({})).await;
        let messages = format!("/threads/{}/messages", text_id(&thread));
        let message = json!({"role": "user", "content": "Hi."});
        let (_, message) = program.post(&messages, message).await;
        let run = json!({"assistant_id": text_id(&assistant), "thread": {}});
        let (_, run) = program.post("/threads/runs", run).await;
        let response = program
            .respond(json!({"input": "Hi.", "background": true}))
            .await;
        MemberCalls {
            ids: vec![
                ("{provider}", provider.to_string()),
                ("{space}", space.to_string()),
                ("{conversation}", conversation.to_string()),
                ("{membership}", membership.to_string()),
                ("{chat}", text_id(&chat)),
                ("{response}", text_id(&response)),
                ("{assistant}", text_id(&assistant)),
                ("{thread}", text_id(&thread)),
                ("{message}", text_id(&message)),
                ("{run}", text_id(&run)),
            ],
            app,
            upstream,
            member,
            program,
            space,
            conversation,
        }
    }

    fn path(&self, path: &str) -> String {
        let ids = self.ids.iter();
        ids.fold(path.to_owned(), |path, (word, id)| path.replace(word, id))
    }

    /// Asserts that a member cannot configure a provider.
    pub async fn provider_is_refused(&self, call: &str, url: &str) {
        let (method, path) = call.split_once(' ').expect("a method and a path");
        let method: Method = method.parse().expect("a method");
        let body = json!({"name": "x", "base_url": url, "model": "m"});
        let answer = self
            .member
            .attempt(method, &self.path(path), Some(&body))
            .await;
        assert_eq!(answer.expect("the server answers").0, 403);
    }

    /// Creates a new space for each group of addresses, with a message in each.
    pub async fn new_spaces(&self, urls: &[String]) {
        let accepted = self.accepted(urls).await;
        for urls in accepted.chunks(SERVERS_OF_A_SPACE) {
            let (_, conversation, _) =
                create_space_with_character(&self.member, tool_servers(urls)).await;
            self.turn(conversation).await;
        }
    }

    /// Stores the addresses in the settings of a document, in groups, with a reply for each group.
    pub async fn settings(&self, path: &str, urls: &[String]) {
        let path = self.path(path);
        let accepted = self.accepted(urls).await;
        for urls in accepted.chunks(SERVERS_OF_A_SPACE) {
            let body = json!({"settings": tool_servers(urls)});
            expect(200, self.member.patch(&path, body).await);
            self.turn(self.conversation).await;
        }
        let none = json!({"settings": {}});
        expect(200, self.member.patch(&path, none).await);
    }

    /// Returns the addresses that the settings of a space accept.
    async fn accepted(&self, urls: &[String]) -> Vec<String> {
        let path = format!("/api/spaces/{}", self.space);
        let mut accepted = Vec::new();
        for url in urls {
            let settings = tool_servers(std::slice::from_ref(url));
            let (status, answer) = self
                .member
                .patch(&path, json!({"settings": settings}))
                .await;
            match status {
                200 => accepted.push(url.clone()),
                _ => assert_eq!(status, 422, "{url}: {answer}"),
            }
        }
        let none = json!({"settings": {}});
        expect(200, self.member.patch(&path, none).await);
        accepted
    }

    /// Posts a message and waits for the end of its reply.
    async fn turn(&self, conversation: i64) {
        let posted = self.member.post_message(conversation, "Hi.", None);
        let run = expect(201, posted.await)["run"]["id"].clone();
        let path = format!("/api/runs/{}", run.as_str().expect("a run is planned"));
        poll::until("the end of the run", async || {
            let run = expect(200, self.member.get(&path).await);
            let is_over = !["queued", "running"].contains(&run["status"].as_str()?);
            is_over.then_some(())
        })
        .await;
    }

    /// Returns whether an endpoint of `/v1` can use addresses.
    pub fn leads_out(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let without = [
            "/cancel",
            "/embeddings",
            "/query",
            "{chat}",
            "/assistants",
            "{assistant}",
            "{thread}",
            "{message}",
            "{run}",
            "/submit_tool_outputs",
        ];
        !without.iter().any(|it| path.ends_with(it))
    }

    /// Sends the address in each field of `/v1`.
    pub async fn v1(&self, path: &str, url: &str) {
        for field in V1_FIELDS {
            let list = match path {
                "/chat/completions" | "/threads" => "messages",
                path if path.ends_with("/runs") => "messages",
                path if path.starts_with("/conversations") => "items",
                _ => "input",
            };
            let mut body = body(list, field, url);
            if path.starts_with("/responses") || path.starts_with("/chat") {
                body["model"] = json!("scripted");
            }
            if path.starts_with("/threads") {
                body = body_of_thread(path, body);
            }
            if path.ends_with("/runs") {
                body = body_of_run(path, body);
                body["assistant_id"] = json!(self.path("{assistant}"));
            }
            let (status, answer) = self.program.post(&self.path(path), body).await;
            assert!(status < 500 || status == 501, "{path} {url}: {answer}");
        }
    }

    /// Sends the addresses in each field over the socket.
    pub async fn socket(&self, urls: &[String]) {
        let address = self.app.base.replacen("http", "ws", 1);
        let address = format!("{address}/v1/responses");
        let socket = connect_with_key(&address, &self.program.key).await;
        let client = WsClient::at(socket.expect("the server opens a socket"));
        let mut at = 0;
        for url in urls {
            for field in V1_FIELDS {
                let mut frame = body("input", field, url);
                frame["model"] = json!("scripted");
                frame["type"] = json!("response.create");
                client.send_text(&frame.to_string()).await;
                let is_end = |it: &Value| {
                    let kind = it["type"].as_str().unwrap_or_default();
                    ["error", "response.completed", "response.failed"].contains(&kind)
                };
                at = client
                    .wait_after(at, "the end of the response", is_end)
                    .await
                    .0;
            }
        }
    }

    /// Lets a model request the addresses, under `/v1` and in a space.
    pub async fn fetched_by_a_model(&self, urls: &[String]) {
        let fetch = json!({"settings": {"tools": {"web_fetch": "allowed"}}});
        let path = format!("/api/spaces/{}", self.space);
        expect(200, self.member.patch(&path, fetch).await);
        for urls in urls.chunks(FETCHES_OF_A_TURN) {
            let each = urls.iter().enumerate();
            let calls: Vec<(String, String)> = each
                .map(|(n, url)| (format!("c{n}"), json!({ "url": url }).to_string()))
                .collect();
            let calls: Vec<(&str, &str, &str)> = calls
                .iter()
                .map(|(id, arguments)| (id.as_str(), "troupe_web_fetch", arguments.as_str()))
                .collect();
            self.upstream.next(ResponseScript::calls(&calls));
            let tools = json!([{"type": "troupe:web_fetch"}]);
            let request = json!({"input": "Read.", "tools": tools});
            self.program.respond(request).await;
            self.upstream.next(ResponseScript::calls(&calls));
            self.turn(self.conversation).await;
        }
    }

    /// Imports cards that list pictures by address, which must not be fetched.
    pub async fn cards(&self, urls: &[String]) {
        let assets = urls
            .iter()
            .map(|url| json!({"type": "icon", "uri": url, "name": "main", "ext": "png"}));
        let data = json!({
            "name": "Mina", "avatar": urls[0], "assets": assets.collect::<Vec<_>>(),
            "source": urls, "first_mes": format!("![a]({})", urls[0]),
        });
        let card = json!({"spec": "chara_card_v3", "spec_version": "3.0", "data": data});
        let made = self
            .member
            .post("/api/characters", json!({ "card": card }))
            .await;
        assert!(made.0 < 500, "{}", made.1);
    }

    pub async fn close(self) {
        self.app.close().await;
    }
}

/// Creates a space with a character; returns the ids of the space, its root and the character's
/// membership.
async fn create_space_with_character(member: &HttpClient, settings: Value) -> (i64, i64, i64) {
    let columns = json!({"user_turn_debounce_ms": 0, "settings": settings});
    let space = member.create_space("Room", columns).await;
    let mina = member.create_character("Mina", None).await;
    let membership = member.add_character(&space, &mina).await;
    (id(&space), root_of(&space), id(&membership))
}

/// Returns the id of an object under `/v1`.
fn text_id(document: &Value) -> String {
    let id = document["id"].as_str();
    id.expect("the object has an id").to_owned()
}

/// Returns a body for a run, whose messages are those of its new thread, or are added to its thread.
fn body_of_run(path: &str, mut body: Value) -> Value {
    let messages = body
        .as_object_mut()
        .and_then(|it| it.shift_remove("messages"));
    match path {
        "/threads/runs" => body["thread"] = json!({ "messages": messages }),
        _ => body["additional_messages"] = json!(messages),
    }
    body
}

/// Returns a body for a thread instead of one for a list of items: a message has no `type`, and is
/// the whole body of the request that appends it.
fn body_of_thread(path: &str, mut body: Value) -> Value {
    let (is_list, place) = match path {
        "/threads" => (true, "/messages/0"),
        path if path.ends_with("/runs") => (true, "/messages/0"),
        _ => (false, "/input/0"),
    };
    let Some(message) = body.pointer_mut(place) else {
        return body; // a field that no message has
    };
    if let Some(fields) = message.as_object_mut() {
        fields.shift_remove("type");
    }
    match is_list {
        true => body,
        false => message.take(),
    }
}

/// Returns a request body of `/v1` with an address in this field.
fn body(list: &str, field: &str, url: &str) -> Value {
    let part = match field {
        "server_url" => {
            let server = json!({
                "type": "mcp", "server_label": "x", "server_url": url, "require_approval": "never",
            });
            return json!({list: "Hi.", "tools": [server]});
        }
        "image_url" => json!({"type": "input_image", "image_url": url}),
        "url" => json!({"type": "image_url", "image_url": {"url": url}}),
        _ => json!({"type": "input_file", "file_url": url}),
    };
    let message = json!({"type": "message", "role": "user", "content": [part]});
    json!({list: [message]})
}
