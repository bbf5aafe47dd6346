//! Tests of the history in a space file: ended runs with their prompts and texts, rounds, macro
//! variables and lorebook state. Queued and running runs are not exported.

use std::collections::BTreeSet;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::on_sqlite;
use crate::support::database_facts::{DatabaseFacts, TextRow};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::file_uploads::{bring, fetch, import};
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::poll;
use crate::support::space_content::{unpacked, with_file, without_files};

const IMPORT: &str = "/api/spaces/import";

/// Waits until no run is queued or running, then advances the clock by a second.
async fn wait_until_idle(app: &TestApp, ann: &HttpClient, conversation: i64) {
    poll::until("every run has ended", async || {
        let is_open = |it: &Value| it["status"] == "queued" || it["status"] == "running";
        (!ann.runs(conversation).await.iter().any(is_open)).then_some(())
    })
    .await;
    app.app.clock.advance_ms(1_000);
}

/// Creates a space in which two characters have replied in turn, one of them with a swipe and one
/// failed run, and a branch of the conversation.
async fn create_space_with_history(
    app: &TestApp,
    ann: &HttpClient,
    upstream: &FakeProvider,
) -> Value {
    let model =
        json!({"name": "Main", "base_url": upstream.base_url(), "model": "m", "is_default": true});
    expect(201, ann.post("/api/providers", model).await);
    let rules =
        json!({"reply_order": "list", "replies_per_turn": "activated", "user_turn_debounce_ms": 0});
    let space = ann.create_space("The inn", rules).await;
    let lore =
        |text: &str| json!([{"keys": ["bell"], "content": text, "extensions": {"sticky": 40}}]);
    let ada = json!({
        "name": "Ada",
        "description": "{{setglobalvar::bell::three}}{{setvar::mood::calm}}She listens.",
        "character_book": {"name": "Ada's", "entries": lore("It tolls.")},
    });
    let ada = expect(201, ann.post("/api/characters", ada).await);
    let ada = ann.add_character(&space, &ada).await;
    ann.add_character(&space, &ann.create_character("Bob", None).await)
        .await;
    let lorebook = json!({"name": "The coast", "entries": lore("Gulls rise.")});
    let lorebook = id(&expect(201, ann.post("/api/lorebooks", lorebook).await));
    let links = json!({"lorebook_ids": [lorebook]});
    expect(
        200,
        ann.put(&format!("/api/spaces/{}/lorebooks", id(&space)), links)
            .await,
    );
    let root = root_of(&space);
    expect(201, ann.post_message(root, "The bell?", None).await);
    wait_until_idle(app, ann, root).await;
    let regenerate_path = format!("/api/conversations/{root}/regenerate");
    expect(202, ann.post(&regenerate_path, json!({})).await);
    wait_until_idle(app, ann, root).await;
    upstream.next(ResponseScript::status(400));
    expect(202, ann.generate(root, Some(id(&ada))).await);
    wait_until_idle(app, ann, root).await;
    let messages = ann.messages(root).await;
    let fork = json!({"message_id": id(&messages[1]), "title": "Elsewhere"});
    expect(
        201,
        ann.post(&format!("/api/conversations/{root}/branch"), fork)
            .await,
    );
    space
}

/// Returns the ended runs of a space with their prompts, newest first.
async fn runs_of(ann: &HttpClient, space: i64) -> Vec<Value> {
    let at = format!("/api/spaces/{space}");
    let memberships = expect(200, ann.get(&format!("{at}/memberships")).await);
    let name_of = |membership: &Value| {
        let mut memberships = memberships["data"].as_array().unwrap().iter();
        let membership = memberships.find(|it| it["id"] == *membership);
        membership.expect("the speaker is a member of the space")["display_name"].clone()
    };
    let conversations = expect(200, ann.get(&format!("{at}/conversations")).await);
    let mut runs = Vec::new();
    for conversation in conversations["data"].as_array().unwrap() {
        let messages = ann.messages(id(conversation)).await;
        let seq_of = |message: &Value| {
            let found = messages.iter().find(|it| it["id"] == *message);
            found.map_or(Value::Null, |it| it["seq"].clone())
        };
        for mut run in ann.runs(id(conversation)).await {
            if run["status"] == "queued" || run["status"] == "running" {
                continue;
            }
            let path = format!("/api/runs/{}/prompt", run["id"].as_str().unwrap());
            let (status, mut sent) = ann.get(&path).await;
            if status == 200 {
                // Runs have other ids there.
                sent["cache"]["previous_run_id"] = Value::Null;
                for entry in sent["lore"].as_array_mut().unwrap() {
                    entry["entry_id"] = Value::Null;
                }
            }
            run["speaker_space_membership_id"] = name_of(&run["speaker_space_membership_id"]);
            run["target_message_id"] = seq_of(&run["target_message_id"]);
            run["trigger_message_id"] = seq_of(&run["trigger_message_id"]);
            run["round_id"] = json!(!run["round_id"].is_null());
            for local_key in ["id", "conversation_id"] {
                run.as_object_mut().unwrap().remove(local_key);
            }
            runs.push(json!([conversation["title"], run, status, sent]));
        }
    }
    runs
}

/// Returns data that no endpoint returns: the run of each text, ended rounds with their slots, and
/// variables.
async fn stored_history(facts: &mut DatabaseFacts) -> Vec<Vec<TextRow>> {
    let mut all = Vec::new();
    for sql in [
        "SELECT c.title, CAST(m.seq AS TEXT), r.kind, CAST(r.created_at AS TEXT) FROM messages m \
         JOIN conversations c ON c.id = m.conversation_id \
         JOIN conversation_runs r ON r.id = m.conversation_run_id ORDER BY 1, 2, 3, 4",
        "SELECT c.title, CAST(m.seq AS TEXT), CAST(s.position AS TEXT), r.kind, CAST(r.created_at AS TEXT) \
         FROM message_swipes s JOIN messages m ON m.id = s.message_id \
         JOIN conversations c ON c.id = m.conversation_id \
         JOIN conversation_runs r ON r.id = s.conversation_run_id ORDER BY 1, 2, 3, 4, 5",
        "SELECT r.status, r.kind, r.state, CAST(r.cursor AS TEXT), CAST(r.seed AS TEXT), r.ended_reason, \
         CAST(m.seq AS TEXT), CAST(s.value ->> 'position' AS TEXT), s.value ->> 'status', \
         s.value ->> 'chosen_because', p.cached_display_name \
         FROM conversation_rounds r LEFT JOIN messages m ON m.id = r.trigger_message_id \
         CROSS JOIN {slots} \
         JOIN space_memberships p ON p.id = CAST(s.value ->> 'space_membership_id' AS BIGINT) \
         WHERE r.status <> 'active' ORDER BY 5, 8",
        "SELECT name, value FROM space_variables ORDER BY 1",
    ] {
        let sql = sql.replace("{slots}", facts.slots());
        all.push(facts.rows(&sql).await);
    }
    all
}

/// Returns the variables of the conversations and the possible keys of lorebook state.
async fn stored_state(facts: &mut DatabaseFacts) -> (Vec<Value>, BTreeSet<String>) {
    let text = |row: TextRow| row[0].clone().expect("the column is not null");
    let variables = "SELECT CAST(c.variables AS TEXT) FROM conversations c \
                     JOIN spaces s ON s.id = c.space_id WHERE s.name = 'The inn' ORDER BY c.id";
    let variables = facts.rows(variables).await.into_iter().map(text);
    let variables = variables.map(|it| serde_json::from_str(&it).expect("the variables are JSON"));
    let variables = variables.collect();
    let keys = "SELECT CAST(lorebook_id AS TEXT) || '.' || CAST(id AS TEXT) FROM lorebook_entries \
                UNION SELECT 'card:' || CAST(character_id AS TEXT) || '.0' FROM space_memberships \
                WHERE cached_display_name = 'Ada'";
    let keys = facts.rows(keys).await.into_iter().map(text).collect();
    (variables, keys)
}

fn sticky(variables: &Value) -> BTreeSet<String> {
    let sticky = variables["lore"]["sticky"].as_object();
    sticky
        .into_iter()
        .flatten()
        .map(|it| it.0.clone())
        .collect()
}

on_sqlite! {
    async fn ended_runs_are_exported_and_due_runs_are_not(backend) {
        let (old, upstream) = (TestApp::start(backend).await, FakeProvider::start().await);
        let ann = old.admin().await;
        let space = create_space_with_history(&old, &ann, &upstream).await;
        let later = json!({"user_turn_debounce_ms": 60_000});
        expect(200, ann.patch(&format!("/api/spaces/{}", id(&space)), later).await);
        expect(201, ann.post_message(root_of(&space), "And then?", None).await);
        assert!(ann.runs(root_of(&space)).await.iter().any(|it| it["status"] == "queued"));
        let before = runs_of(&ann, id(&space)).await;
        let mut facts = DatabaseFacts::open(&old.database).await;
        let (rows, (variables, keys)) = (
            stored_history(&mut facts).await,
            stored_state(&mut facts).await,
        );
        let runs: Vec<_> = before.iter().map(|it| (it[1]["kind"].as_str().unwrap(), it[1]["status"].as_str().unwrap())).collect();
        assert_eq!(runs, [("force_talk", "failed"), ("regenerate", "succeeded"), ("user_turn", "succeeded"), ("user_turn", "succeeded")]);
        assert!(rows.iter().all(|it| !it.is_empty()), "a query found no rows: {rows:?}");
        assert_eq!(sticky(&variables[0]), keys, "state of a lorebook is missing: {variables:?}");
        let file = fetch(&ann, &format!("/api/spaces/{}/export", id(&space))).await;
        old.close().await;

        let new = TestApp::start(backend).await;
        // The clock of the old server was moved forward; runs that end in the future are not
        // exported.
        new.app.clock.advance_ms(60_000);
        let ann = new.admin().await;
        let done = import(&ann, IMPORT, "inn.troupe.zip", &file).await;

        assert_eq!(done["status"], "succeeded", "{done}");
        assert_eq!(runs_of(&ann, done["space_id"].as_i64().unwrap()).await, before);
        let mut facts = DatabaseFacts::open(&new.database).await;
        assert_eq!(stored_history(&mut facts).await, rows);
        let (now, keys) = stored_state(&mut facts).await;
        assert_eq!(now[0]["macros"], variables[0]["macros"]);
        assert_eq!(now[0]["macros"], json!({"mood": "calm"}));
        assert_eq!(sticky(&now[0]), keys, "the keys are not those of the new installation");
        let due = "SELECT CAST((SELECT count(*) FROM conversation_runs WHERE status IN ('queued', 'running')) \
                   + (SELECT count(*) FROM conversation_rounds WHERE status = 'active') AS TEXT)";
        assert_eq!(facts.number(due).await, 0, "runs or rounds are active after the import");
        // Imported a second time into the same installation, and exported again.
        let again = fetch(&ann, &format!("/api/spaces/{}/export", done["space_id"])).await;
        let second_import = import(&ann, IMPORT, "inn.troupe.zip", &again).await;
        assert_eq!(runs_of(&ann, second_import["space_id"].as_i64().unwrap()).await, before);
        new.close().await;
    }

    async fn a_slot_of_a_deleted_membership_is_not_exported(backend) {
        let (app, upstream) = (TestApp::start(backend).await, FakeProvider::start().await);
        let ann = app.admin().await;
        let space = create_space_with_history(&app, &ann, &upstream).await;
        let mut facts = DatabaseFacts::open(&app.database).await;
        let n_slots = "SELECT CAST(sum(json_array_length(slots)) AS TEXT) FROM conversation_rounds";
        let before = facts.number(n_slots).await;
        facts.execute(
            "UPDATE conversation_rounds SET slots = json_insert(slots, '$[#]', json_object('position', 9, \
             'space_membership_id', 999999, 'status', 'skipped', 'chosen_because', '', 'forced', json('false')))"
        ).await;
        let file = fetch(&ann, &format!("/api/spaces/{}/export", id(&space))).await;

        let done = import(&ann, IMPORT, "inn.zip", &file).await;

        assert_eq!(done["status"], "succeeded", "{done}");
        let imported = format!(
            "{n_slots} WHERE conversation_id IN (SELECT id FROM conversations WHERE space_id = {})",
            done["space_id"]
        );
        assert_eq!(facts.number(&imported).await, before);
        app.close().await;
    }

    async fn a_file_without_history_is_still_imported(backend) {
        let (app, upstream) = (TestApp::start(backend).await, FakeProvider::start().await);
        let ann = app.admin().await;
        let space = create_space_with_history(&app, &ann, &upstream).await;
        let file = fetch(&ann, &format!("/api/spaces/{}/export", id(&space))).await;
        let is_new = |name: &str| name.starts_with("past/") || name == "variables.json";
        assert_eq!(unpacked(&file).keys().filter(|it| is_new(it)).count(), 3);
        let texts = async |space: i64| {
            let at = format!("/api/spaces/{space}/conversations");
            let root = id(&expect(200, ann.get(&at).await)["data"][0]);
            let messages = ann.messages(root).await.into_iter();
            messages.map(|it| it["content"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };

        let done = import(&ann, IMPORT, "old.zip", &without_files(&file, is_new)).await;

        assert_eq!(done["status"], "succeeded", "{done}");
        let imported = done["space_id"].as_i64().unwrap();
        assert_eq!(texts(imported).await, texts(id(&space)).await);
        assert_eq!(runs_of(&ann, imported).await, Vec::<Value>::new());
        app.close().await;
    }

    async fn an_invalid_history_stores_nothing(backend) {
        let (app, upstream) = (TestApp::start(backend).await, FakeProvider::start().await);
        let ann = app.admin().await;
        let space = create_space_with_history(&app, &ann, &upstream).await;
        let file = fetch(&ann, &format!("/api/spaces/{}/export", id(&space))).await;
        let name = format!("past/{}.jsonl", root_of(&space));
        let lines = String::from_utf8(unpacked(&file)[&name].clone()).unwrap();
        let mut facts = DatabaseFacts::open(&app.database).await;
        let count = "SELECT CAST((SELECT count(*) FROM spaces) + (SELECT count(*) FROM conversation_runs) + (SELECT count(*) FROM conversation_rounds) + (SELECT count(*) FROM run_prompts) AS TEXT)";
        let before = facts.number(count).await;
        for (what, lines) in [
            ("a run that is due", lines.replace("\"status\":\"failed\"", "\"status\":\"queued\"")),
            ("a run that runs", lines.replace("\"status\":\"failed\"", "\"status\":\"running\"")),
            ("an active round", lines.replacen("\"status\":\"finished\"", "\"status\":\"active\"", 1)),
            ("a round twice", lines.clone() + &lines),
            ("two slots at one position", lines.replace("\"position\":1,", "\"position\":0,")),
            ("a run of a member that does not exist", lines.replace("\"seat\":", "\"seat\":9")),
            ("a word that is too long", lines.replace("\"ended_reason\":\"", &format!("\"ended_reason\":\"{}", "x".repeat(65)))),
            ("noise", "noise".to_owned()),
        ] {
            let done = import(&ann, IMPORT, "x.zip", &with_file(&file, &name, lines.as_bytes())).await;
            assert_eq!((done["status"].as_str(), done["error"]["code"].as_str()), (Some("failed"), Some("not_a_space")), "{what}: {done}");
            assert_eq!(facts.number(count).await, before, "{what} stored rows");
        }
        app.close().await;
    }

    async fn a_space_too_large_to_import_is_rejected_before_export(backend) {
        let small = [("TROUPE_MAX_SPACE_MIB", "1")];
        let app = TestApp::start_with(backend, &small).await;
        let ann = app.admin().await;
        let space = ann.create_space("The inn", json!({"reply_order": "manual"})).await;
        let at = format!("/api/spaces/{}/export", id(&space));
        let fits = fetch(&ann, &at).await;
        // Random hexadecimal digits shrink to half of their size when they are compressed.
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let noise: String = (0..200_000).map(|_| format!("{:016x}", rng.random::<u64>())).collect();
        let card = json!({"name": "Noise", "first_mes": "", "description": "Noise.", "creator_notes": noise}).to_string();
        let import_path = "/api/characters/import";
        let card = expect(201, bring(&ann, import_path, "noise.json", card.as_bytes()).await);
        ann.add_character(&space, &card["character"]).await;

        let refused = ann.get(&at).await;

        assert_eq!(refusal(&refused), (422, "space_too_large".to_owned()));
        assert!(refused.1["error"]["message"].as_str().unwrap().contains("TROUPE_MAX_SPACE_MIB"));
        let done = import(&ann, IMPORT, "inn.zip", &fits).await;
        assert_eq!(done["status"], "succeeded", "an exported file was rejected: {done}");
        let large = bring(&ann, IMPORT, "x.zip", &vec![b' '; 1024 * 1024 + 1]).await;
        assert_eq!(refusal(&large), (413, "too_large".to_owned()));
        app.close().await;
    }
}
