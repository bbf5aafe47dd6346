//! A space with content of every kind, what users can see of it, and what is in its export file.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};

use reqwest::Method;
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::multipart::{multipart_body, send, upload};

/// Creates a space with two users, two characters, swipes, a branch, a thread, an excluded message,
/// one whose memory is off and a deleted one.
pub async fn create_full_space(ann: &HttpClient, ben: &HttpClient) -> Value {
    let space = ann
        .create_space(
            "The inn",
            json!({"reply_order": "manual", "auto_mode_max_turns": 5}),
        )
        .await;
    let at = format!("/api/spaces/{}", id(&space));
    let settings = json!({"scenario_override": "Rain.", "author_note": {"text": "Slow."}});
    expect(
        200,
        ann.patch(
            &at,
            json!({"settings": settings, "description": "By the sea.", "model_language": "pt-BR"}),
        )
        .await,
    );
    let card = json!({"name": "Ada", "first_mes": "Hi.", "alternate_greetings": ["Ho.", "Well."], "extensions": {"made_up": {"deep": [1]}}});
    let ada = expect(201, ann.post("/api/characters", card).await);
    let membership = ann.add_character(&space, &ada).await;
    expect(
        200,
        ann.patch(
            &format!("/api/memberships/{}", id(&membership)),
            json!({"talkativeness": 0.25, "aliases": ["Countess"], "participation": "muted"}),
        )
        .await,
    );
    let invite = ann.invite(id(&space), json!({"role": "member"})).await;
    assert_eq!(ben.join(invite["token"].as_str().unwrap()).await.0, 201);
    let root = root_of(&space);
    let greeting = id(&ann.messages(root).await[0]);
    expect(
        200,
        ann.post(
            &format!("/api/messages/{greeting}/swipes/select"),
            json!({"position": 2}),
        )
        .await,
    );
    let mut messages = Vec::new();
    for (user, text) in [
        (ann, "One."),
        (ben, "Two."),
        (ann, "Three."),
        (ben, "The canary."),
    ] {
        let body = json!({"content": text, "reply_to_id": messages.last()});
        let path = format!("/api/conversations/{root}/messages");
        messages.push(id(&expect(201, user.post(&path, body).await)["message"]));
    }
    for (user, emoji) in [
        (ben, "%F0%9F%8E%89"),
        (ann, "%F0%9F%8E%89"),
        (ann, "%F0%9F%91%8D"),
    ] {
        let path = format!("/api/messages/{}/reactions/{emoji}", messages[0]);
        expect(204, user.put(&path, Value::Null).await);
    }
    expect(
        200,
        ann.patch(
            &format!("/api/messages/{}", messages[2]),
            json!({"visibility": "excluded"}),
        )
        .await,
    );
    expect(
        200,
        ann.patch(
            &format!("/api/messages/{}", messages[1]),
            json!({"remember": false}),
        )
        .await,
    );
    assert_eq!(
        ann.delete(&format!("/api/messages/{}", messages[3]))
            .await
            .0,
        204
    );
    let branch = ann
        .post(
            &format!("/api/conversations/{root}/branch"),
            json!({"message_id": messages[1], "title": "Elsewhere"}),
        )
        .await;
    let branch = id(&expect(201, branch)["conversation"]);
    expect(201, ann.post_message(branch, "Another way.", None).await);
    let thread = json!({"kind": "thread", "parent_conversation_id": root, "title": "Aside"});
    expect(201, ann.post(&format!("{at}/conversations"), thread).await);
    let file = multipart_body("file", "ada.png", &card_fixture("no_card.png"));
    let avatar = format!("/api/characters/{}/avatar", id(&ada));
    expect(200, send(ann, Method::PUT, &avatar, file).await);
    let whole = card_fixture("whole.charx");
    let maren = expect(
        201,
        upload(ann, "/api/characters/import", "maren.charx", &whole).await,
    );
    ann.add_character(&space, &maren["character"]).await;
    add_lorebooks(ann, &at, root, id(&ada)).await;
    space
}

/// Adds two lorebooks to a space, in an order, and one each to its conversation and character.
async fn add_lorebooks(ann: &HttpClient, space: &str, conversation: i64, card: i64) {
    let mut lorebooks = Vec::new();
    for (name, keys) in [
        ("The coast", ["gull", "quay"]),
        ("The house", ["stair", "door"]),
    ] {
        let entries = keys.map(|it| json!({"keys": [it], "content": format!("A {it}."), "extensions": {"sticky": 2, "made_up": [1]}}));
        let lorebook = json!({"name": name, "scan_depth": 3, "entries": entries});
        lorebooks.push(id(&expect(201, ann.post("/api/lorebooks", lorebook).await)));
    }
    for (path_prefix, lorebooks) in [
        (space.to_owned(), vec![lorebooks[1], lorebooks[0]]),
        (
            format!("/api/conversations/{conversation}"),
            vec![lorebooks[0]],
        ),
        (format!("/api/characters/{card}"), vec![lorebooks[1]]),
    ] {
        let path = format!("{path_prefix}/lorebooks");
        expect(
            200,
            ann.put(&path, json!({"lorebook_ids": lorebooks})).await,
        );
    }
}

/// Returns the lorebooks that are linked to a resource, in order, with their entries.
async fn linked_books(ann: &HttpClient, path_prefix: &str) -> Vec<Value> {
    let links = expect(200, ann.get(&format!("{path_prefix}/lorebooks")).await);
    let mut lorebooks = Vec::new();
    for lorebook in links["lorebook_ids"].as_array().unwrap() {
        let mut lorebook = expect(200, ann.get(&format!("/api/lorebooks/{lorebook}")).await);
        let fields = lorebook.as_object_mut().unwrap();
        for key in ["id", "owner_id", "updated_at"] {
            fields.remove(key);
        }
        for entry in fields["entries"].as_array_mut().unwrap() {
            let entry = entry.as_object_mut().unwrap();
            entry.remove("id");
            entry.remove("lorebook_id");
        }
        lorebooks.push(lorebook);
    }
    lorebooks
}

/// Returns the files of a zip by name.
pub fn unpacked(zip: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut zip = ZipArchive::new(Cursor::new(zip)).expect("a valid zip");
    let mut all = BTreeMap::new();
    for n in 0..zip.len() {
        let mut entry = zip.by_index(n).unwrap();
        let mut bytes = Vec::new();
        entry
            .read_to_end(&mut bytes)
            .expect("the entry is readable");
        all.insert(entry.name().unwrap().into_owned(), bytes);
    }
    all
}

/// Returns the assets in a zip; their names contain their hashes.
pub fn assets_in(zip: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut all = unpacked(zip);
    all.retain(|name, _| name.starts_with("assets/"));
    all
}

/// Returns everything that is visible of a space, without ids, which differ per installation.
pub async fn visible_content(ann: &HttpClient, space: i64) -> Value {
    let at = format!("/api/spaces/{space}");
    let strip = |mut it: Value, keys: &[&str]| {
        for key in keys {
            it.as_object_mut().unwrap().remove(*key);
        }
        it
    };
    let rules = expect(200, ann.get(&at).await);
    let rules = strip(
        rules,
        &[
            "id",
            "owner_id",
            "root_conversation_id",
            "tokens_used",
            "settings_version",
        ],
    );
    let memberships = expect(200, ann.get(&format!("{at}/memberships")).await)["data"]
        .as_array()
        .unwrap()
        .clone();
    let mut cards = Vec::new();
    let mut lorebooks = vec![linked_books(ann, &at).await];
    for membership in &memberships {
        if let Some(card) = membership["character_id"].as_i64() {
            let path = format!("/api/characters/{card}");
            let shown = expect(200, ann.get(&path).await);
            // The character and its membership show the same picture: the URL ends with its hash.
            let picture = |it: &Value| {
                it["avatar_url"]
                    .as_str()
                    .map(|it| it.rsplit('=').next().unwrap().to_owned())
            };
            assert_eq!(picture(&shown), picture(membership));
            cards.push(json!([shown["card"], picture(&shown)]));
            lorebooks.push(linked_books(ann, &path).await);
        }
    }
    let memberships: Vec<Value> = memberships
        .into_iter()
        .map(|it| {
            strip(
                it,
                &[
                    "id",
                    "space_id",
                    "user_id",
                    "character_id",
                    "settings_version",
                    "status",
                    "role",
                    "avatar_url",
                ],
            )
        })
        .collect();
    let conversations = expect(200, ann.get(&format!("{at}/conversations")).await)["data"]
        .as_array()
        .unwrap()
        .clone();
    let place_of = |wanted: &Value| conversations.iter().position(|it| it["id"] == *wanted);
    let mut timelines = Vec::new();
    for it in &conversations {
        let parent = place_of(&it["parent_conversation_id"]);
        lorebooks.push(linked_books(ann, &format!("/api/conversations/{}", id(it))).await);
        let mut lines = Vec::new();
        for message in ann.messages(id(it)).await {
            let texts = expect(
                200,
                ann.get(&format!("/api/messages/{}/swipes", id(&message)))
                    .await,
            )["data"]
                .clone();
            let texts: Vec<Value> = texts
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it["content"].clone())
                .collect();
            let is_clone = !message["origin_message_id"].is_null();
            let message = strip(
                message,
                &[
                    "id",
                    "conversation_id",
                    "space_membership_id",
                    "client_id",
                    "rev",
                    "origin_message_id",
                    "conversation_run_id",
                    "edited_by",
                ],
            );
            let message = without_reply_ids(message);
            lines.push(json!({"message": message, "texts": texts, "is_clone": is_clone}));
        }
        let fork = !it["forked_from_message_id"].is_null();
        lines.push(json!([
            it["kind"],
            it["title"],
            it["last_seq"],
            it["settings"],
            it["created_at"],
            parent,
            fork
        ]));
        timelines.push(lines);
    }
    json!({"rules": rules, "seats": memberships, "cards": cards, "books": lorebooks, "timelines": timelines})
}

/// Removes the ids in the quotation and the reactions of a message.
fn without_reply_ids(mut message: Value) -> Value {
    if let Some(quote) = message["reply_to"].as_object_mut() {
        quote.remove("id");
    }
    // Reactions of one instant are in the order of members.
    let mut reactions = Vec::new();
    for it in message["reactions"].as_array().unwrap() {
        let n_members = it["membership_ids"].as_array().unwrap().len();
        reactions.push(format!("{} {n_members}", it["emoji"].as_str().unwrap()));
    }
    reactions.sort();
    message["reactions"] = json!(reactions);
    message
}

/// Returns a file of the fixtures of character cards.
fn card_fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/cards/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).expect("the fixture exists")
}

/// Returns the zip with one entry added or replaced.
pub fn with_file(zip: &[u8], name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    let mut put = |name: &str, bytes: &[u8]| {
        out.start_file(name, SimpleFileOptions::default()).unwrap();
        out.write_all(bytes).unwrap();
    };
    if !zip.is_empty() {
        let mut old = ZipArchive::new(Cursor::new(zip)).unwrap();
        for n in 0..old.len() {
            let mut entry = old.by_index(n).unwrap();
            let mut kept = Vec::new();
            entry.read_to_end(&mut kept).unwrap();
            let known = entry.name().unwrap().into_owned();
            if known != name {
                put(&known, &kept);
            }
        }
    }
    put(name, bytes);
    out.finish().unwrap().into_inner()
}

/// Returns the zip without some of its entries.
pub fn without_files(zip: &[u8], is_out: impl Fn(&str) -> bool) -> Vec<u8> {
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in unpacked(zip) {
        if !is_out(&name) {
            out.start_file(&name, SimpleFileOptions::default()).unwrap();
            out.write_all(&bytes).unwrap();
        }
    }
    out.finish().unwrap().into_inner()
}
