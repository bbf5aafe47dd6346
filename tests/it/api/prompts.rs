//! Tests the prompts that runs sent for a group of three characters with lorebooks, an author's
//! note and a preset, in the three card modes.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::poll;

const MODES: [&str; 3] = ["swap", "append", "append_disabled"];

fn depth_prompt(text: &str, depth: i64, role: &str) -> Value {
    json!({"prompt": text, "depth": depth, "role": role})
}

fn entry(name: &str, keys: &[&str], content: &str, extensions: Value) -> Value {
    json!({
        "name": name, "keys": keys, "content": content, "enabled": true, "insertion_order": 10,
        "constant": keys.is_empty(), "extensions": extensions,
    })
}

/// Returns the cards of Ada, Cid and Dot; two of them contain a lorebook.
fn cards() -> [Value; 3] {
    let of_ada = [
        entry(
            "Engine",
            &["engine"],
            "The engine weighs fifteen tons.",
            json!({"position": 0}),
        ),
        entry("Silence", &["never said"], "Nobody reads this.", json!({})),
        entry(
            "Rain",
            &["london"],
            "It rains on {{char}}.",
            json!({"position": 1}),
        ),
        entry(
            "Clock",
            &[],
            "A clock strikes.",
            json!({"position": 4, "depth": 2, "role": 0}),
        ),
        entry(
            "Bottom",
            &["engine"],
            "Below the note.",
            json!({"position": 3}),
        ),
        entry(
            "Once more",
            &[],
            "She has said it before.",
            json!({"position": 1, "triggers": ["regenerate"]}),
        ),
        entry(
            "First try",
            &[],
            "She says it for the first time.",
            json!({"position": 1, "triggers": ["normal"]}),
        ),
    ];
    let of_cid = [entry("Maker", &["engine"], "{{char}} made it.", json!({}))];
    [
        json!({
            "name": "Ada",
            "first_mes": "Good day.",
            "description": "{{char}} is a mathematician. She knows {{user}}.",
            "personality": "calm, exact",
            "scenario": "A library in London.",
            "mes_example": "<START>\n{{user}}: Why?\n{{char}}: Because {{noop}}it is so.",
            "system_prompt": "{{original}} {{char}} speaks in full sentences.",
            "post_history_instructions": "Stay {{char}}.",
            "character_book": {"name": "Ada's book", "entries": of_ada},
            "extensions": {"depth_prompt": depth_prompt("{{char}} holds a pen.", 1, "system")},
        }),
        json!({
            "name": "Cid",
            "description": "{{char}} builds engines.",
            "personality": "loud",
            "scenario": "A workshop.",
            "mes_example": "{{char}}: Steam!",
            "character_book": {"name": "Cid's book", "entries": of_cid},
            "extensions": {"depth_prompt": depth_prompt("{{char}} smells of oil.", 2, "user")},
        }),
        json!({"name": "Dot", "description": "{{char}} is a cat.", "personality": "asleep"}),
    ]
}

/// Returns a preset with an in-chat prompt and a prompt for regenerated messages.
fn preset() -> Value {
    let slot = |name: &str| json!({"id": name, "slot": name, "place": "relative"});
    let order = [
        json!({"id": "main", "slot": "main", "text": "Write what {{char}} says next.", "place": "relative"}),
        slot("lore_before"),
        slot("persona"),
        slot("description"),
        slot("personality"),
        slot("scenario"),
        slot("lore_after"),
        slot("examples"),
        slot("history"),
        slot("post_history"),
        json!({"id": "ooc", "label": "Out of character", "role": "user", "text": "(One paragraph, please.)",
            "place": {"in_chat": {"depth": 0, "order": 5}}}),
        json!({"id": "anew", "label": "Written anew", "text": "Say it in another way.", "place": "relative",
            "triggers": ["regenerate"]}),
    ];
    json!({"name": "Exact", "document": {"temperature": 0.8, "prompt_order": order}})
}

/// A space in this card mode with three characters, of which Dot is muted, and some messages.
struct GroupOfThree<'a> {
    bob: &'a HttpClient,
    upstream: &'a FakeProvider,
    /// The path of the space.
    space: String,
    conversation: i64,
    own_membership: i64,
    memberships: [i64; 3],
}

impl<'a> GroupOfThree<'a> {
    async fn create(
        bob: &'a HttpClient,
        upstream: &'a FakeProvider,
        mode: &str,
        preset: i64,
    ) -> GroupOfThree<'a> {
        let rules = json!({"reply_order": "manual", "card_handling_mode": mode});
        let space = bob.create_space("Analytical", rules).await;
        let settings = json!({
            "preset": {"preset_id": preset},
            "join_prefix": "[<FIELDNAME> of {{char}}: ",
            "join_suffix": "]",
            "author_note": {"text": "Keep it short, {{char}}.", "depth": 1},
        });
        let at = format!("/api/spaces/{}", id(&space));
        expect(200, bob.patch(&at, json!({"settings": settings})).await);
        let roster = expect(200, bob.get(&format!("{at}/memberships")).await);
        let mut memberships = Vec::new();
        for card in cards() {
            let card = expect(201, bob.post("/api/characters", card).await);
            memberships.push(id(&bob.add_character(&space, &card).await));
        }
        let muted = json!({"participation": "muted"});
        expect(
            200,
            bob.patch(&format!("/api/memberships/{}", memberships[2]), muted)
                .await,
        );
        let group = GroupOfThree {
            bob,
            upstream,
            space: at,
            conversation: root_of(&space),
            own_membership: id(&roster["data"][0]),
            memberships: memberships.try_into().expect("three characters were added"),
        };
        group.post("How is London?").await;
        group.reply(1, "Loud. {{char}} likes it.").await;
        group.post("And the engine?").await;
        group
    }

    async fn post(&self, text: &str) {
        expect(
            201,
            self.bob.post_message(self.conversation, text, None).await,
        );
    }

    /// Triggers a reply of one character; returns the run.
    async fn reply(&self, nth: usize, text: &str) -> Value {
        self.upstream.next(ResponseScript::say(text));
        let requested = self
            .bob
            .generate(self.conversation, Some(self.memberships[nth]))
            .await;
        self.wait_until_succeeded(&expect(202, requested)["run"])
            .await
    }

    async fn wait_until_succeeded(&self, run: &Value) -> Value {
        let path = format!("/api/conversations/{}/runs", self.conversation);
        poll::until("the run has succeeded", async || {
            let runs = expect(200, self.bob.get(&path).await);
            let mut runs = runs["data"].as_array().unwrap().iter();
            let found = runs.find(|it| it["id"] == run["id"]).cloned()?;
            (found["status"] == "succeeded").then_some(found)
        })
        .await
    }

    /// Returns the prompt of a run as text; asserts that the provider received the same prompt.
    async fn sent_by(&self, run: &Value, nth: usize) -> String {
        let path = format!("/api/runs/{}/prompt", run["id"].as_str().unwrap());
        let sent = expect(200, self.bob.get(&path).await);
        let requested = self.upstream.body(nth);
        let requested = requested["messages"]
            .as_array()
            .expect("the document has messages")
            .iter();
        let stored = sent["messages"]
            .as_array()
            .expect("the document has messages")
            .iter();
        assert_eq!(requested.len(), stored.len());
        for (requested, stored) in requested.zip(stored) {
            let received = requested["content"].as_str().expect("the content is text");
            // For an API without message names, the text begins with the name.
            let name = stored["name"].as_str().map(|it| format!("{it}: "));
            let received = received.strip_prefix(name.as_deref().unwrap_or_default());
            assert_eq!(
                (received, &requested["role"]),
                (stored["content"].as_str(), &stored["role"])
            );
        }
        shown(&sent)
    }
}

fn shown(sent: &Value) -> String {
    let text = |it: &Value, field: &str| it[field].as_str().unwrap_or_default().to_owned();
    let mut out = String::new();
    for it in sent["messages"]
        .as_array()
        .expect("the document has messages")
    {
        let name = match it["name"].as_str() {
            Some(name) => format!(" {name}"),
            None => String::new(),
        };
        out += &format!("--- {}{name}\n{}\n", text(it, "role"), text(it, "content"));
    }
    out += &format!("=== {} of {}\n", sent["total_tokens"], sent["limit_tokens"]);
    for it in sent["lore"].as_array().expect("the document has lore") {
        let (name, book, because) = (text(it, "name"), text(it, "book"), text(it, "because"));
        out += &format!("{name} ({book}): {because}\n");
    }
    out
}

on_sqlite! {
    async fn the_prompts_of_a_group_of_three_are_as_they_were(backend) {
        for mode in MODES {
            let (app, upstream) = (TestApp::start(backend).await, FakeProvider::start().await);
            let bob = HttpClient::set_up(&app.base, "Bob").await;
            let model = json!({"name": "M", "base_url": upstream.base_url(), "model": "m", "is_default": true});
            expect(201, bob.post("/api/providers", model).await);
            let preset = id(&expect(201, bob.post("/api/presets", preset()).await));
            let group = GroupOfThree::create(&bob, &upstream, mode, preset).await;
            let run = group.reply(0, "Fifteen tons, says Cid.").await;
            let normal = group.sent_by(&run, 1).await;
            insta::assert_snapshot!(format!("normal_{mode}"), normal);

            upstream.next(ResponseScript::say("It is heavy."));
            let regenerate_path = format!("/api/conversations/{}/regenerate", group.conversation);
            let run = group
                .wait_until_succeeded(
                    &expect(202, bob.post(&regenerate_path, json!({})).await)["run"],
                )
                .await;
            let regenerate = group.sent_by(&run, 2).await;
            assert!(!regenerate.contains("Fifteen tons, says Cid."), "the prompt contains the replaced text");
            assert!(regenerate.contains("Say it in another way.") && !normal.contains("Say it in another way."));
            assert!(regenerate.contains("She has said it before.") && !normal.contains("She has said it before."));
            assert!(normal.contains("She says it for the first time.") && !regenerate.contains("She says it for the first time."));
            assert!(regenerate.contains("only as Ada"), "the group nudge is missing: {regenerate}");
            insta::assert_snapshot!(format!("regenerate_{mode}"), regenerate);

            upstream.next(ResponseScript::say("I see."));
            // The replies that follow the copilot's message do not matter here.
            expect(200, bob.patch(&group.space, json!({"reply_order": "list"})).await);
            let membership = format!("/api/memberships/{}", group.own_membership);
            let copilot = json!({"copilot_mode": "full", "copilot_remaining_steps": 1, "copilot_conversation_id": group.conversation});
            expect(200, bob.patch(&membership, copilot).await);
            let run = poll::until("the copilot run has succeeded", async || {
                let runs = bob.runs(group.conversation).await;
                let mut runs = runs.into_iter();
                runs.find(|it| it["speaker_space_membership_id"] == group.own_membership && it["status"] == "succeeded")
            }).await;
            insta::assert_snapshot!(format!("copilot_{mode}"), group.sent_by(&run, 3).await);
            app.close().await;
        }
    }
}
