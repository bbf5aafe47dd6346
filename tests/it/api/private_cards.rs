//! Tests of private cards: only the owner and admins can read the whole card, unless the owner
//! shares it with members of the same space. Each field contains a unique word to search for.

use serde_json::{Value, json};

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::file_uploads::{fetch, import};
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::poll;
use crate::support::space_content::unpacked;
use crate::support::ws_client::WsClient;

/// Returns a card with a unique word in each field; words of the public part begin with `public`.
fn card() -> Value {
    json!({"spec": "chara_card_v3", "spec_version": "3.0", "data": {
        "name": "Ada",
        "description": "canary-description of {{char}}.",
        "personality": "canary-personality.",
        "scenario": "canary-scenario.",
        "first_mes": "public-greeting.",
        "alternate_greetings": ["public-alternate."],
        "mes_example": "<START>\n{{char}}: canary-example.",
        "creator_notes": "public-notes.",
        "system_prompt": "canary-system {{original}}",
        "post_history_instructions": "canary-post-history.",
        "nickname": "canary-nickname",
        "creator": "canary-creator",
        "character_version": "canary-version",
        "tags": ["public-tag"],
        "character_book": {"name": "canary-book", "entries": [
            {"name": "canary-entry", "comment": "canary-comment", "keys": ["canary-key"], "content": "canary-lore.",
                "enabled": true, "insertion_order": 10, "constant": true, "extensions": {}},
        ]},
        "assets": [{"type": "emotion", "uri": "https://canary-asset.example/x.png", "name": "canary-asset", "ext": "png"}],
        "extensions": {
            "depth_prompt": {"prompt": "{{setvar::kept::canary-variable}}canary-depth.", "depth": 1, "role": "system"},
            "made_up": "canary-extension",
        },
    }})
}

/// A space with Ada, whose card belongs to the owner, users of every role, and a run that has
/// ended.
struct Fixture {
    app: TestApp,
    admin: HttpClient,
    owner: HttpClient,
    moderator: HttpClient,
    member: HttpClient,
    guest: HttpClient,
    character: i64,
    space: i64,
    root: i64,
    run: String,
}

impl Fixture {
    async fn create(backend: TestBackend) -> Fixture {
        let (app, upstream) = (
            TestApp::start_with(backend, OPEN_REGISTRATION).await,
            FakeProvider::start().await,
        );
        let admin = app.admin().await;
        let model =
            json!({"name": "M", "base_url": upstream.base_url(), "model": "m", "is_default": true});
        expect(201, admin.post("/api/providers", model).await);
        let owner = app.register("owner").await;
        let rules = json!({"reply_order": "manual", "card_handling_mode": "append"});
        let space = owner.create_space("The inn", rules).await;
        let (id_of_space, root) = (id(&space), root_of(&space));
        let ada = expect(
            201,
            owner.post("/api/characters", json!({"card": card()})).await,
        );
        let membership = owner.add_character(&space, &ada).await;
        let note =
            json!({"settings": {"author_note": {"text": "Note: {{personality}}", "depth": 0}}});
        expect(
            200,
            owner
                .patch(&format!("/api/spaces/{id_of_space}"), note)
                .await,
        );
        let mut members = Vec::new();
        for (name, role) in [
            ("moderator", "moderator"),
            ("member", "member"),
            ("guest", "guest"),
        ] {
            let person = app.register(name).await;
            owner.add_member(id_of_space, &person, role).await;
            members.push(person);
        }
        expect(201, owner.post_message(root, "Good evening.", None).await);
        upstream.next(ResponseScript::say("Good evening to you."));
        let run =
            expect(202, owner.generate(root, Some(id(&membership))).await)["run"]["id"].clone();
        poll::until("the run has ended", async || {
            let runs = owner.runs(root).await;
            runs.iter()
                .any(|it| it["id"] == run && it["status"] == "succeeded")
                .then_some(())
        })
        .await;
        let [moderator, member, guest] = members.try_into().unwrap_or_else(|_| unreachable!());
        Fixture {
            app,
            admin,
            owner,
            moderator,
            member,
            guest,
            character: id(&ada),
            space: id_of_space,
            root,
            run: run.as_str().expect("the run has an id").to_owned(),
        }
    }

    fn character(&self) -> String {
        format!("/api/characters/{}", self.character)
    }

    /// Returns every response that may contain text of a card.
    async fn responses_for(&self, person: &HttpClient) -> Vec<(String, u16, String)> {
        let (space, root) = (self.space, self.root);
        let paths = [
            self.character(),
            format!("{}/export?format=json", self.character()),
            format!("{}/export?format=charx", self.character()),
            format!("/api/conversations/{root}/prompt"),
            format!("/api/runs/{}/prompt", self.run),
            format!("/api/runs/{}", self.run),
            format!("/api/conversations/{root}"),
            format!("/api/conversations/{root}/messages"),
            format!("/api/conversations/{root}/runs"),
            format!("/api/conversations/{root}/export?format=jsonl"),
            format!("/api/spaces/{space}"),
            format!("/api/spaces/{space}/memberships"),
            format!("/api/spaces/{space}/conversations"),
            "/api/search?q=canary".to_owned(),
        ];
        let mut answers = Vec::new();
        for path in paths {
            let (status, body) = person.get(&path).await;
            answers.push((path, status, body.to_string()));
        }
        let client = WsClient::subscribed(person, root).await;
        expect(
            201,
            self.owner.post_message(root, "Still here.", None).await,
        );
        client
            .wait_for("the message", |it| it.to_string().contains("Still here."))
            .await;
        answers.push(("/ws".to_owned(), 200, format!("{:?}", client.log())));
        answers
    }
}

/// Returns the texts of a prompt's blocks of one kind, and whether each is withheld.
fn blocks(prompt: &Value, kind: &str) -> Vec<(String, bool)> {
    let blocks = prompt["blocks"]
        .as_array()
        .expect("the prompt has blocks")
        .iter();
    let of_kind = blocks.filter(|it| it["kind"] == kind);
    of_kind
        .map(|it| {
            (
                it["text"].as_str().unwrap().to_owned(),
                it["withheld"] == true,
            )
        })
        .collect()
}

on_sqlite! {
    async fn no_field_of_a_card_that_is_not_shared_reaches_another_person(backend) {
        let fixture = Fixture::create(backend).await;

        for (who, person) in [("guest", &fixture.guest), ("member", &fixture.member), ("moderator", &fixture.moderator)] {
            for (path, status, body) in fixture.responses_for(person).await {
                assert!(!body.contains("canary"), "{who} reads a field in {path} ({status}): {body}");
            }
        }

        let shown = expect(200, fixture.guest.get(&fixture.character()).await);
        let public = json!({"name": "Ada", "creator_notes": "public-notes.", "tags": ["public-tag"], "greetings": ["public-greeting.", "public-alternate."]});
        assert_eq!((&shown["card"], &shown["public_card"], &shown["share_whole_card"]), (&Value::Null, &public, &json!(false)));
        let export = fixture.moderator.get(&format!("{}/export", fixture.character())).await;
        assert_eq!(refusal(&export), (403, "card_not_shared".to_owned()));
        fixture.app.close().await;
    }

    async fn withheld_blocks_keep_their_label_and_tokens(backend) {
        let fixture = Fixture::create(backend).await;
        let preview = format!("/api/conversations/{}/prompt", fixture.root);
        let stored = format!("/api/runs/{}/prompt", fixture.run);

        for path in [preview, stored] {
            let complete = expect(200, fixture.owner.get(&path).await);
            let partial = expect(200, fixture.member.get(&path).await);

            assert!(
                complete["blocks"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|it| it["withheld"] == false)
            );
            for (kind, text) in [("description", "canary-description"), ("personality", "canary-personality"), ("lore", "canary-lore"), ("depth_prompt", "canary-depth"), ("author_note", "canary-personality"), ("example", "canary-example")] {
                assert!(blocks(&complete, kind).iter().any(|(it, _)| it.contains(text)), "{kind}: {complete}");
                assert!(blocks(&partial, kind).iter().all(|it| *it == (String::new(), true)), "{kind}: {partial}");
            }
            assert_eq!(blocks(&partial, "history"), blocks(&complete, "history"));
            let figures = |it: &Value| {
                let blocks = it["blocks"].as_array().unwrap().iter();
                let figures = blocks.map(|it| json!([it["kind"], it["role"], it["tokens"], it["dropped"]]));
                (figures.collect::<Vec<_>>(), it["total_tokens"].clone())
            };
            assert_eq!(figures(&partial), figures(&complete));
            assert_eq!(expect(200, fixture.admin.get(&path).await)["blocks"], complete["blocks"]);
        }
        fixture.app.close().await;
    }

    async fn text_of_a_private_card_is_not_expanded_for_others(backend) {
        let fixture = Fixture::create(backend).await;
        let expand = async |person: &HttpClient, text: &str| {
            let preset = expect(201, person.post("/api/presets", json!({"name": "Mine"})).await);
            let body = json!({"text": text, "conversation_id": fixture.root});
            person.post(&format!("/api/presets/{}/expand", id(&preset)), body).await
        };

        let whole = expect(200, expand(&fixture.owner, "{{description}}").await);
        assert!(whole["text"].as_str().unwrap().contains("canary-description"), "{whole}");
        for text in ["{{description}}", "{{greeting}}", "{{if scenario}}x{{/if}}", "{{getvar::kept}}"] {
            let refused = expand(&fixture.member, text).await;
            assert_eq!(refusal(&refused), (403, "card_not_shared".to_owned()), "{text}");
        }
        let plain = expect(200, expand(&fixture.member, "{{lastUserMessage}}").await);
        assert_eq!(plain["text"], "Good evening.");
        fixture.app.close().await;
    }

    async fn a_shared_card_is_readable_by_members_of_its_spaces(backend) {
        let fixture = Fixture::create(backend).await;
        let share = |yes: bool| json!({"share_whole_card": yes});
        let complete = expect(200, fixture.owner.get(&fixture.character()).await)["card"].clone();
        assert_eq!(
            refusal(
                &fixture
                    .moderator
                    .patch(&fixture.character(), share(true))
                    .await
            )
            .0,
            403
        );
        assert_eq!(refusal(&fixture.owner.patch(&fixture.character(), json!({"share_whole_card": 1})).await), (400, "invalid_type".to_owned()));

        let shared = expect(200, fixture.owner.patch(&fixture.character(), share(true)).await);

        assert_eq!((&shared["share_whole_card"], &shared["card"]), (&json!(true), &complete));
        let read = expect(200, fixture.guest.get(&fixture.character()).await);
        assert_eq!(read["card"], complete);
        assert_eq!(fixture.member.get(&format!("{}/export", fixture.character())).await.0, 200);
        let prompt = expect(200, fixture.member.get(&format!("/api/runs/{}/prompt", fixture.run)).await);
        assert!(blocks(&prompt, "description")[0].0.contains("canary-description"));
        assert_eq!(fixture.app.register("stranger").await.get(&fixture.character()).await.0, 404);
        expect(200, fixture.owner.patch(&fixture.character(), share(false)).await);
        assert_eq!(expect(200, fixture.guest.get(&fixture.character()).await)["card"], Value::Null);
        fixture.app.close().await;
    }

    async fn a_space_file_holds_only_the_public_part_of_a_card_that_is_not_shared(backend) {
        let fixture = Fixture::create(backend).await;
        let path = format!("/api/spaces/{}/export", fixture.space);
        let text = |file: &[u8]| -> String {
            unpacked(file).values().map(|it| String::from_utf8_lossy(it).into_owned()).collect()
        };

        let complete = fetch(&fixture.owner, &path).await;
        let partial = fetch(&fixture.moderator, &path).await;

        assert!(text(&complete).contains("canary-description"));
        let partial_text = text(&partial);
        assert!(!partial_text.contains("canary"), "{partial_text}");
        assert!(partial_text.contains("public-greeting") && partial_text.contains("public-notes"));
        let done = import(&fixture.moderator, "/api/spaces/import", "inn.zip", &partial).await;
        assert_eq!(done["status"], "succeeded", "{done}");
        fixture.app.close().await;
    }
}
