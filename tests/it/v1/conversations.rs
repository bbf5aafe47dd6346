//! Tests of conversations under `/v1`: a log of items that responses read and extend.

use serde_json::{Value, json};

use super::fixture::{V1Fixture, id, prompt_texts};
use crate::support::backends::on_sqlite;
use crate::support::http_client::expect;
use crate::support::v1_client::{V1Client, error_of};

on_sqlite! {
    async fn a_conversation_keeps_the_items_of_its_responses(backend) {
        let fixture = V1Fixture::open(backend).await;
        let items = json!([{ "role": "user", "content": "zero" }]);
        let made = expect(200, fixture.program.post("/conversations", json!({ "items": items, "metadata": { "a": "b" } })).await);
        let path = format!("/conversations/{}", id(&made));
        let turn = |input: &str| json!({ "input": input, "conversation": id(&made) });

        let first = fixture.program.respond(turn("one")).await;
        fixture.program.respond(turn("two")).await;

        assert_eq!(prompt_texts(&fixture.upstream.body(1)), ["zero", "one", "Hello.", "two"]);
        assert_eq!(first["conversation"], json!({ "id": made["id"] }));
        let (_, list) = fixture.program.get(&format!("{path}/items?order=asc")).await;
        let list = list["data"].as_array().unwrap().clone();
        let texts: Vec<&Value> = list.iter().map(|it| &it["content"][0]["text"]).collect();
        assert_eq!(texts, ["zero", "one", "Hello.", "two", "Hello."]);
        assert_eq!(list[2]["id"], first["output"][0]["id"]);
        let one = format!("{path}/items/{}", id(&list[0]));
        assert_eq!(fixture.program.get(&one).await, (200, list[0].clone()));
        assert_eq!(fixture.program.delete(&one).await.1["id"], made["id"]);
        assert_eq!(fixture.program.get(&one).await.0, 404);
        let (_, noted) = fixture.program.post(&path, json!({ "metadata": { "c": "d" } })).await;
        assert_eq!(noted["metadata"], json!({ "c": "d" }));
        fixture.close().await;
    }

    async fn a_body_without_a_json_content_type_is_rejected_unless_it_is_empty(backend) {
        let fixture = V1Fixture::open(backend).await;

        let untyped = fixture.program.post_untyped("/conversations", "{\"metadata\":{}}").await;
        let nothing = fixture.program.post_untyped("/conversations", "").await;

        assert_eq!(error_of(&untyped).0, 415);
        assert_eq!(nothing.0, 200, "{}", nothing.1);
        assert_eq!(fixture.n_rows("api_conversations").await, 1);
        fixture.close().await;
    }

    async fn a_repeated_item_gets_its_own_id_and_pages_continue_after_it(backend) {
        let fixture = V1Fixture::open(backend).await;
        let made = expect(200, fixture.program.post("/conversations", json!({})).await);
        let path = format!("/conversations/{}/items", id(&made));
        let item = |text: &str| json!({ "id": "msg_1", "role": "user", "content": text });
        let items = json!({ "items": [item("a"), item("b")] });
        expect(200, fixture.program.post(&path, items.clone()).await);

        let added = expect(200, fixture.program.post(&path, items).await);

        assert!(added["data"].as_array().unwrap().iter().all(|it| it["id"] != "msg_1"), "{added}");
        let (mut after, mut texts) = (String::new(), Vec::new());
        loop {
            let (status, page) = fixture.program.get(&format!("{path}?order=asc&limit=1{after}")).await;
            assert_eq!(status, 200, "{page}");
            texts.push(page["data"][0]["content"][0]["text"].as_str().unwrap().to_owned());
            after = format!("&after={}", page["last_id"].as_str().unwrap());
            if page["has_more"] == false {
                break;
            }
        }
        assert_eq!(texts, ["a", "b", "a", "b"]);
        let (_, newest) = fixture.program.get(&format!("{path}?limit=3")).await;
        assert_eq!(newest["data"].as_array().map(Vec::len), Some(3));
        assert_eq!(newest["data"][0], added["data"][1], "the newest item is not first");
        let unknown = fixture.program.get(&format!("{path}?after=msg_9")).await;
        assert_eq!(unknown.0, 400);
        fixture.close().await;
    }

    async fn a_deleted_conversation_is_removed_after_its_last_response(backend) {
        let fixture = V1Fixture::open(backend).await;
        let noted = json!({ "metadata": { "a": "b" } });
        let made = expect(200, fixture.program.post("/conversations", noted).await);
        let turn = json!({ "input": "one", "conversation": id(&made) });
        let response = fixture.program.respond(turn).await;
        fixture.program.delete(&format!("/conversations/{}", id(&made))).await;
        let parts = fixture.app.app.responses.services();

        troupe::responses::recovery::clean_up(parts).await.unwrap();
        assert_eq!(
            fixture.n_rows("api_conversations").await,
            1,
            "a conversation with a response was removed",
        );
        assert_eq!(fixture.n_rows("api_conversations WHERE CAST(metadata AS TEXT) LIKE '%b%'").await, 0);
        fixture.program.delete(&format!("/responses/{}", id(&response))).await;
        troupe::responses::recovery::clean_up(parts).await.unwrap();

        assert_eq!(fixture.n_rows("api_conversations").await, 0);
        fixture.close().await;
    }

    async fn a_conversation_runs_one_response_at_a_time(backend) {
        let fixture = V1Fixture::open(backend).await;
        let made = expect(200, fixture.program.post("/conversations", json!({})).await);
        let turn = json!({ "input": "one", "conversation": id(&made) });
        let gate = fixture.upstream.gate();
        let mut stream = fixture.program.stream(turn.clone()).await;
        stream.until("response.in_progress").await;

        let second = fixture.program.respond_with_error(turn.clone()).await;

        assert_eq!((second.0, second.1.as_str()), (409, "conversation_locked"));
        gate.open();
        stream.rest().await;
        fixture.program.respond(turn.clone()).await;
        let (_, gone) = fixture.program.delete(&format!("/conversations/{}", id(&made))).await;
        assert_eq!(gone["object"], "conversation.deleted");
        assert_eq!(fixture.program.respond_with_error(turn).await.0, 404);
        assert_eq!(
            fixture.n_rows("responses").await,
            2,
            "responses of the deleted conversation were removed",
        );
        fixture.close().await;
    }

    async fn the_conversations_of_a_user_are_listed_newest_first_with_pages(backend) {
        let fixture = V1Fixture::open(backend).await;
        let mut ids = Vec::new();
        for _ in 0..3 {
            let made = expect(200, fixture.program.post("/conversations", json!({})).await);
            ids.insert(0, made["id"].clone());
        }
        let ben = V1Client::new(&fixture.app.register("ben").await).await;
        let of_ben = expect(200, ben.post("/conversations", json!({})).await);
        let list = async |query: &str| {
            let page = expect(200, fixture.program.get(&format!("/conversations{query}")).await);
            let found: Vec<Value> = page["data"].as_array().unwrap().iter().map(|it| it["id"].clone()).collect();
            (found, page["has_more"] == true)
        };

        assert_eq!(list("").await, (ids.clone(), false));
        assert_eq!(list("?limit=2").await, (ids[..2].to_vec(), true));
        let after = ids[1].as_str().unwrap();
        assert_eq!(list(&format!("?limit=2&after={after}")).await, (ids[2..].to_vec(), false));
        assert_eq!(list(&format!("?order=asc&after={after}")).await, (ids[..1].to_vec(), false));
        let foreign = fixture.program.get(&format!("/conversations?after={}", id(&of_ben))).await;
        assert_eq!(error_of(&foreign), (400, "invalid_value".into(), json!("after")));
        fixture.program.delete(&format!("/conversations/{after}")).await;
        assert_eq!(list("").await.0, [ids[0].clone(), ids[2].clone()]);
        fixture.close().await;
    }
}
