//! The grid of a whisper: its canary reaches its author and its audience and no one else, whatever
//! their role, in the answers of every `GET` endpoint and in every frame of a subscribed socket.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::rights::fixture;
use crate::rights::fixture::Ids;
use crate::rights::roles::{Role, RoleClients};
use crate::rights::table::rows;
use crate::support::app::TestApp;
use crate::support::backends::on_both;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::file_uploads::fetch;
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::poll;
use crate::support::space_content::unpacked;
use crate::support::ws_client::WsClient;

/// In every text, name and title that belongs to the whispers.
const CANARY: &str = "zanzibar";

const SETTINGS: &[(&str, &str)] = &[
    ("TROUPE_OPEN_REGISTRATION", "true"),
    ("LIMIT_LOGIN_FAILURES", "0"),
    ("LIMIT_REGISTRATIONS_PER_HOUR", "0"),
];

/// The author, and the other person of the audience.
const AUTHOR: Role = Role::Member;
const LISTENER: Role = Role::Elsewhere;

/// Everyone else; the removed member was in the audience.
const OUTSIDE: [Role; 7] = [
    Role::SignedOut,
    Role::Outsider,
    Role::Guest,
    Role::Moderator,
    Role::Owner,
    Role::Admin,
    Role::Removed,
];

/// What people outside the audience see of a run.
const PRIVATE_FIELDS: [&str; 6] = [
    "conversation_id",
    "created_at",
    "id",
    "private",
    "run_seq",
    "status",
];

fn text(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

/// A conversation with whispers, and a socket of every person who may subscribe.
struct Whispers {
    clients: RoleClients,
    upstream: FakeProvider,
    ids: Ids,
    conversation: i64,
    audience: Value,
    sockets: Vec<(Role, i64, WsClient)>,
}

impl Whispers {
    async fn create(app: TestApp) -> Whispers {
        let clients = RoleClients::create(app).await;
        let upstream = FakeProvider::start().await;
        let provider = json!({"name": "Main", "base_url": upstream.base_url(), "model": "m", "is_default": true});
        let made = clients.person(Role::Admin).post("/api/providers", provider);
        expect(201, made.await);
        let mut ids = fixture::create(&clients, Role::Owner).await;
        fixture::create_resources_of(&clients, AUTHOR, &mut ids).await;
        let owner = clients.person(Role::Owner);
        let space = ids.of("space_id", Role::Owner).as_i64().expect("a number");
        let at_once = json!({"user_turn_debounce_ms": 0});
        expect(
            200,
            owner.patch(&format!("/api/spaces/{space}"), at_once).await,
        );
        let mut members = vec![ids.of("membership_id:character", AUTHOR)];
        for who in [LISTENER, Role::Removed] {
            let member = owner.add_member(space, clients.person(who), "member").await;
            ids.insert(format!("membership_id:{}", who.name()), &member["id"]);
            members.push(member["id"].clone());
        }
        let path = format!("/api/spaces/{space}/conversations");
        let made = expect(201, owner.post(&path, json!({"title": "Aside"})).await);
        let (conversation, audience) = (id(&made), json!(members));
        let mut sockets = Vec::new();
        for who in [
            AUTHOR,
            LISTENER,
            Role::Guest,
            Role::Moderator,
            Role::Owner,
            Role::Admin,
        ] {
            let socket = WsClient::open(clients.person(who)).await;
            let frame = json!({"op": "subscribe_space", "space_id": space});
            assert_eq!(socket.call(frame).await["ok"], true);
            let opened = socket.subscribe(conversation, None).await;
            let rev = opened["rev"].as_i64().expect("the rev of the snapshot");
            if who != Role::Admin {
                let read = format!("/api/conversations/{conversation}/read");
                // The greeting.
                expect(
                    204,
                    clients.person(who).post(&read, json!({"seq": 1})).await,
                );
            }
            sockets.push((who, rev, socket));
        }
        Whispers {
            clients,
            upstream,
            ids,
            conversation,
            audience,
            sockets,
        }
    }

    fn author(&self) -> &HttpClient {
        self.clients.person(AUTHOR)
    }

    async fn post(&self, who: Role, body: Value) -> Value {
        let path = format!("/api/conversations/{}/messages", self.conversation);
        expect(201, self.clients.person(who).post(&path, body).await)
    }

    /// Waits until the author sees no active run.
    async fn settle(&self) {
        poll::until("the end of the runs", async || {
            let now = self.author().conversation(self.conversation).await;
            (now["state"] == "idle").then_some(())
        })
        .await;
    }

    /// Posts whispers, and lets the character reply, edits, reacts, regenerates and hides.
    async fn whisper(&mut self) {
        let persona = json!({"name": format!("Captain {CANARY}")});
        let persona = expect(201, self.author().post("/api/personas", persona).await);
        self.upstream
            .next(ResponseScript::say(&format!("Hush, {CANARY} is far.")));
        let body = json!({
            "content": format!("Tell no one of {CANARY}."), "audience": self.audience, "persona_id": persona["id"],
        });
        let posted = self.post(AUTHOR, body).await;
        self.settle().await;
        let whisper = &posted["message"];
        let path = format!("/api/messages/{}", whisper["id"]);
        let edit = json!({"content": format!("Tell nobody of {CANARY}."), "expected_version": whisper["version"]});
        expect(200, self.author().patch(&path, edit).await);
        let reaction = format!("{path}/reactions/%F0%9F%91%8D");
        let reacted = self.clients.person(LISTENER).put(&reaction, json!({}));
        assert!(reacted.await.0 < 300);
        self.upstream
            .next(ResponseScript::say(&format!("Still, {CANARY} is far.")));
        let regenerate = format!("/api/conversations/{}/regenerate", self.conversation);
        expect(202, self.author().post(&regenerate, json!({})).await);
        self.settle().await;
        let listener = self.ids.of("membership_id:own", LISTENER);
        let aside = json!({"content": format!("Meet me in {CANARY}."), "audience": [listener]});
        let hidden = self.post(AUTHOR, aside).await;
        let hide = format!("/api/messages/{}", hidden["message"]["id"]);
        expect(204, self.author().delete(&hide).await);
        for name in ["message_id", "message_id:ai", "message_id:own"] {
            self.ids.insert(name, &whisper["id"]);
        }
        self.ids.insert("persona_id", &persona["id"]);
        self.ids
            .insert("conversation_id", &json!(self.conversation));
        let runs = self.author().runs(self.conversation).await;
        let newest = runs.first().expect("the run of the whisper");
        self.ids.insert("run_id", &newest["id"]);
        let removed = self.ids.of("membership_id:own", Role::Removed);
        let path = format!("/api/memberships/{removed}");
        expect(204, self.clients.person(Role::Owner).delete(&path).await);
    }

    /// Returns the addresses of everything that can be read: each `GET` endpoint of the table, which has
    /// every endpoint of the API document, and some with queries.
    fn addresses(&self, who: Role) -> BTreeSet<String> {
        let of = |name: &str| text(&self.ids.of(name, who));
        let all = rows();
        let reads = all.iter().filter(|it| it.method() == "GET");
        let mut addresses: BTreeSet<String> = reads.map(|it| it.filled(of)).collect();
        // It describes all fields of a run.
        addresses.remove("/openapi.json");
        let (space, conversation) = (of("space_id"), of("conversation_id"));
        let (message, persona) = (of("message_id"), of("persona_id"));
        addresses.extend([
            format!("/api/search?q={CANARY}"),
            format!("/api/search?q={CANARY}&space_id={space}"),
            format!("/api/search?q=za&space_id={space}"),
            "/api/search?q=za".to_owned(),
            format!("/api/conversations/{conversation}/messages?limit=200&html=true"),
            format!("/api/conversations/{conversation}/messages?around={message}"),
            format!("/api/conversations/{conversation}/messages?after=0"),
            format!("/api/conversations/{conversation}/export?format=txt"),
            format!("/api/conversations/{conversation}/export?format=jsonl"),
            format!("/api/conversations/{conversation}/runs?status=succeeded&limit=200"),
            format!("/api/personas/{persona}/avatar?size=full"),
            "/api/admin/runs?kind=regenerate".to_owned(),
            format!("/api/admin/runs?conversation_id={conversation}"),
        ]);
        addresses
    }
}

/// Returns what a person outside may not have received in a document: the canary, a run with an
/// audience, or a private document with other fields.
fn leaks(document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if document.to_string().to_lowercase().contains(CANARY) {
        found.push(format!("the canary: {document}"));
    }
    for_each_object(document, &mut |it| {
        if it.contains_key("run_seq") && it.get("audience").is_some_and(|it| !it.is_null()) {
            found.push(format!("a run with an audience: {it:?}"));
        }
        let fields: Vec<&str> = it.keys().map(String::as_str).collect();
        let is_private = it.get("private") == Some(&json!(true));
        // The list of the admin adds where it ran.
        let is_of_admin = it.contains_key("space_name");
        if is_private && it.contains_key("run_seq") && !is_of_admin {
            let mut fields = fields;
            fields.sort_unstable();
            if fields != PRIVATE_FIELDS {
                found.push(format!("more of a private run: {fields:?}"));
            }
        }
    });
    found
}

fn for_each_object(document: &Value, visit: &mut dyn FnMut(&serde_json::Map<String, Value>)) {
    match document {
        Value::Object(it) => {
            visit(it);
            it.values().for_each(|it| for_each_object(it, visit));
        }
        Value::Array(all) => all.iter().for_each(|it| for_each_object(it, visit)),
        _ => {}
    }
}

on_both! {
    async fn a_whisper_reaches_its_audience_and_no_one_else(backend) {
        let app = TestApp::start_with(backend, SETTINGS).await;
        let mut at = Whispers::create(app).await;
        at.whisper().await;
        let runs = |who| at.clients.person(who).runs(at.conversation);
        let n_runs = runs(AUTHOR).await.len();
        let list = format!("/api/spaces/{}/conversations", at.ids.of("space_id", AUTHOR));
        let mut wrong = Vec::new();

        for who in OUTSIDE {
            for address in at.addresses(who) {
                let (status, answer) = at.clients.person(who).attempt(reqwest::Method::GET, &address, None).await.unwrap();
                let found = leaks(&answer).into_iter();
                wrong.extend(found.map(|it| format!("{} {address} {status}: {it}", who.name())));
            }
        }
        let mut reached = BTreeSet::new();
        for who in [AUTHOR, LISTENER] {
            for address in at.addresses(who) {
                let (_, answer) = at.clients.person(who).attempt(reqwest::Method::GET, &address, None).await.unwrap();
                if answer.to_string().to_lowercase().contains(CANARY) {
                    reached.insert((who.name(), address));
                }
            }
        }
        let conversation = at.conversation;
        for who in [AUTHOR, LISTENER] {
            for address in [
                format!("/api/conversations/{conversation}/messages?limit=200&html=true"),
                format!("/api/conversations/{conversation}/export?format=txt"),
                format!("/api/search?q={CANARY}"),
                "/api/search?q=za".to_owned(),
                format!("/api/search?q={CANARY}&space_id={}", at.ids.of("space_id", who)),
            ] {
                assert!(reached.contains(&(who.name(), address.clone())), "{} {address}", who.name());
            }
        }
        for who in [Role::Owner, Role::Admin] {
            let path = format!("/api/spaces/{}/export", at.ids.of("space_id", who));
            for (name, bytes) in unpacked(&fetch(at.clients.person(who), &path).await) {
                if String::from_utf8_lossy(&bytes).to_lowercase().contains(CANARY) {
                    wrong.push(format!("{} {name} of the space file", who.name()));
                }
            }
        }
        assert!(wrong.is_empty(), "{} leaks:\n{}", wrong.len(), wrong.join("\n"));

        // Outside, the runs are as many, and nothing is unread.
        for who in [Role::Guest, Role::Moderator, Role::Owner] {
            assert_eq!(runs(who).await.len(), n_runs, "{}", who.name());
            let all = expect(200, at.clients.person(who).get(&list).await);
            let found = all["data"].as_array().unwrap().iter().find(|it| it["id"] == conversation).unwrap();
            assert_eq!((&found["last_seq"], found["last_read_seq"] == found["last_seq"]), (&json!(4), true), "{found}");
            let messages = at.clients.person(who).messages(conversation).await;
            assert!(messages.iter().all(|it| it["role"] == "assistant" && it["audience"].is_null()), "{messages:?}");
        }
        let all = expect(200, at.clients.person(LISTENER).get(&list).await);
        let found = all["data"].as_array().unwrap().iter().find(|it| it["id"] == conversation).unwrap();
        assert_eq!(found["last_read_seq"], 1, "the whisper is unread");

        at.upstream.next(ResponseScript::say("Good evening."));
        at.post(Role::Owner, json!({"content": "All is said."})).await;
        at.settle().await;
        at.post(Role::Owner, json!({"content": "The end.", "is_ooc": true})).await;
        for (who, first_rev, socket) in &at.sockets {
            let is_end = |it: &Value| it["type"] == "message_created" && it["message"]["content"] == "The end.";
            socket.wait_for("the last message", is_end).await;
            let frames = socket.log();
            let of_conversation = frames.iter().filter(|it| it["conversation_id"] == conversation && it["re"].is_null());
            let revs: Vec<i64> = of_conversation.filter_map(|it| it["rev"].as_i64()).collect();
            let expected: Vec<i64> = (first_rev + 1..).take(revs.len()).collect();
            assert_eq!(revs, expected, "{}", who.name());
            let n_with_canary = frames.iter().filter(|it| it.to_string().to_lowercase().contains(CANARY)).count();
            match [AUTHOR, LISTENER].contains(who) {
                true => assert!(n_with_canary >= 6, "{} received {n_with_canary}", who.name()),
                false => {
                    let found: Vec<_> = frames.iter().flat_map(leaks).collect();
                    assert!(found.is_empty(), "{}:\n{}", who.name(), found.join("\n"));
                    assert!(frames.iter().any(|it| it["type"] == "rev_advanced"), "{}", who.name());
                    let n_typing = frames.iter().filter(|it| it["type"] == "typing_start").count();
                    assert_eq!(n_typing, 1, "{}: only the public reply", who.name());
                    let n_active = frames.iter().filter(|it| it["type"] == "activity" && it["conversation_id"] == conversation).count();
                    assert_eq!(n_active, 3, "{}: only the public messages", who.name());
                }
            }
        }
        let Whispers { clients, sockets, .. } = at;
        drop(sockets);
        clients.app.close().await;
    }
}
