//! Tests of presets: the user's library, who can read them, and their effect on requests to models.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::file_uploads::bring;
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::http_response::refusal;
use crate::support::role_fixture::RoleFixture;
use crate::support::test_space::TestSpace;

async fn make(person: &HttpClient, name: &str, document: Value) -> Value {
    let body = json!({"name": name, "document": document});
    expect(201, person.post("/api/presets", body).await)
}

fn path_of(preset: &Value) -> String {
    format!("/api/presets/{}", id(preset))
}

/// Returns the memberships of a space in order.
async fn memberships(person: &HttpClient, space: &Value) -> Vec<Value> {
    let path = format!("/api/spaces/{}/memberships", id(space));
    let roster = expect(200, person.get(&path).await);
    roster["data"].as_array().unwrap().clone()
}

async fn set_member_preset(
    person: &HttpClient,
    membership: &Value,
    preset: &Value,
) -> (u16, Value) {
    let path = format!("/api/memberships/{}", id(membership));
    person.patch(&path, json!({"preset_id": preset})).await
}

async fn set_space_preset(person: &HttpClient, space: &Value, preset: Value) -> (u16, Value) {
    let path = format!("/api/spaces/{}", id(space));
    let settings = json!({"settings": {"preset": preset}});
    person.patch(&path, settings).await
}

on_sqlite! {
    async fn a_preset_can_be_created_changed_and_deleted(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let deep = json!({"id": "rain", "place": {"in_chat": {"depth": 2, "order": 50}}, "triggers": ["swipe"]});
        let order = json!([{"id": "main", "slot": "main", "text": "Be brief.", "place": "relative"}, deep]);
        let document = json!({"temperature": 0.7, "prompt_order": order, "of_another_tool": [1]});

        let made = make(&admin, " Calm ", document.clone()).await;
        assert_eq!((&made["name"], &made["document"]), (&json!("Calm"), &document));
        let list = expect(200, admin.get("/api/presets").await);
        assert_eq!(list["data"][0]["name"], "Calm");
        assert!(list["data"][0].get("document").is_none(), "the list contains documents");

        let changed = expect(200, admin.patch(&path_of(&made), json!({"name": "Loud"})).await);
        assert_eq!((&changed["name"], &changed["document"]), (&json!("Loud"), &document));
        expect(200, admin.patch(&path_of(&made), json!({"document": {"top_p": 0.5}})).await);
        let read = expect(200, admin.get(&path_of(&made)).await);
        assert_eq!((&read["name"], &read["document"]), (&json!("Loud"), &json!({"top_p": 0.5})));

        assert_eq!(admin.delete(&path_of(&made)).await.0, 204);
        assert_eq!(admin.get(&path_of(&made)).await.0, 404);
        let list = expect(200, admin.get("/api/presets").await);
        assert_eq!(list["data"], json!([]));
        app.close().await;
    }

    async fn a_preset_is_readable_by_its_owner_and_members_of_spaces_that_use_it(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let ada = users.moderator.create_character("Ada", None).await;
        let ada = users.moderator.add_character(&users.document, &ada).await;
        let by_membership = make(&users.moderator, "Of the seat", json!({})).await;
        let by_space = make(&users.moderator, "Of the space", json!({})).await;
        let statuses = async |preset: &Value| {
            let mut statuses = Vec::new();
            for (_, person) in users.all_roles() {
                statuses.push(person.get(&path_of(preset)).await.0);
            }
            statuses
        };
        // In the order: outsider, guest, member, moderator, owner, admin.
        let own = [404, 404, 404, 200, 404, 200];
        let shared = [404, 200, 200, 200, 200, 200];

        assert_eq!((statuses(&by_membership).await, statuses(&by_space).await), (own.to_vec(), own.to_vec()));
        expect(200, set_member_preset(&users.moderator, &ada, &by_membership["id"]).await);
        expect(200, set_space_preset(&users.moderator, &users.document, json!({"preset_id": by_space["id"]})).await);
        assert_eq!((statuses(&by_membership).await, statuses(&by_space).await), (shared.to_vec(), shared.to_vec()));
        for ((who, person), status) in users.all_roles().into_iter().zip([404, 403, 403, 200, 403, 200]) {
            let changed = person.patch(&path_of(&by_membership), json!({"document": {}})).await;
            assert_eq!(changed.0, status, "{who} changes: {}", changed.1);
        }

        expect(200, set_member_preset(&users.moderator, &ada, &Value::Null).await);
        expect(200, set_space_preset(&users.moderator, &users.document, json!({})).await);
        assert_eq!((statuses(&by_membership).await, statuses(&by_space).await), (own.to_vec(), own.to_vec()));
        users.app.close().await;
    }

    async fn a_preset_that_a_user_may_not_read_cannot_be_used(backend) {
        let (users, _) = RoleFixture::create(backend).await;
        let mine = make(&users.owner, "Mine", json!({})).await;
        let theirs = make(&users.outsider, "Theirs", json!({})).await;
        let membership = memberships(&users.owner, &users.document).await.remove(0);

        for hidden in [theirs["id"].clone(), json!(424_242)] {
            let refused = set_member_preset(&users.owner, &membership, &hidden).await;
            assert_eq!(refusal(&refused), (422, "invalid_value".to_owned()));
            assert_eq!(refused.1["error"]["param"], "preset_id");
            let refused =
                set_space_preset(&users.owner, &users.document, json!({"preset_id": hidden})).await;
            assert_eq!(refusal(&refused), (422, "invalid_value".to_owned()));
            assert_eq!(refused.1["error"]["param"], "settings.preset.preset_id");
            let body = json!({"name": "New", "settings": {"preset": {"preset_id": hidden}}});
            assert_eq!(users.owner.post("/api/spaces", body).await.0, 422);
        }
        let taken = expect(200, set_member_preset(&users.owner, &membership, &mine["id"]).await);
        assert_eq!(taken["preset_id"], mine["id"]);
        let member = set_member_preset(&users.member, &membership, &mine["id"]).await;
        assert_eq!(member.0, 403);
        users.app.close().await;
    }

    async fn an_imported_preset_is_exported_without_loss(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let file = include_bytes!("../../fixtures/presets/modern.json");

        let imported = bring(&admin, "/api/presets/import", "Small theatre.json", file).await;

        let imported = expect(201, imported);
        assert_eq!(imported["preset"]["name"], "Small theatre");
        assert_eq!(imported["preset"]["document"]["prompt_order"][7]["id"], "7c1f-rain");
        let warnings = imported["warnings"].to_string();
        for words in ["passwords", "1 regex scripts"] {
            assert!(warnings.contains(words), "{warnings}");
        }
        let n_coded = imported["warnings_coded"].as_array().map(Vec::len);
        assert_eq!(n_coded, imported["warnings"].as_array().map(Vec::len));
        let path = format!("{}/export", path_of(&imported["preset"]));
        let exported = expect(200, admin.get(&path).await);
        assert_eq!(exported["extensions"]["made_up"], json!({"deep": [1, null, "x"]}));
        assert_eq!(exported["openai_max_context"], 16_384);
        let again = serde_json::to_vec(&exported).unwrap();
        let again = expect(201, bring(&admin, "/api/presets/import", "Again.json", &again).await);
        assert_eq!(again["preset"]["document"], imported["preset"]["document"]);
        let exported_again = expect(200, admin.get(&format!("{}/export", path_of(&again["preset"]))).await);
        assert_eq!(exported_again, exported);
        app.close().await;
    }

    async fn the_preview_of_a_preset_lists_its_scripts_and_stores_nothing(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let script = json!({
            "scriptName": "Loud", "findRegex": "/rain/g", "replaceString": "storm", "placement": [1, 2],
            "promptOnly": true,
        });
        let broken = json!({"scriptName": "Open", "findRegex": "/(/", "replaceString": "", "placement": [2]});
        let file = json!({
            "prompts": [{"identifier": "main", "content": "Tell a story."}],
            "extensions": {"regex_scripts": [script, broken]},
        });
        let file = file.to_string();

        let shown = bring(&admin, "/api/presets/preview", "Sea.json", file.as_bytes()).await;

        let shown = expect(200, shown);
        assert_eq!(shown["name"], "Sea");
        let scripts = shown["scripts"].as_array().expect("a list of scripts");
        assert_eq!(scripts.len(), 2, "{shown}");
        assert_eq!((&scripts[0]["name"], &scripts[0]["find_regex"]), (&json!("Loud"), &json!("/rain/g")));
        assert_eq!((&scripts[0]["replace_string"], &scripts[0]["error"]), (&json!("storm"), &Value::Null));
        assert!(scripts[1]["error"]["message"].is_string(), "{shown}");
        let list = expect(200, admin.get("/api/presets").await);
        assert_eq!(list["data"], json!([]));
        let made = expect(201, bring(&admin, "/api/presets/import", "Sea.json", file.as_bytes()).await);
        for field in ["warnings", "warnings_coded"] {
            assert_eq!(shown[field], made[field]);
        }
        assert_eq!(shown["document"], made["preset"]["document"]);
        assert_eq!(shown["scripts"], made["preset"]["regex_scripts"]);
        app.close().await;
    }

    async fn a_file_that_is_not_a_preset_stores_nothing(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;

        for (name, bytes, status, code) in [
            ("world.json", br#"{"entries": {}}"#.to_vec(), 422, "not_a_preset"),
            ("text.json", b"no json".to_vec(), 422, "not_a_preset"),
            ("empty.json", Vec::new(), 422, "not_a_preset"),
            ("mode.json", br#"{"spec": "troupe_preset", "document": {"mode": "both"}}"#.to_vec(), 422, "not_a_preset"),
            ("large.json", vec![b' '; 5 * 1024 * 1024 + 1], 413, "too_large"),
        ] {
            for path in ["/api/presets/preview", "/api/presets/import"] {
                let refused = bring(&admin, path, name, &bytes).await;
                assert_eq!(refusal(&refused), (status, code.to_owned()), "{path} {name}");
            }
        }

        let list = expect(200, admin.get("/api/presets").await);
        assert_eq!(list["data"], json!([]));
        app.close().await;
    }

    async fn a_text_is_expanded_with_the_values_of_a_conversation_and_nothing_is_stored(backend) {
        let test_space = TestSpace::open(backend, json!({}), &["Ada"]).await;
        let ann = &test_space.person;
        let preset = make(ann, "Calm", json!({"context_tokens": 4000, "max_tokens": 300})).await;
        let path = format!("{}/expand", path_of(&preset));
        test_space.post("Hello.").await;
        test_space.settle().await;
        let text = "{{char}}|{{lastUserMessage}}|{{maxPrompt}}|{{incvar::n}}|{{calc::1}}{{if 1}}x{{/if}}";
        let body = json!({"text": text, "conversation_id": test_space.conversation});

        for _ in 0..2 {
            let expanded = expect(200, ann.post(&path, body.clone()).await);
            assert_eq!(expanded["text"], "Ada|Hello.|3700|1|{{calc::1}}x");
            assert_eq!(expanded["unknown"], json!(["calc"]));
        }
        let endless = "{{reverse::".repeat(65) + &"}}".repeat(65);
        let refused = ann.post(&path, json!({"text": endless})).await;
        assert_eq!(refusal(&refused), (422, "invalid_macro".to_owned()));
        let alone = expect(200, ann.post(&path, json!({"text": "{{char}}{{description}}{{.n++}}"})).await);
        assert_eq!(alone["text"], "Character1");
        let no_conversation = ann.post(&path, json!({"text": "", "speaker_id": 1})).await;
        assert_eq!(refusal(&no_conversation), (422, "invalid_value".to_owned()));
        let unknown = json!({"text": "", "conversation_id": 424_242});
        assert_eq!(ann.post(&path, unknown).await.0, 404);
    }

    async fn the_most_specific_preset_that_sets_a_sampler_decides_what_is_sent(backend) {
        let test_space = TestSpace::open(backend, json!({}), &["Ada"]).await;
        let ann = &test_space.person;
        let space_preset = make(ann, "Space", json!({"temperature": 0.1, "top_p": 0.1, "top_k": 11, "min_p": 0.1, "stop": ["END"]})).await;
        let member_preset = make(ann, "Seat", json!({"top_k": 33, "min_p": 0.3, "repetition_penalty": 1})).await;
        expect(200, set_space_preset(ann, &test_space.space, json!({"preset_id": space_preset["id"], "top_p": 0.2})).await);
        let ada = memberships(ann, &test_space.space).await.remove(1);
        expect(200, set_member_preset(ann, &ada, &member_preset["id"]).await);
        let path = format!("/api/memberships/{}", id(&ada));
        expect(200, ann.patch(&path, json!({"settings": {"preset": {"min_p": 0.4, "max_tokens": 77}}})).await);

        test_space.post("Hello.").await;
        test_space.settle().await;

        let body = test_space.upstream.body(0);
        let sent = ["temperature", "top_p", "top_k", "min_p", "max_tokens", "repetition_penalty"].map(|it| body[it].clone());
        assert_eq!(json!(sent), json!([0.1, 0.2, 33, 0.4, 77, null]));
        assert!(body["stop"].as_array().unwrap().contains(&json!("END")), "{body}");
    }

    async fn a_deleted_preset_still_applies_where_it_is_used(backend) {
        let test_space = TestSpace::open(backend, json!({}), &["Ada"]).await;
        let ann = &test_space.person;
        let order = json!({"prompt_order": [{"id": "main", "slot": "main", "text": "Speak in verse."}, {"id": "h", "slot": "history"}]});
        let verse = make(ann, "Verse", order).await;
        let ada = memberships(ann, &test_space.space).await.remove(1);
        expect(200, set_member_preset(ann, &ada, &verse["id"]).await);

        assert_eq!(ann.delete(&path_of(&verse)).await.0, 204);
        test_space.post("Hello.").await;
        test_space.settle().await;

        assert!(test_space.upstream.body(0)["messages"][0]["content"].as_str().unwrap().starts_with("Speak in verse."));
        let read = expect(200, ann.get(&path_of(&verse)).await);
        assert_eq!(read["status"], "deleted");
        assert_eq!(ann.patch(&path_of(&verse), json!({"name": "Prose"})).await.0, 404);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_preset_is_rejected_with_the_field_named_and_not_stored() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let entry = |more: Value| json!({"prompt_order": [{"id": "a"}, more]});
    let cases = [
        (json!({"temperature": "hot"}), 400, "document.temperature"),
        (json!({"temperature": 6}), 422, "document.temperature"),
        (json!({"preset_id": 1}), 422, "document.preset_id"),
        (json!({"prompt_order": {}}), 400, "document.prompt_order"),
        (
            entry(json!({"id": "b", "place": "nowhere"})),
            422,
            "document.prompt_order.1.place",
        ),
        (entry(json!({"id": "a"})), 422, "document.prompt_order.1.id"),
        (json!({"unheard_of": "x".repeat(600_000)}), 422, "document"),
    ];

    for (document, status, param) in cases {
        let body = json!({"name": "Odd", "document": document});
        let refused = admin.post("/api/presets", body).await;
        assert_eq!(refused.0, status, "{}", refused.1);
        assert_eq!(refused.1["error"]["param"], param);
    }
    for body in [
        json!({}),
        json!({"name": " "}),
        json!({"name": "A", "doc": {}}),
    ] {
        let refused = admin.post("/api/presets", body).await.0;
        assert!([400, 422].contains(&refused), "{refused}");
    }
    let list = expect(200, admin.get("/api/presets").await);
    assert_eq!(list["data"], json!([]));
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preset_can_be_exported_in_either_format() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let order = json!([{"id": "main", "slot": "main", "text": "Be brief."}]);
    let made = make(
        &admin,
        "Calm",
        json!({"max_tokens": 99, "prompt_order": order}),
    )
    .await;
    let path = format!("{}/export", path_of(&made));

    let theirs = expect(200, admin.get(&path).await);
    assert_eq!(theirs["openai_max_tokens"], 99);
    assert_eq!(theirs["prompts"][0]["content"], "Be brief.");
    assert_eq!(theirs["prompt_order"][0]["character_id"], 100_001);
    let ours = expect(200, admin.get(&format!("{path}?format=troupe")).await);
    assert_eq!(ours["document"]["prompt_order"], order);
    assert_eq!(admin.get(&format!("{path}?format=yaml")).await.0, 400);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_default_document_can_be_stored_as_a_preset() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;

    let defaults = expect(200, admin.get("/api/presets/defaults").await);
    let made = make(&admin, "Usual", defaults.clone()).await;

    assert_eq!(made["document"], defaults);
    let ids = defaults["prompt_order"].as_array().unwrap().iter();
    let ids: Vec<_> = ids.map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids.first(), Some(&"main"));
    assert_eq!(ids.last(), Some(&"jailbreak"));
    app.close().await;
}
