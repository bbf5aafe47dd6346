//! Tests of edits over HTTP: at any place of the timeline, by whom, with the replaced texts, the storage
//! quota and the rate limit.

use serde_json::{Value, json};

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::{on_both, on_sqlite};
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;

/// Ann's space, in manual order, with Ben as a moderator and Cyd as a member.
struct Talk {
    app: TestApp,
    ann: HttpClient,
    ben: HttpClient,
    cyd: HttpClient,
    conversation: i64,
}

impl Talk {
    async fn start(backend: crate::support::backends::TestBackend, env: &[(&str, &str)]) -> Self {
        let env = [OPEN_REGISTRATION, env].concat();
        let app = TestApp::start_with(backend, &env).await;
        let ann = app.admin().await;
        let space = ann
            .create_space("Room", json!({"reply_order": "manual"}))
            .await;
        let (ben, cyd) = (
            HttpClient::register(&app.base, "ben").await,
            HttpClient::register(&app.base, "cyd").await,
        );
        ann.add_member(id(&space), &ben, "moderator").await;
        ann.add_member(id(&space), &cyd, "member").await;
        let conversation = root_of(&space);
        Self {
            app,
            ann,
            ben,
            cyd,
            conversation,
        }
    }

    async fn post(&self, person: &HttpClient, text: &str) -> i64 {
        let posted = person.post_message(self.conversation, text, None).await;
        id(&expect(201, posted)["message"])
    }

    async fn texts(&self, conversation: i64) -> Vec<String> {
        let all = self.ann.messages(conversation).await;
        all.iter()
            .map(|it| it["content"].as_str().unwrap().to_owned())
            .collect()
    }
}

async fn edit(person: &HttpClient, message: i64, text: &str, version: i64) -> (u16, Value) {
    let body = json!({"content": text, "expected_version": version});
    person
        .patch(&format!("/api/messages/{message}"), body)
        .await
}

async fn revisions(person: &HttpClient, message: i64, query: &str) -> (u16, Value) {
    person
        .get(&format!("/api/messages/{message}/revisions{query}"))
        .await
}

fn versions(page: &Value) -> Vec<i64> {
    let all = page["data"].as_array().unwrap();
    all.iter()
        .map(|it| it["version"].as_i64().unwrap())
        .collect()
}

on_sqlite! {
    async fn the_author_edits_an_earlier_message_from_which_a_branch_starts(backend) {
        let talk = Talk::start(backend, &[]).await;
        let first = talk.post(&talk.cyd, "One.").await;
        talk.post(&talk.ann, "Two.").await;
        let path = format!("/api/conversations/{}/branch", talk.conversation);
        let branch = expect(201, talk.cyd.post(&path, json!({"message_id": first})).await);

        let edited = expect(200, edit(&talk.cyd, first, "Uno.", 1).await);

        assert_eq!(edited["version"], 2);
        assert!(edited["edited_at"].is_string());
        assert_eq!(talk.texts(talk.conversation).await, ["Uno.", "Two."]);
        assert_eq!(talk.texts(id(&branch["conversation"])).await, ["One."]);
        talk.app.close().await;
    }

    async fn a_moderator_edits_a_message_of_another_person_and_a_member_does_not(backend) {
        let talk = Talk::start(backend, &[]).await;
        let message = talk.post(&talk.ann, "One.").await;

        let refused = edit(&talk.cyd, message, "Mine.", 1).await;
        let edited = edit(&talk.ben, message, "Uno.", 1).await;

        assert_eq!(refusal(&refused), (403, "forbidden".to_owned()));
        assert_eq!(expect(200, edited)["content"], "Uno.");
        talk.app.close().await;
    }

    async fn moderators_read_the_newest_twenty_replaced_texts(backend) {
        let talk = Talk::start(backend, &[]).await;
        let message = talk.post(&talk.cyd, "Text 1.").await;
        for version in 1..=22 {
            let text = format!("Text {}.", version + 1);
            expect(200, edit(&talk.cyd, message, &text, version).await);
        }

        let all = expect(200, revisions(&talk.ben, message, "").await);
        let first = expect(200, revisions(&talk.ben, message, "?limit=2").await);
        let next = expect(200, revisions(&talk.ben, message, &format!("?limit=2&before={}", first["cursor"])).await);

        assert_eq!(versions(&all), (3..=22).rev().collect::<Vec<_>>());
        assert_eq!((&all["has_more"], &all["cursor"]), (&json!(false), &Value::Null));
        assert_eq!(all["data"][0]["content"], "Text 22.");
        assert!(all["data"][0]["replaced_at"].is_string());
        assert_eq!((versions(&first), versions(&next)), (vec![22, 21], vec![20, 19]));
        assert_eq!(first["has_more"], true);
        let own = revisions(&talk.cyd, message, "").await;
        assert_eq!(refusal(&own), (403, "forbidden".to_owned()));
        expect(204, talk.cyd.delete(&format!("/api/messages/{message}")).await);
        assert_eq!(revisions(&talk.ben, message, "").await.0, 404);
        talk.app.close().await;
    }

    async fn an_edit_over_the_quota_of_the_owner_is_refused(backend) {
        let talk = Talk::start(backend, &[("LIMIT_STORED_MIB_PER_USER", "1")]).await;
        let message = talk.post(&talk.cyd, "One.").await;
        let text = |n: usize| format!("{n}{}", "x".repeat(60_000));
        let mut version = 1;
        let refused = loop {
            let answer = edit(&talk.cyd, message, &text(version), i64::try_from(version).unwrap()).await;
            if answer.0 != 200 {
                break answer;
            }
            version += 1;
        };

        assert_eq!(refusal(&refused), (413, "storage_full".to_owned()));
        assert!(version > 10, "{version} edits fit into 1 MiB");
        assert_eq!(talk.texts(talk.conversation).await, [text(version - 1)]);
        talk.app.close().await;
    }

    async fn edits_and_selections_of_swipes_have_a_rate_limit_of_their_own(backend) {
        let talk = Talk::start(backend, &[("LIMIT_POSTS_PER_MINUTE", "3")]).await;
        let message = talk.post(&talk.cyd, "One.").await;
        let swipe = format!("/api/messages/{message}/swipe");
        for version in 1..=2 {
            expect(200, edit(&talk.cyd, message, &format!("Text {version}."), version).await);
        }
        expect(200, talk.cyd.patch(&swipe, json!({"position": 0})).await);

        let edited = edit(&talk.cyd, message, "Text 3.", 3).await;
        let selected = talk.cyd.patch(&swipe, json!({"position": 0})).await;

        assert_eq!(refusal(&edited), (429, "rate_limited".to_owned()));
        assert_eq!(refusal(&selected), (429, "rate_limited".to_owned()));
        talk.post(&talk.cyd, "A post still counts by itself.").await;
        let path = format!("/api/messages/{message}");
        expect(200, talk.cyd.patch(&path, json!({"visibility": "excluded"})).await);
        talk.app.close().await;
    }
}

on_both! {
    async fn of_two_editors_neither_loses_a_text(backend) {
        let talk = Talk::start(backend, &[]).await;
        let message = talk.post(&talk.cyd, "As it was.").await;

        let (one, two) = futures::join!(
            edit(&talk.cyd, message, "By Cyd.", 1),
            edit(&talk.ben, message, "By Ben.", 1)
        );
        let (won, lost) = if one.0 == 200 { (one, two) } else { (two, one) };
        assert_eq!((won.0, refusal(&lost)), (200, (409, "edit_conflict".to_owned())));
        let present = lost.1["error"]["current"].clone();
        assert_eq!(present["content"], won.1["content"]);
        let mine = if won.1["content"] == "By Cyd." { "By Ben." } else { "By Cyd." };
        let saved = edit(&talk.ben, message, mine, present["version"].as_i64().unwrap()).await;

        assert_eq!(expect(200, saved)["version"], 3);
        let kept = expect(200, revisions(&talk.ben, message, "").await);
        let texts: Vec<_> = kept["data"].as_array().unwrap().iter().map(|it| it["content"].clone()).collect();
        assert_eq!(texts, [won.1["content"].clone(), json!("As it was.")]);
        talk.app.close().await;
    }
}
