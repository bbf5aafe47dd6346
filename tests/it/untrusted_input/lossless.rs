//! Tests that accepted text is returned exactly as it was sent, whatever it contains.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::support::backends::on_both;
use crate::support::http_client::{expect, id};
use crate::untrusted_input::installation::Installation;
use crate::untrusted_input::strings;

/// All items of a paginated list.
async fn read_all(server: &Installation, list: &str) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    let mut after = "0".to_owned();
    loop {
        let page = server
            .admin
            .get(&format!("{list}?limit=200&after={after}"))
            .await;
        let page = expect(200, page);
        all.extend(
            page["data"]
                .as_array()
                .expect("`data` is not a list")
                .iter()
                .cloned(),
        );
        if page["has_more"] != true {
            return all;
        }
        let last = all.last().expect("a page with `has_more` is empty");
        let cursor = last.get("seq").unwrap_or(&last["id"]);
        after = cursor.to_string();
    }
}

/// Whether every database can store the text: PostgreSQL cannot store U+0000.
fn is_storable(text: &str) -> bool {
    !text.contains('\0')
}

/// A name as it is shown: trimmed, and without the marks that change the text direction around it.
fn as_shown(text: &str) -> String {
    let is_direction_mark = |it: char| matches!(it, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let name: String = text.chars().filter(|it| !is_direction_mark(*it)).collect();
    name.trim().to_owned()
}

on_both! {
    async fn a_message_is_returned_exactly_as_sent(backend) {
        let server = Installation::open(backend).await;
        let space = server.admin.create_space("Library", json!({})).await;
        let conversation = &space["root_conversation_id"];
        let path = format!("/api/conversations/{conversation}/messages");
        let mut accepted = Vec::new();
        let mut rejected = Vec::new();
        for text in strings::all() {
            let client_id: String = text.chars().take(100).collect();
            let (status, answer) = server.admin.post(&path, json!({"content": text, "client_id": client_id})).await;
            match status {
                201 => accepted.push((text, client_id)),
                _ => rejected.push((text, status, answer["error"]["code"].clone())),
            }
        }

        let read = read_all(&server, &path).await;

        assert!(accepted.len() > 200, "{} accepted", accepted.len());
        for (text, status, code) in &rejected {
            let is_too_long = text.len() > 64 * 1024 && code == "too_long";
            let is_blank = !text.chars().any(char::is_alphanumeric) && code == "blank_message";
            let is_duplicate = *status == 200;
            let is_invalid = code == "invalid_value" && (!is_storable(text) || text.is_empty());
            assert!(is_too_long || is_blank || is_duplicate || is_invalid, "{text:?}: {status} {code}");
        }
        let read: Vec<_> = read.iter().map(|it| (&it["content"], &it["client_id"])).collect();
        let sent: Vec<_> = accepted.iter().map(|it| (json!(it.0), json!(it.1))).collect();
        let sent: Vec<_> = sent.iter().map(|it| (&it.0, &it.1)).collect();
        assert_eq!(read, sent);
        eprintln!("messages: {} requests", accepted.len() + rejected.len());
        server.close_unharmed().await;
    }

    async fn settings_and_descriptions_are_returned_exactly_as_sent(backend) {
        let server = Installation::open(backend).await;
        let mut accepted = Vec::new();
        for text in strings::all() {
            let settings = json!({
                "author_note": {"text": text},
                "unheard_of": {&text: [&text, {"deep": &text}]},
            });
            let body = json!({"name": "Shelf", "description": text, "settings": settings});
            let (status, answer) = server.admin.post("/api/spaces", body).await;
            let fits = is_storable(&text) && text.chars().count() <= 4_000;
            assert_eq!(status, if fits { 201 } else { 422 }, "{text:?}: {answer}");
            if fits {
                accepted.push((text, settings, id(&answer)));
            }
        }

        let read = read_all(&server, "/api/spaces").await;

        assert!(accepted.len() > 200, "{} accepted", accepted.len());
        for (text, settings, id) in &accepted {
            let found = read.iter().find(|it| it["id"] == *id).expect("the item is missing in the list");
            assert_eq!(found["description"], *text);
            assert_eq!(found["settings"], *settings);
        }
        eprintln!("spaces: {} requests", accepted.len());
        server.close_unharmed().await;
    }

    async fn a_card_is_returned_as_sent_except_for_its_line_ends(backend) {
        let server = Installation::open(backend).await;
        let mut sent = Vec::new();
        for text in strings::all().into_iter().filter(|it| is_storable(it)) {
            let data = json!({
                "name": "Card",
                "description": text,
                "first_mes": text,
                "alternate_greetings": [text],
                "tags": [text],
                "extensions": {"unheard_of": {&text: text}},
            });
            let card = json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": data, "odd": text});
            let made = server.admin.post("/api/characters", json!({"card": card})).await;
            let made = expect(201, made);
            let flat = json!({"description": "", "personality": text, "creator_notes": text});
            let changed = server.admin.patch(&format!("/api/characters/{}", made["id"]), flat).await;
            assert_eq!(changed.0, 200, "{text:?}: {}", changed.1);
            sent.push((id(&made), text, card));
        }

        let read = read_all(&server, "/api/characters").await;

        for (id, text, card) in &sent {
            let found = read.iter().find(|it| it["id"] == *id).expect("the item is missing in the list");
            let data = &found["card"]["data"];
            let normal = text.replace("\r\n", "\n").replace('\r', "\n");
            for key in ["personality", "creator_notes", "first_mes"] {
                assert_eq!(data[key], normal, "{key}");
            }
            assert_eq!(data["description"], "");
            for key in ["alternate_greetings", "tags"] {
                assert_eq!(data[key], json!([normal]), "{key}");
            }
            assert_eq!(data["extensions"], card["data"]["extensions"], "{text:?}");
            assert_eq!(found["card"]["odd"], *text);
        }
        eprintln!("cards: {} requests", 2 * sent.len());
        server.close_unharmed().await;
    }

    async fn a_name_is_returned_as_sent_except_for_trimming(backend) {
        let server = Installation::open(backend).await;
        let mut accepted = HashSet::new();
        let mut n = 0;
        for text in strings::all() {
            n += 1;
            let (status, answer) = server.admin.post("/api/api_keys", json!({"name": text})).await;
            let name = as_shown(&text);
            let fits = name.chars().count() <= 100
                && !text.trim().chars().any(|it| it.is_control() || "\u{2028}\u{2029}".contains(it));
            match status {
                201 => assert!(fits, "{text:?}"),
                // The rejected names contain nothing visible.
                _ => assert!(status == 422 && (!fits || !name.chars().any(char::is_alphanumeric)), "{text:?}: {answer}"),
            }
            if status == 201 {
                assert_eq!(answer["name"], *name);
                accepted.insert(name);
            }
        }

        let read = read_all(&server, "/api/api_keys").await;

        let read: HashSet<String> = read.iter().filter_map(|it| it["name"].as_str().map(str::to_owned)).collect();
        assert!(accepted.len() > 150 && accepted.is_subset(&read), "{} accepted", accepted.len());
        eprintln!("names: {n} requests");
        server.close_unharmed().await;
    }
}
