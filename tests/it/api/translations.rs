//! Tests of translations of messages: who makes them, who gets them, and when they end.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::poll;
use crate::support::ws_client::WsClient;

const GERMAN: &str = "Guten *Morgen*, {{user}}.";

/// A space that translates, with a message.
struct Room {
    app: TestApp,
    ann: HttpClient,
    upstream: FakeProvider,
    provider: i64,
    space: Value,
    root: i64,
    message: i64,
}

impl Room {
    async fn open(backend: TestBackend) -> Self {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let ann = app.admin().await;
        let upstream = FakeProvider::start().await;
        upstream.reply_with(GERMAN);
        let provider = json!({"name": "Translator", "base_url": upstream.base_url(), "model": "m"});
        let provider = id(&expect(201, ann.post("/api/providers", provider).await));
        let settings = json!({"reply_order": "manual", "translation_provider_id": provider});
        let space = ann.create_space("Room", settings).await;
        let root = root_of(&space);
        let posted = ann
            .post_message(root, "Good *morning*, {{user}}.", None)
            .await;
        let message = id(&expect(201, posted)["message"]);
        Self {
            app,
            ann,
            upstream,
            provider,
            space,
            root,
            message,
        }
    }

    /// Holds the answers of the model.
    fn hold(&self, text: &str) -> HoldPoint {
        let gate = HoldPoint::closed();
        self.upstream
            .always(ResponseScript::say(text).held_at(&gate));
        gate
    }

    /// Adds a person to the space.
    async fn member(&self, name: &str) -> HttpClient {
        let person = self.app.register(name).await;
        self.ann.add_member(id(&self.space), &person, "guest").await;
        person
    }

    async fn change(&self, settings: Value) {
        let path = format!("/api/spaces/{}", id(&self.space));
        expect(200, self.ann.patch(&path, settings).await);
    }

    async fn n_stored(&self) -> i64 {
        let mut facts = DatabaseFacts::open(&self.app.database).await;
        let sql = "SELECT CAST(count(*) AS TEXT) FROM message_translations";
        facts.number(sql).await
    }
}

async fn translate(person: &HttpClient, message: i64, language: &str) -> (u16, Value) {
    let path = format!("/api/messages/{message}/translation?language={language}");
    person.get(&path).await
}

/// Returns a translation when it is ready.
async fn translation_of(person: &HttpClient, message: i64, language: &str) -> Value {
    poll::until("the translation is ready", async || {
        let answer = translate(person, message, language).await;
        (answer.0 != 202).then(|| expect(200, answer))
    })
    .await
}

/// Returns the code of the error with which a translation ends, in the answer or in an event after it.
async fn failure(person: &HttpClient, socket: &WsClient, message: i64, language: &str) -> String {
    let from = socket.here();
    let answer = translate(person, message, language).await;
    if answer.0 != 202 {
        return refusal(&answer).1;
    }
    let is_failed = |it: &Value| it["type"] == "translation_failed";
    let (_, event) = socket.wait_after(from, "the failure", is_failed).await;
    event["code"].as_str().expect("a code").to_owned()
}

fn is_translated(event: &Value) -> bool {
    event["type"] == "message_translated"
}

on_both! {
    async fn many_readers_get_one_translation_and_others_get_no_event(backend) {
        let room = Room::open(backend).await;
        let (ben, cid) = (room.member("ben").await, room.member("cid").await);
        let gate = room.hold(GERMAN);
        let sockets = [WsClient::open(&room.ann).await, WsClient::open(&ben).await, WsClient::open(&ben).await];
        let other = WsClient::subscribed(&cid, room.root).await;

        let readers = [&room.ann, &ben, &ben, &room.ann, &ben];
        let answers = join_all(readers.map(|it| translate(it, room.message, "de"))).await;

        for answer in answers {
            let pending = json!({"message_id": room.message, "version": 1, "language": "de"});
            assert_eq!(answer, (202, pending));
        }
        gate.open();
        for socket in &sockets {
            let event = socket.wait_for("the translation", is_translated).await;
            assert_eq!((&event["message_id"], &event["version"]), (&json!(room.message), &json!(1)));
            assert_eq!((&event["language"], &event["text"]), (&json!("de"), &json!(GERMAN)));
            assert_eq!(event["html"], "<p>Guten <em>Morgen</em>, {{user}}.</p>\n");
        }
        let stored = translation_of(&cid, room.message, "DE").await;
        assert_eq!((&stored["text"], &stored["language"]), (&json!(GERMAN), &json!("de")));
        assert_eq!(room.upstream.n_requests(), 1);
        let request = room.upstream.body(0);
        assert_eq!(request["messages"][1]["content"], "Good *morning*, {{user}}.");
        let system = request["messages"][0]["content"].as_str().unwrap();
        assert!(system.contains("the language tag de"), "{system}");
        // The last frame that this person receives.
        other.call(json!({"op": "ping"})).await;
        assert!(!other.log().iter().any(is_translated), "{:?}", other.log());
        room.app.close().await;
    }

    async fn a_change_of_the_text_ends_its_translations(backend) {
        let room = Room::open(backend).await;
        let path = format!("/api/messages/{}", room.message);
        translation_of(&room.ann, room.message, "de").await;
        translation_of(&room.ann, room.message, "fr").await;
        assert_eq!(room.n_stored().await, 2);

        let edit = json!({"content": "Good night.", "expected_version": 1});
        expect(200, room.ann.patch(&path, edit).await);

        assert_eq!(room.n_stored().await, 0);
        room.upstream.reply_with("Gute Nacht.");
        let translated = translation_of(&room.ann, room.message, "de").await;
        assert_eq!((&translated["text"], &translated["version"]), (&json!("Gute Nacht."), &json!(2)));
        expect(200, room.ann.patch(&path, json!({"visibility": "hidden"})).await);
        assert_eq!(room.n_stored().await, 0);
        assert_eq!(translate(&room.ann, room.message, "de").await.0, 404);
        room.app.close().await;
    }

    async fn a_message_that_changes_during_the_call_keeps_no_old_translation(backend) {
        let room = Room::open(backend).await;
        let gate = room.hold(GERMAN);
        let socket = WsClient::open(&room.ann).await;
        expect(202, translate(&room.ann, room.message, "de").await);

        let edit = json!({"content": "Good night.", "expected_version": 1});
        expect(200, room.ann.patch(&format!("/api/messages/{}", room.message), edit).await);
        gate.open();

        let event = socket.wait_for("the failure", |it| it["type"] == "translation_failed").await;
        assert_eq!((&event["code"], &event["version"]), (&json!("message_changed"), &json!(1)));
        assert_eq!(room.n_stored().await, 0);
        translation_of(&room.ann, room.message, "de").await;
        room.app.close().await;
    }

    async fn a_failure_is_answered_or_announced_and_the_next_request_tries_again(backend) {
        let room = Room::open(backend).await;
        let socket = WsClient::open(&room.ann).await;

        room.upstream.next(ResponseScript::status(400));
        assert_eq!(failure(&room.ann, &socket, room.message, "de").await, "upstream_error");
        let failures = socket.here();

        let gate = HoldPoint::closed();
        room.upstream.next(ResponseScript::stream().role().text("Gut").finish("length").done().held_at(&gate));
        expect(202, translate(&room.ann, room.message, "de").await);
        gate.open();
        let is_failed = |it: &Value| it["type"] == "translation_failed";
        let (_, event) = socket.wait_after(failures, "the failure", is_failed).await;
        assert_eq!((&event["code"], &event["message_id"]), (&json!("upstream_error"), &json!(room.message)));

        assert_eq!(room.n_stored().await, 0);
        translation_of(&room.ann, room.message, "de").await;
        assert_eq!(room.upstream.n_requests(), 3);
        room.app.close().await;
    }

    async fn a_translation_of_a_node_that_died_is_made_by_another(backend) {
        let room = Room::open(backend).await;
        let mut facts = DatabaseFacts::open(&room.app.database).await;
        let sql = format!(
            "INSERT INTO message_translations (message_id, version, language, heartbeat_at, created_at) \
             VALUES ({}, 1, 'de', 0, 0)", room.message
        );
        facts.execute(&sql).await;

        let translated = translation_of(&room.ann, room.message, "de").await;

        assert_eq!(translated["text"], GERMAN);
        let lease = "SELECT CAST(lease AS TEXT) FROM message_translations";
        assert_eq!(facts.number(lease).await, 2);
        room.app.close().await;
    }

    async fn tokens_count_against_the_limit_of_the_space(backend) {
        let room = Room::open(backend).await;
        room.change(json!({"token_limit": 5})).await;
        translation_of(&room.ann, room.message, "de").await;
        let path = format!("/api/spaces/{}", id(&room.space));
        // 7 for the prompt, and 3 words.
        assert_eq!(expect(200, room.ann.get(&path).await)["tokens_used"], 10);

        let socket = WsClient::open(&room.ann).await;
        let refused = failure(&room.ann, &socket, room.message, "fr").await;

        assert_eq!(refused, "token_limit_exceeded");
        translation_of(&room.ann, room.message, "de").await;
        assert_eq!((room.upstream.n_requests(), room.n_stored().await), (1, 1));
        room.app.close().await;
    }
}

on_sqlite! {
    async fn an_archived_space_returns_only_what_is_translated(backend) {
        let room = Room::open(backend).await;
        translation_of(&room.ann, room.message, "de").await;
        room.change(json!({"status": "archived"})).await;

        translation_of(&room.ann, room.message, "de").await;
        let refused = translate(&room.ann, room.message, "fr").await;

        assert_eq!(refusal(&refused), (403, "space_archived".to_owned()));
        room.app.close().await;
    }

    async fn the_language_is_that_of_the_reader_unless_one_is_requested(backend) {
        let room = Room::open(backend).await;
        let path = format!("/api/messages/{}/translation", room.message);
        let language = async || {
            poll::until("the translation is ready", async || {
                let answer = room.ann.get(&path).await;
                (answer.0 != 202).then(|| expect(200, answer)["language"].clone())
            })
            .await
        };
        assert_eq!(language().await, "en");

        let settings = json!({"language": "zh-hant-tw", "theme": "dark"});
        let changed = expect(200, room.ann.patch("/api/users/me", json!({"settings": settings})).await);

        assert_eq!(changed["settings"], json!({"language": "zh-Hant-TW", "theme": "dark"}));
        assert_eq!(expect(200, room.ann.get("/api/session").await)["user"]["settings"], changed["settings"]);
        assert_eq!(language().await, "zh-Hant-TW");
        for bad in ["", "english", "en_US", "e", "en-%0A"] {
            let refused = translate(&room.ann, room.message, bad).await;
            assert_eq!(refusal(&refused), (422, "invalid_value".to_owned()), "{bad}");
        }
        for bad in [json!({"language": "en_US"}), json!({"language": 7}), json!({"a": "x".repeat(66_000)})] {
            assert_eq!(room.ann.patch("/api/users/me", json!({"settings": bad})).await.0, 422);
        }
        room.app.close().await;
    }

    async fn only_readers_of_the_message_get_a_translation(backend) {
        let room = Room::open(backend).await;
        let (guest, outsider) = (room.member("ben").await, room.app.register("eve").await);

        translation_of(&guest, room.message, "de").await;
        assert_eq!(refusal(&translate(&outsider, room.message, "de").await), (404, "not_found".to_owned()));
        assert_eq!(refusal(&translate(&room.ann, 999_999, "de").await), (404, "not_found".to_owned()));
        room.app.close().await;
    }

    async fn a_space_names_a_provider_that_can_translate_and_a_language(backend) {
        let room = Room::open(backend).await;
        let path = format!("/api/spaces/{}", id(&room.space));
        let providers = expect(200, room.ann.get("/api/providers").await);
        let demo = providers["data"].as_array().unwrap().iter().find(|it| it["kind"] == "demo").unwrap();
        let refused = [
            (json!({"translation_provider_id": demo["id"]}), "translation_provider_id"),
            (json!({"translation_provider_id": 999_999}), "translation_provider_id"),
            (json!({"model_language": "en_US"}), "model_language"),
        ];
        for (body, param) in refused {
            let answer = room.ann.patch(&path, body).await;
            assert_eq!((answer.0, &answer.1["error"]["param"]), (422, &json!(param)));
        }
        let changed = expect(200, room.ann.patch(&path, json!({"model_language": "EN-gb"})).await);
        assert_eq!((&changed["model_language"], &changed["translation_provider_id"]), (&json!("en-GB"), &json!(room.provider)));

        let provider = format!("/api/providers/{}", room.provider);
        expect(200, room.ann.patch(&provider, json!({"disabled": true})).await);
        assert_eq!(refusal(&translate(&room.ann, room.message, "de").await), (404, "no_translation_provider".to_owned()));
        expect(204, room.ann.delete(&provider).await);
        assert_eq!(refusal(&translate(&room.ann, room.message, "de").await), (404, "no_translation_provider".to_owned()));
        expect(200, room.ann.patch(&path, json!({"name": "Other", "translation_provider_id": room.provider})).await);
        let none = json!({"translation_provider_id": null, "model_language": null});
        let changed = expect(200, room.ann.patch(&path, none.clone()).await);
        assert_eq!((&changed["model_language"], &changed["translation_provider_id"]), (&Value::Null, &Value::Null));
        room.app.close().await;
    }

    async fn everyone_chooses_for_themselves_when_messages_are_translated(backend) {
        let room = Room::open(backend).await;
        let ben = room.member("ben").await;
        let list = format!("/api/spaces/{}/memberships", id(&room.space));
        let members = expect(200, ben.get(&list).await);
        let own = members["data"].as_array().unwrap().iter().find(|it| it["translate"] == "on_demand").unwrap();
        let path = format!("/api/memberships/{}", id(own));

        let changed = expect(200, ben.patch(&path, json!({"translate": "always"})).await);

        assert_eq!(changed["translate"], "always");
        let seen = expect(200, room.ann.get(&list).await);
        let seen = seen["data"].as_array().unwrap().iter().find(|it| it["id"] == own["id"]).unwrap();
        assert_eq!(seen["translate"], Value::Null, "others see it");
        assert_eq!(room.ann.patch(&path, json!({"translate": "off"})).await.0, 403);
        assert_eq!(ben.patch(&path, json!({"translate": "sometimes"})).await.0, 422);
        let character = room.ann.create_character("Ada", None).await;
        let character = room.ann.add_character(&room.space, &character).await;
        let path = format!("/api/memberships/{}", id(&character));
        assert_eq!(room.ann.patch(&path, json!({"translate": "off"})).await.0, 422);
        room.app.close().await;
    }

    async fn a_long_text_is_translated_in_parts_and_one_without_words_without_a_call(backend) {
        let room = Room::open(backend).await;
        let provider = format!("/api/providers/{}", room.provider);
        expect(200, room.ann.patch(&provider, json!({"settings": {"context_tokens": 1024}})).await);
        room.upstream.answer_with(|body| {
            let text = body["messages"][1]["content"].as_str().unwrap();
            ResponseScript::say(&text.to_uppercase())
        });
        let paragraphs: Vec<String> = (1..=9).map(|it| format!("paragraph {it} {}", "words ".repeat(20).trim())).collect();
        let text = paragraphs.join("\n\n");
        let post = async |text: &str| {
            id(&expect(201, room.ann.post_message(room.root, text, None).await)["message"])
        };
        let (long, empty) = (post(&text).await, post("12:30 … 🎉").await);

        let translated = translation_of(&room.ann, long, "de").await;

        assert_eq!(translated["text"], text.to_uppercase());
        let n_calls = room.upstream.n_requests();
        assert!(n_calls > 2, "{n_calls}");
        assert_eq!(translation_of(&room.ann, empty, "de").await["text"], "12:30 … 🎉");
        assert_eq!(room.upstream.n_requests(), n_calls);
        room.app.close().await;
    }
}

#[tokio::test]
async fn two_servers_announce_one_translation() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    let room = Room::open(TestBackend::Postgres).await;
    let other = room.app.start_second_node(OPEN_REGISTRATION).await;
    let ben = room.member("ben").await.with_base(&other.base);
    let gate = room.hold(GERMAN);
    let (here, there) = (WsClient::open(&room.ann).await, WsClient::open(&ben).await);

    expect(202, translate(&room.ann, room.message, "de").await);
    room.upstream.wait_for_requests(1).await;
    expect(202, translate(&ben, room.message, "de").await);
    gate.open();

    for socket in [here, there] {
        let event = socket.wait_for("the translation", is_translated).await;
        assert_eq!(event["text"], GERMAN);
    }
    assert_eq!(room.upstream.n_requests(), 1);
    other.close().await;
    room.app.close().await;
}
