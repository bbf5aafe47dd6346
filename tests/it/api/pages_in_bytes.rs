//! Tests of the byte limit of lists: a page stops before 2 MiB, and its cursor continues the list.

use base::ids::ConversationId;
use serde_json::{Value, json};
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::timeline_page::MAX_BYTES;

use crate::support::app::TestApp;
use crate::support::backends::on_both;
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id, root_of};

/// The number of long messages in a conversation.
const N_MESSAGES: i64 = 90;
const LONG: usize = 60_000;

/// Creates a conversation of long messages.
async fn long_conversation(app: &TestApp, ann: &HttpClient) -> i64 {
    let manual = json!({"reply_order": "manual"});
    let conversation = root_of(&ann.create_space("Room", manual).await);
    let text = "<i>x</i> \"y\"\n".repeat(LONG / 13);
    let (status, posted) = ann.post_message(conversation, &text, None).await;
    assert_eq!(status, 201, "{posted}");
    let mut facts = DatabaseFacts::open(&app.database).await;
    let columns = "space_membership_id, role, content, visibility, active_swipe, created_at, token_count, metadata";
    let more = N_MESSAGES - 1;
    facts
        .execute(&format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {more})
             INSERT INTO messages (conversation_id, seq, rev, {columns})
             SELECT conversation_id, seq + i, rev + i, {columns} FROM messages, n WHERE conversation_id = {conversation}"
        ))
        .await;
    facts
        .execute(&format!(
            "UPDATE conversations SET last_seq = {N_MESSAGES}, rev = rev + {more} WHERE id = {conversation}"
        ))
        .await;
    conversation
}

/// Adds swipes to a message, at the positions from 1 on.
async fn add_swipes(app: &TestApp, message: i64, n_swipes: i64) {
    let mut facts = DatabaseFacts::open(&app.database).await;
    facts
        .execute(&format!(
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {n_swipes})
             INSERT INTO message_swipes (message_id, position, content, metadata, token_count)
             SELECT id, i, content, metadata, 0 FROM messages, n WHERE messages.id = {message}"
        ))
        .await;
}

/// Returns a page and asserts that it is within the byte limit.
async fn page(person: &HttpClient, path: &str) -> Value {
    let page = expect(200, person.get(path).await);
    let n_bytes = serde_json::to_string(&page).unwrap().len();
    assert!(n_bytes <= MAX_BYTES, "{n_bytes} bytes: {path}");
    page
}

fn numbers(page: &Value, key: &str) -> Vec<i64> {
    let data = page["data"].as_array().expect("data is a list").iter();
    data.map(|it| it[key].as_i64().expect("the field is a number"))
        .collect()
}

/// Follows the cursor of a list in one direction; returns the numbers of its pages.
async fn follow(person: &HttpClient, list: &str, direction: &str, key: &str) -> Vec<Vec<i64>> {
    let mut pages = Vec::new();
    let mut cursor = match direction {
        "after" => "&after=-1".to_owned(),
        _ => String::new(),
    };
    loop {
        let page = page(person, &format!("{list}{cursor}")).await;
        pages.push(numbers(&page, key));
        match page["has_more"].as_bool() {
            Some(true) => {
                cursor = format!(
                    "&{direction}={}",
                    page["cursor"].as_i64().expect("the page has a cursor")
                )
            }
            _ => {
                assert!(page["cursor"].is_null(), "{}", page["cursor"]);
                return pages;
            }
        }
    }
}

on_both! {
    async fn pages_of_long_messages_stop_before_two_mib_and_reach_every_message_once(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let conversation = long_conversation(&app, &ann).await;
        let messages = format!("/api/conversations/{conversation}/messages?limit=200");

        for html in ["false", "true"] {
            let list = format!("{messages}&html={html}");
            let older = follow(&ann, &list, "before", "seq").await;
            let newer = follow(&ann, &list, "after", "seq").await;

            assert!(older.len() > 2, "{older:?}");
            let all: Vec<i64> = (1..=N_MESSAGES).collect();
            assert_eq!(older.into_iter().rev().flatten().collect::<Vec<_>>(), all);
            assert_eq!(newer.into_iter().flatten().collect::<Vec<_>>(), all);
        }
        app.close().await;
    }

    async fn a_page_around_a_long_message_has_both_sides_and_respects_the_byte_limit(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let conversation = long_conversation(&app, &ann).await;
        let newest = page(&ann, &format!("/api/conversations/{conversation}/messages?limit=30")).await;
        let (middle, seq) = (id(&newest["data"][0]), newest["data"][0]["seq"].as_i64().unwrap());

        let around = page(&ann, &format!("/api/conversations/{conversation}/messages?limit=200&around={middle}")).await;

        let seqs = numbers(&around, "seq");
        assert!(seqs.windows(2).all(|it| it[1] == it[0] + 1), "{seqs:?}");
        assert!(seqs.first() < Some(&seq) && seqs.last() > Some(&seq), "{seq} in {seqs:?}");
        assert_eq!((&around["has_more"], &around["cursor"]), (&json!(true), &Value::Null));
        app.close().await;
    }

    async fn pages_of_swipes_stop_before_two_mib_and_reach_every_swipe_once(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let conversation = long_conversation(&app, &ann).await;
        let newest = page(&ann, &format!("/api/conversations/{conversation}/messages?limit=1")).await;
        let message = id(&newest["data"][0]);
        add_swipes(&app, message, 79).await;

        let swipes = format!("/api/messages/{message}/swipes?limit=200");
        let pages = follow(&ann, &swipes, "after", "position").await;
        let with_html = follow(&ann, &format!("{swipes}&html=true"), "after", "position").await;
        let two = page(&ann, &format!("/api/messages/{message}/swipes?limit=2&before=5")).await;

        let all: Vec<i64> = (0..80).collect();
        assert!(pages.len() > 1 && with_html.len() > pages.len());
        assert_eq!(pages.into_iter().flatten().collect::<Vec<_>>(), all);
        assert_eq!(with_html.into_iter().flatten().collect::<Vec<_>>(), all);
        assert_eq!((numbers(&two, "position"), &two["cursor"]), (vec![3, 4], &json!(3)));
        app.close().await;
    }

    async fn a_search_among_long_messages_returns_as_many_as_requested(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        long_conversation(&app, &ann).await;

        let found = page(&ann, "/api/search?q=%22y%22&limit=80").await;

        let seqs = numbers(&found, "seq");
        assert_eq!(seqs, (11..=N_MESSAGES).rev().collect::<Vec<_>>());
        let last = found["data"].as_array().unwrap().last().unwrap();
        assert_eq!((&found["has_more"], &found["cursor"]), (&json!(true), &last["message_id"]));
        app.close().await;
    }

    async fn a_snapshot_is_at_most_two_mib_and_resets_when_there_are_more_changes(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let conversation = long_conversation(&app, &ann).await;
        let rev = ann.conversation(conversation).await["rev"].as_i64().unwrap();
        let snapshot = async |after_rev| {
            let found = app.app.engine.snapshot(ConversationId(conversation), Viewer::Server, after_rev).await;
            let found = serde_json::to_value(found.unwrap().unwrap()).unwrap();
            let n_bytes = found["messages"].to_string().len();
            assert!(n_bytes <= MAX_BYTES, "{n_bytes} bytes");
            let seqs: Vec<i64> = found["messages"].as_array().unwrap().iter().map(|it| it["seq"].as_i64().unwrap()).collect();
            assert!(found["messages"][0]["html"].is_string());
            (seqs, found["reset"].clone(), found["has_more"].clone())
        };

        let (newest, reset, has_more) = snapshot(None).await;
        assert!(newest.len() > 1 && newest.len() < 50, "{newest:?}");
        assert_eq!((newest.last(), reset, has_more), (Some(&N_MESSAGES), json!(false), json!(true)));
        let (few, reset, has_more) = snapshot(Some(rev - 3)).await;
        assert_eq!((few, reset, has_more), (vec![88, 89, 90], json!(false), json!(false)));
        // 20 texts fit, but not together with their HTML; 60 texts do not fit.
        for n_changes in [25, 60] {
            let again = snapshot(Some(rev - n_changes)).await;
            assert_eq!(again, (newest.clone(), json!(true), json!(true)), "{n_changes}");
        }
        app.close().await;
    }

    async fn html_is_returned_only_if_requested(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let space = ann.create_space("Room", json!({"reply_order": "manual"})).await;
        let messages = format!("/api/conversations/{}/messages", root_of(&space));

        let posted = expect(201, ann.post(&messages, json!({"content": "*Hi.*"})).await);
        let path = format!("/api/messages/{}", id(&posted["message"]));
        let plain = [
            posted["message"].clone(),
            expect(200, ann.get(&messages).await)["data"][0].clone(),
            expect(200, ann.get(&format!("{path}/swipes")).await)["data"][0].clone(),
            expect(200, ann.patch(&path, json!({"visibility": "excluded"})).await),
        ];
        let rendered = [
            expect(201, ann.post(&format!("{messages}?html=true"), json!({"content": "*Hi.*"})).await)["message"].clone(),
            expect(200, ann.get(&format!("{messages}?html=true")).await)["data"][0].clone(),
            expect(200, ann.get(&format!("{path}/swipes?html=true")).await)["data"][0].clone(),
            expect(200, ann.patch(&format!("{path}?html=true"), json!({"visibility": "normal"})).await),
        ];

        for it in plain {
            assert_eq!(it.get("html"), Some(&Value::Null), "{it}");
        }
        for it in rendered {
            assert!(it["html"].as_str().is_some_and(|it| it.contains("<em>Hi.</em>")), "{it}");
        }
        assert_eq!(ann.get(&format!("{messages}?html=maybe")).await.0, 400);
        app.close().await;
    }

    async fn a_list_of_large_cards_stops_before_two_mib_and_reaches_every_card_once(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let mut made = Vec::new();
        for n in 0..5 {
            let card = json!({"name": format!("C{n}"), "description": "long ".repeat(180_000)});
            made.push(id(&expect(201, ann.post("/api/characters", card).await)));
        }

        let pages = follow(&ann, "/api/characters?limit=200", "after", "id").await;
        let backwards = page(&ann, &format!("/api/characters?before={}", i64::MAX)).await;

        // Two of them fit together with the small sample cards of every user.
        assert_eq!(pages.len(), 3, "{pages:?}");
        assert!(pages.concat().ends_with(&made), "{pages:?}");
        assert_eq!((numbers(&backwards, "id"), &backwards["cursor"]), (made[3..].to_vec(), &json!(made[3])));
        app.close().await;
    }

    async fn the_cursor_of_a_list_continues_in_its_direction(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let mut made = Vec::new();
        for n in 0..5 {
            made.push(id(&ann.create_space(&format!("S{n}"), json!({})).await));
        }

        let forwards = follow(&ann, "/api/spaces?limit=2", "after", "id").await;
        let newest = page(&ann, &format!("/api/spaces?limit=2&before={}", i64::MAX)).await;

        assert!(forwards.concat().ends_with(&made), "{forwards:?}");
        assert_eq!((numbers(&newest, "id"), &newest["cursor"]), (made[3..].to_vec(), &json!(made[3])));
        app.close().await;
    }
}
