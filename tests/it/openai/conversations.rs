//! Conversations: a log of items that responses read and add to.

use serde_json::Value;
use serde_json::json;

use super::stage::Stage;
use super::stage::id;
use super::stage::said;
use crate::support::backends::on_both;
use crate::support::person::expect;

on_both! {
    // R40
    async fn what_is_said_in_a_conversation_is_remembered_there(backend) {
        let stage = Stage::open(backend).await;
        let items = json!([{ "role": "user", "content": "zero" }]);
        let made = expect(200, stage.program.post("/conversations", json!({ "items": items, "metadata": { "a": "b" } })).await);
        let path = format!("/conversations/{}", id(&made));
        let turn = |input: &str| json!({ "input": input, "conversation": id(&made) });

        let first = stage.program.respond(turn("one")).await;
        stage.program.respond(turn("two")).await;

        assert_eq!(said(&stage.upstream.body(1)), ["zero", "one", "Hello.", "two"]);
        assert_eq!(first["conversation"], json!({ "id": made["id"] }));
        let (_, list) = stage.program.get(&format!("{path}/items?order=asc")).await;
        let list = list["data"].as_array().unwrap().clone();
        let texts: Vec<&Value> = list.iter().map(|it| &it["content"][0]["text"]).collect();
        assert_eq!(texts, ["zero", "one", "Hello.", "two", "Hello."]);
        assert_eq!(list[2]["id"], first["output"][0]["id"]);
        let one = format!("{path}/items/{}", id(&list[0]));
        assert_eq!(stage.program.get(&one).await, (200, list[0].clone()));
        assert_eq!(stage.program.delete(&one).await.1["id"], made["id"]);
        assert_eq!(stage.program.get(&one).await.0, 404);
        let (_, noted) = stage.program.post(&path, json!({ "metadata": { "c": "d" } })).await;
        assert_eq!(noted["metadata"], json!({ "c": "d" }));
        stage.close().await;
    }

    // R41
    async fn one_response_at_a_time_goes_on_in_a_conversation(backend) {
        let stage = Stage::open(backend).await;
        let made = expect(200, stage.program.post("/conversations", json!({})).await);
        let turn = json!({ "input": "one", "conversation": id(&made) });
        let gate = stage.upstream.gate();
        let mut ears = stage.program.stream(turn.clone()).await;
        ears.until("response.in_progress").await;

        let second = stage.program.refused(turn.clone()).await;

        assert_eq!((second.0, second.1.as_str()), (409, "conversation_locked"));
        gate.open();
        ears.rest().await;
        stage.program.respond(turn.clone()).await;
        let (_, gone) = stage.program.delete(&format!("/conversations/{}", id(&made))).await;
        assert_eq!(gone["object"], "conversation.deleted");
        assert_eq!(stage.program.refused(turn).await.0, 404);
        assert_eq!(stage.n_rows("responses").await, 2, "its responses stay");
        stage.close().await;
    }
}
