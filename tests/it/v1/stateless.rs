//! Tests of `store: false`: the same response, and nothing is stored.

use serde_json::json;

use super::fixture::{V1Fixture, id, kinds, plain, prompt_texts};
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::statements::Statements;

on_sqlite! {
    async fn what_is_not_stored_leaves_nothing_behind(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.upstream.reply_with("The canary sings.");
        let body = json!({ "input": "Where is my canary?", "store": false });

        let response = stage.program.respond(body.clone()).await;
        let events = stage.program.stream(body).await.rest().await;

        assert_eq!(plain(&response), plain(&events.last().unwrap()["response"]));
        assert_eq!(kinds(&events).len(), 11);
        let path = format!("/responses/{}", id(&response));
        assert_eq!(stage.program.get(&path).await.0, 404);
        assert_eq!(stage.program.delete(&path).await.0, 404);
        assert_eq!(stage.program.post(&format!("{path}/cancel"), json!({})).await.0, 404);
        assert_eq!(stage.program.get(&format!("{path}/input_items")).await.0, 404);
        let next = json!({ "input": "x", "previous_response_id": id(&response) });
        assert_eq!(stage.program.respond_with_error(next).await.1, "previous_response_not_found");
        let everything = DatabaseFacts::open(&stage.app.database).await.everything().await;
        assert!(!everything.iter().any(|it| it.contains("canary")));
        stage.close().await;
    }

    async fn it_may_go_on_from_what_is_stored_and_stores_nothing(backend) {
        let stage = V1Fixture::open(backend).await;
        let first = stage.program.respond(json!({ "input": "one" })).await;
        let before = stage.n_rows("response_items").await;

        stage.program.respond(json!({ "input": "two", "previous_response_id": id(&first), "store": false })).await;

        assert_eq!(prompt_texts(&stage.upstream.body(1)), ["one", "Hello.", "two"]);
        assert_eq!(stage.n_rows("response_items").await, before);
        assert_eq!(stage.n_rows("responses").await, 1);
        stage.close().await;
    }

    async fn its_output_can_be_handed_in_again(backend) {
        let stage = V1Fixture::open(backend).await;
        let first = stage.program.respond(json!({ "input": "one", "store": false })).await;
        let input = json!([{ "role": "user", "content": "one" }, first["output"][0], { "role": "user", "content": "two" }]);

        stage.program.respond(json!({ "input": input, "store": false })).await;

        assert_eq!(prompt_texts(&stage.upstream.body(1)), ["one", "Hello.", "two"]);
        stage.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_of_it_names_a_table_of_responses() {
    let name = "v1::stateless::no_statement_of_it_names_a_table_of_responses";
    let Some(statements) = Statements::alone(name) else {
        return;
    };
    let stage = V1Fixture::open(TestBackend::Sqlite).await;
    let body = json!({ "input": "Hi.", "store": false });
    stage.program.respond(body.clone()).await;
    statements.take();

    stage.program.stream(body).await.rest().await;

    let all = statements.take();
    let of_ours: Vec<&String> = all
        .iter()
        .filter(|it| it.contains("response") || it.contains("api_conversation"))
        .collect();
    // The maintenance of the search index runs at its own times, for no request.
    let writes = all.iter().filter(|it| {
        ["INSERT", "UPDATE", "DELETE"]
            .iter()
            .any(|word| it.starts_with(word))
            && !it.contains("message_search(message_search, rank)")
    });
    assert!(of_ours.is_empty(), "{of_ours:?}");
    assert!(
        writes.clone().all(|it| it.contains("api_keys")),
        "{:?}",
        writes.collect::<Vec<_>>()
    );
    stage.close().await;
}
