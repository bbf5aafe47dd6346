//! Tests of prompts in the language that the models of a space read.

use std::time::Duration;

use agent::permits::fair_permits::PermitOwner;
use base::language_tag::LanguageTag;
use serde_json::{Value, json};
use troupe::conversations::translations::message_translation::TranslationKey;
use troupe::conversations::translations::translation_model::TranslationSource;
use troupe::providers::provider;
use troupe::runs::engine::RunEngine;
use troupe::spaces::space::ReplyOrder;

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::poll;
use crate::support::poll::DEADLINE;

/// A space with a character whose model replies "Hello.", and with a model that translates German.
struct Room {
    app: TestApp,
    ann: HttpClient,
    speaker: FakeProvider,
    translator: FakeProvider,
    space: Value,
    root: i64,
}

/// "Translates" a text by naming its language.
fn in_english(text: &str) -> String {
    format!("English: {text}")
}

fn translation(body: &Value) -> ResponseScript {
    let text = body["messages"][1]["content"].as_str();
    ResponseScript::say(&in_english(text.expect("a text")))
}

impl Room {
    async fn open(backend: TestBackend, settings: Value) -> Self {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (speaker, translator) = (FakeProvider::start().await, FakeProvider::start().await);
        translator.answer_with(translation);
        let provider = |name: &str, of: &FakeProvider, is_default: bool| json!({"name": name, "base_url": of.base_url(), "model": name, "is_default": is_default});
        expect(
            201,
            ann.post("/api/providers", provider("speaker", &speaker, true))
                .await,
        );
        let chosen = provider("translator", &translator, false);
        let chosen = id(&expect(201, ann.post("/api/providers", chosen).await));
        let space = ann.create_space("Room", settings).await;
        let path = format!("/api/spaces/{}", id(&space));
        let body = json!({"translation_provider_id": chosen, "user_turn_debounce_ms": 0});
        expect(200, ann.patch(&path, body).await);
        ann.add_character(&space, &ann.create_character("Ada", None).await)
            .await;
        Self {
            root: root_of(&space),
            app,
            ann,
            speaker,
            translator,
            space,
        }
    }

    /// Posts a message and waits for the reply. Returns the prompt that the model received.
    async fn post(&self, text: &str) -> String {
        let nth = self.speaker.n_requests();
        expect(201, self.ann.post_message(self.root, text, None).await);
        self.speaker.wait_for_requests(nth + 1).await;
        poll::until("the conversation is idle", async || {
            (self.ann.conversation(self.root).await["state"] == "idle").then_some(())
        })
        .await;
        self.speaker.body(nth)["messages"].to_string()
    }

    /// Returns the blocks of people in the prompt of the newest run, as the inspector shows them.
    async fn inspected(&self) -> Vec<(String, bool)> {
        let runs = self.ann.runs(self.root).await;
        let newest = runs
            .iter()
            .max_by_key(|it| it["run_seq"].as_i64())
            .expect("a run");
        let path = format!("/api/runs/{}/prompt", newest["id"].as_str().expect("an id"));
        let prompt = expect(200, self.ann.get(&path).await);
        let blocks = prompt["blocks"].as_array().expect("a list").iter();
        blocks
            .filter(|it| it["kind"] == "history" && it["role"] == "user")
            .map(|it| {
                (
                    it["text"].as_str().expect("a text").to_owned(),
                    it["is_changed"] == true,
                )
            })
            .collect()
    }
}

on_both! {
    async fn two_nodes_make_a_translation_once(backend) {
        let app = EngineTest::builder(backend).rules(|it| it.reply_order = ReplyOrder::Manual).open().await;
        let other = app.another_node();
        app.user.post("Good morning.").await;
        let message = app.messages().await[0].clone();
        let gate = app.upstream.gate();
        let provider = provider::find_default(app.db.reader()).await.unwrap().expect("a provider");
        let key = TranslationKey {
            message: message.id,
            version: message.version,
            language: LanguageTag::parse("de").unwrap(),
        };
        let start = |node: &RunEngine| {
            let source = TranslationSource {
                text: message.content.clone(),
                language: key.language.clone(),
                space: app.space,
                provider: provider.clone(),
                owner: PermitOwner::Space(app.space),
            };
            node.context().translations.start(key.clone(), source)
        };

        let mut here = start(&app.engine);
        app.upstream.wait_for_requests(1).await;
        let mut there = start(&other);
        assert_eq!(there.wait(Duration::from_millis(700)).await, None, "it waits for the other node");
        gate.open();

        for pending in [&mut here, &mut there] {
            let made = pending.wait(DEADLINE).await.expect("it ends in time");
            assert_eq!(made.expect("a translation").text, "Hello.");
        }
        assert_eq!(app.upstream.n_requests(), 1);
        app.close().await;
    }

    async fn models_read_the_translations_and_people_the_originals(backend) {
        let room = Room::open(backend, json!({"model_language": "en"})).await;

        let first = room.post("Guten Morgen.").await;
        let second = room.post("Wie geht es dir?").await;

        assert!(first.contains(&in_english("Guten Morgen.")), "{first}");
        for it in ["Guten Morgen.", "Wie geht es dir?"].map(in_english) {
            assert!(second.contains(&it), "{second}");
        }
        let requests: Vec<Value> = (0..room.translator.n_requests()).map(|it| room.translator.body(it)).collect();
        assert_eq!(requests.len(), 2, "each message once, and no reply: {requests:?}");
        let shown = room.ann.messages(room.root).await;
        assert_eq!((&shown[0]["content"], &shown[1]["content"]), (&json!("Guten Morgen."), &json!("Hello.")));
        let sent = ["Guten Morgen.", "Wie geht es dir?"].map(|it| (in_english(it), false));
        assert_eq!(room.inspected().await, sent);

        // What the inspector shows of a message that was changed since is its text, marked.
        let edit = json!({"content": "Gute Nacht.", "expected_version": 1});
        expect(200, room.ann.patch(&format!("/api/messages/{}", id(&shown[0])), edit).await);
        let inspected = room.inspected().await;
        assert_eq!(inspected, [("Gute Nacht.".to_owned(), true), sent[1].clone()]);
        room.app.close().await;
    }

    async fn a_late_translation_is_in_the_next_prompt(backend) {
        let room = Room::open(backend, json!({"model_language": "en"})).await;
        let gate = HoldPoint::closed();
        let held = gate.clone();
        room.translator.answer_with(move |body| translation(body).held_at(&held));

        let first = room.post("Guten Morgen.").await;
        assert!(first.contains("admin: Guten Morgen."), "{first}");
        assert_eq!(room.inspected().await, [("Guten Morgen.".to_owned(), false)]);

        gate.open();
        room.translator.finished(0).await;
        let path = format!("/api/messages/{}/translation?language=en", id(&room.ann.messages(room.root).await[0]));
        poll::until("the translation is stored", async || (room.ann.get(&path).await.0 == 200).then_some(())).await;
        let second = room.post("Wie geht es dir?").await;
        assert!(second.contains(&in_english("Guten Morgen.")) && second.contains(&in_english("Wie geht es dir?")), "{second}");
        assert_eq!(room.translator.n_requests(), 2);
        room.app.close().await;
    }
}

on_sqlite! {
    async fn without_a_language_for_models_nothing_is_translated_for_them(backend) {
        let room = Room::open(backend, json!({})).await;

        let prompt = room.post("Guten Morgen.").await;

        assert!(prompt.contains("admin: Guten Morgen."), "{prompt}");
        assert_eq!(room.translator.n_requests(), 0);
        room.app.close().await;
    }

    async fn a_model_that_cannot_translate_delays_no_reply(backend) {
        let room = Room::open(backend, json!({"model_language": "en"})).await;
        room.translator.always(ResponseScript::status(400));

        let first = room.post("Guten Morgen.").await;
        assert!(first.contains("admin: Guten Morgen."), "{first}");

        let path = format!("/api/spaces/{}", id(&room.space));
        expect(200, room.ann.patch(&path, json!({"translation_provider_id": null})).await);
        let second = room.post("Und nun?").await;
        assert!(second.contains("admin: Und nun?"), "{second}");
        assert_eq!(room.translator.n_requests(), 1);
        room.app.close().await;
    }
}
