//! Tests of messages, their swipes and their pages.

use serde_json::json;

use crate::support::app::TestApp;
use crate::support::backends::on_sqlite;
use crate::support::http_client::{expect, id, root_of};

on_sqlite! {
    async fn an_edited_greeting_is_edited_among_its_swipes_too(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let space = ann.create_space("Room", json!({})).await;
        let card = json!({"name": "Ada", "first_mes": "Hi.", "alternate_greetings": ["Ho."]});
        let character = expect(201, ann.post("/api/characters", card).await);
        ann.add_character(&space, &character).await;
        let greeting = id(&ann.messages(root_of(&space)).await[0]);
        let path = format!("/api/messages/{greeting}");

        let edited = expect(200, ann.patch(&path, json!({"content": "Hey.", "expected_version": 1})).await);

        assert_eq!(edited["swipes"], json!({"count": 2, "active": 0, "chosen_by": null}));
        let swipes = expect(200, ann.get(&format!("{path}/swipes")).await);
        let texts: Vec<_> = swipes["data"].as_array().unwrap().iter().map(|it| it["content"].as_str().unwrap()).collect();
        assert_eq!(texts, ["Hey.", "Ho."]);
        app.close().await;
    }

    async fn a_timeline_is_read_from_either_end_and_between_two_messages(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let space = ann.create_space("Room", json!({})).await;
        let messages = format!("/api/conversations/{}/messages", root_of(&space));
        for n in 1..=5 {
            expect(201, ann.post(&messages, json!({"content": n.to_string()})).await);
        }

        for (query, texts, has_more) in [
            ("", "1 2 3 4 5", false),
            ("limit=2", "4 5", true),
            ("before=4&limit=2", "2 3", true),
            ("after=2", "3 4 5", false),
            ("after=1&before=5", "2 3 4", false),
            ("after=1&before=5&limit=2", "2 3", true),
            ("after=4&before=2", "", false),
        ] {
            let page = expect(200, ann.get(&format!("{messages}?{query}")).await);
            let found = page["data"].as_array().unwrap().iter();
            let found: Vec<_> = found.map(|it| it["content"].as_str().unwrap()).collect();
            assert_eq!((found.join(" ").as_str(), &page["has_more"]), (texts, &json!(has_more)), "{query}");
        }
        app.close().await;
    }

    async fn the_memory_of_a_message_is_switched_alone_and_shown(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let space = ann.create_space("Room", json!({})).await;
        let posted = expect(201, ann.post_message(root_of(&space), "Hello.", None).await);
        let path = format!("/api/messages/{}", posted["message"]["id"]);

        let off = expect(200, ann.patch(&path, json!({"remember": false})).await);

        assert_eq!((&posted["message"]["remember"], &off["remember"]), (&json!(true), &json!(false)));
        assert_eq!((&off["version"], &off["visibility"]), (&json!(1), &json!("normal")));
        assert!(off["rev"].as_i64() > posted["message"]["rev"].as_i64(), "open pages are not informed");
        assert_eq!(ann.messages(root_of(&space)).await[0]["remember"], false);
        let again = expect(200, ann.patch(&path, json!({"remember": false})).await);
        assert_eq!(again, off, "nothing has changed");
        for body in [json!({"remember": true, "visibility": "excluded"}), json!({"remember": true, "content": "Ho."})] {
            let refused = ann.patch(&path, body).await;
            assert_eq!((refused.0, &refused.1["error"]["param"]), (422, &json!("remember")));
        }
        assert_eq!(ann.patch(&path, json!({"remember": null})).await.0, 400);
        app.close().await;
    }

    async fn a_page_around_a_message_has_it_in_the_middle(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let space = ann.create_space("Room", json!({})).await;
        let messages = format!("/api/conversations/{}/messages", root_of(&space));
        for n in 1..=9 {
            expect(201, ann.post(&messages, json!({"content": n.to_string()})).await);
        }
        let ids: Vec<i64> = ann.messages(root_of(&space)).await.iter().map(id).collect();
        expect(204, ann.delete(&format!("/api/messages/{}", ids[3])).await);

        for (query, texts, has_more) in [
            (format!("around={}&limit=4", ids[4]), "2 3 5 6", true),
            (format!("around={}&limit=5", ids[4]), "2 3 5 6 7", true),
            (format!("around={}&limit=1", ids[4]), "5", true),
            (format!("around={}&limit=4", ids[0]), "1 2", true),
            (format!("around={}&limit=4", ids[8]), "7 8 9", true),
            (format!("around={}", ids[4]), "1 2 3 5 6 7 8 9", false),
        ] {
            let page = expect(200, ann.get(&format!("{messages}?{query}")).await);
            let found = page["data"].as_array().unwrap().iter();
            let found: Vec<_> = found.map(|it| it["content"].as_str().unwrap()).collect();
            assert_eq!((found.join(" ").as_str(), &page["has_more"]), (texts, &json!(has_more)), "{query}");
        }
        app.close().await;
    }

    async fn a_page_around_a_message_not_in_the_conversation_is_rejected(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let space = ann.create_space("Room", json!({})).await;
        let there = ann.create_space("Elsewhere", json!({})).await;
        let post = async |space| {
            let messages = format!("/api/conversations/{}/messages", root_of(space));
            id(&expect(201, ann.post(&messages, json!({"content": "Hi."})).await)["message"])
        };
        let (gone, elsewhere, shown) = (post(&space).await, post(&there).await, post(&space).await);
        expect(204, ann.delete(&format!("/api/messages/{gone}")).await);

        for (status, query) in [
            (404, format!("around={gone}")),
            (404, format!("around={elsewhere}")),
            (404, "around=999999".to_owned()),
            (400, "around=x".to_owned()),
            (400, format!("around={shown}&before=9")),
            (400, format!("around={shown}&after=0")),
        ] {
            let path = format!("/api/conversations/{}/messages?{query}", root_of(&space));
            let answer = ann.get(&path).await;
            assert_eq!(answer.0, status, "{query}");
        }
        app.close().await;
    }
}
