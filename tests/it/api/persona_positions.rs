//! Tests of the titles of personas and the positions of their descriptions: limits, files, and prompts.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::on_both;
use crate::support::file_uploads::{bring, fetch};
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::test_space::TestSpace;

async fn create(person: &HttpClient, body: Value) -> Value {
    expect(201, person.post("/api/personas", body).await)
}

fn path_of(persona: &Value) -> String {
    format!("/api/personas/{}", id(persona))
}

/// Returns the fields of a persona that its files keep.
fn kept(persona: &Value) -> Value {
    let fields = ["name", "title", "description", "position", "depth", "role"];
    fields.iter().map(|it| persona[*it].clone()).collect()
}

/// Returns the role, the text and the position in the list of each persona of a prompt of this speaker.
async fn personas_of_prompt(at: &TestSpace, speaker: i64) -> Vec<(String, String, usize)> {
    let path = format!(
        "/api/conversations/{}/prompt?speaker_id={speaker}",
        at.conversation
    );
    let prompt = expect(200, at.person.get(&path).await);
    let blocks = prompt["blocks"].as_array().expect("blocks").iter();
    let text = |it: &Value| it.as_str().expect("a text").to_owned();
    let personas = blocks.enumerate().filter(|it| it.1["kind"] == "persona");
    personas
        .map(|(n, it)| (text(&it["role"]), text(&it["text"]), n))
        .collect()
}

on_both! {
    async fn a_persona_has_a_title_and_the_position_of_its_description(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;

        let usual = create(&ann, json!({"name": "Cara"})).await;
        let placed = json!({
            "name": "Dora", "title": " Seafarer ", "description": "Tall.",
            "position": "at_depth", "depth": 10_000, "role": "assistant",
        });
        let placed = create(&ann, placed).await;

        assert_eq!(kept(&usual), json!(["Cara", "", "", "in_prompt", 2, "system"]));
        let expected = json!(["Dora", "Seafarer", "Tall.", "at_depth", 10_000, "assistant"]);
        assert_eq!(kept(&placed), expected);
        assert_eq!(kept(&expect(200, ann.get(&path_of(&placed)).await)), expected);
        let change = json!({"title": "", "position": "none", "depth": 0, "role": "user"});
        expect(200, ann.patch(&path_of(&placed), change).await);
        let expected = json!(["Dora", "", "Tall.", "none", 0, "user"]);
        assert_eq!(kept(&expect(200, ann.get(&path_of(&placed)).await)), expected);
        for (field, value) in [
            ("title", json!("x".repeat(101))),
            ("title", json!("a\nb")),
            ("title", json!(null)),
            ("position", json!("after_char")),
            ("position", json!(4)),
            ("depth", json!(-1)),
            ("depth", json!(10_001)),
            ("depth", json!(1.5)),
            ("role", json!("admin")),
            ("role", json!(null)),
        ] {
            let created = ann.post("/api/personas", json!({"name": "Eve", field: value})).await;
            let changed = ann.patch(&path_of(&placed), json!({field: value})).await;
            for refused in [created, changed] {
                assert!(matches!(refused.0, 400 | 422), "{field}: {value}");
                assert_eq!(refused.1["error"]["param"], field, "{value}");
            }
        }
        assert_eq!(kept(&expect(200, ann.get(&path_of(&placed)).await)), expected);
        app.close().await;
    }

    async fn a_backup_keeps_titles_and_positions(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let backup = json!({
            "personas": {"a.png": "Cara", "b.png": "Dora", "c.png": "Eve"},
            "persona_descriptions": {
                "a.png": {"description": "Tall.", "position": 4, "depth": 7, "role": 1, "title": "Seafarer"},
                "b.png": {"description": "Calm.", "position": 9},
                "c.png": {"description": "Old.", "position": 2},
            },
        });

        let file = backup.to_string();
        let imported = expect(201, bring(&ann, "/api/personas/import", "p.json", file.as_bytes()).await);
        let exported = fetch(&ann, "/api/personas/export").await;
        let written: Value = serde_json::from_slice(&exported).expect("a backup");
        let before = expect(200, ann.get("/api/personas").await)["data"].clone();
        for persona in before.as_array().expect("personas") {
            assert_eq!(ann.delete(&path_of(persona)).await.0, 204);
        }
        expect(201, bring(&ann, "/api/personas/import", "p.json", &exported).await);
        let after = expect(200, ann.get("/api/personas").await)["data"].clone();

        assert_eq!(imported["warnings_coded"], json!([]));
        let first = &written["persona_descriptions"]["persona-1.png"];
        let expected = json!({
            "description": "Tall.", "position": 4, "depth": 7, "role": 1, "lorebook": "", "title": "Seafarer",
        });
        assert_eq!(first, &expected);
        let all = |it: &Value| it.as_array().expect("personas").iter().map(kept).collect::<Vec<_>>();
        assert_eq!(all(&after), all(&before));
        assert_eq!(kept(&after[1]), json!(["Dora", "", "Calm.", "none", 2, "system"]));
        app.close().await;
    }

    async fn a_prompt_has_the_personas_at_their_present_positions(backend) {
        let at = TestSpace::open(backend, json!({"reply_order": "manual"}), &["Ada"]).await;
        let ann = &at.person;
        let dora = create(ann, json!({"name": "Dora", "description": "Dora is tall."})).await;
        let cara = json!({"name": "Cara", "description": "{{user}} is calm.", "position": "none"});
        let cara = create(ann, cara).await;
        let roster = expect(200, ann.get(&format!("/api/spaces/{}/memberships", id(&at.space))).await);
        let roster = roster["data"].as_array().expect("members");
        let ada = roster.iter().find(|it| it["display_name"] == "Ada").map(id).expect("Ada");
        let change = async |persona: &Value, change: Value| {
            expect(200, ann.patch(&path_of(persona), change).await);
        };

        at.post("=Dora Hello.").await;
        let alone = personas_of_prompt(&at, ada).await;
        change(&dora, json!({"position": "at_depth", "depth": 1, "role": "user"})).await;
        let deep = personas_of_prompt(&at, ada).await;
        at.post("=Cara Hi.").await;
        let without = personas_of_prompt(&at, ada).await;
        change(&cara, json!({"position": "note_top"})).await;
        let both = personas_of_prompt(&at, ada).await;
        assert_eq!(ann.delete(&path_of(&dora)).await.0, 204);
        let after = personas_of_prompt(&at, ada).await;

        let part = |role: &str, text: &str| (role.to_owned(), text.to_owned());
        let parts = |it: &[(String, String, usize)]| -> Vec<(String, String)> {
            it.iter().map(|(role, text, _)| (role.clone(), text.clone())).collect()
        };
        assert_eq!(parts(&alone), [part("system", "About Dora: Dora is tall.")]);
        assert_eq!(parts(&deep), [part("user", "About Dora: Dora is tall.")]);
        assert!(deep[0].2 > alone[0].2, "{deep:?}");
        let of_dora = part("user", "[Persona of Dora]\nDora is tall.\n[End of Dora]");
        let of_cara = part("system", "[Persona of Cara]\nCara is calm.\n[End of Cara]");
        assert_eq!(parts(&without), std::slice::from_ref(&of_dora));
        assert_eq!(parts(&both), [of_cara, of_dora]);
        assert_eq!(parts(&after), [part("system", "About Cara: Cara is calm.")]);
    }
}
