//! Tests of `store: false`: the same response, and nothing is stored.

use serde_json::json;

use super::fixture::{V1Fixture, id, kinds, plain, prompt_texts};
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::statements::Statements;

on_sqlite! {
    async fn an_unstored_response_leaves_nothing_in_the_database(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.reply_with("The canary sings.");
        let body = json!({ "input": "Where is my canary?", "store": false });

        let response = fixture.program.respond(body.clone()).await;
        let events = fixture.program.stream(body).await.rest().await;

        assert_eq!(plain(&response), plain(&events.last().unwrap()["response"]));
        assert_eq!(kinds(&events).len(), 11);
        let path = format!("/responses/{}", id(&response));
        assert_eq!(fixture.program.get(&path).await.0, 404);
        assert_eq!(fixture.program.delete(&path).await.0, 404);
        assert_eq!(fixture.program.post(&format!("{path}/cancel"), json!({})).await.0, 404);
        assert_eq!(fixture.program.get(&format!("{path}/input_items")).await.0, 404);
        let next = json!({ "input": "x", "previous_response_id": id(&response) });
        assert_eq!(fixture.program.respond_with_error(next).await.1, "previous_response_not_found");
        let everything = DatabaseFacts::open(&fixture.app.database).await.everything().await;
        assert!(!everything.iter().any(|it| it.contains("canary")));
        fixture.close().await;
    }

    async fn an_unstored_response_may_continue_a_stored_one_and_stores_nothing(backend) {
        let fixture = V1Fixture::open(backend).await;
        let first = fixture.program.respond(json!({ "input": "one" })).await;
        let before = fixture.n_rows("response_items").await;

        fixture.program.respond(json!({ "input": "two", "previous_response_id": id(&first), "store": false })).await;

        assert_eq!(prompt_texts(&fixture.upstream.body(1)), ["one", "Hello.", "two"]);
        assert_eq!(fixture.n_rows("response_items").await, before);
        assert_eq!(fixture.n_rows("responses").await, 1);
        fixture.close().await;
    }

    async fn the_output_of_an_unstored_response_can_be_sent_as_input(backend) {
        let fixture = V1Fixture::open(backend).await;
        let first = fixture.program.respond(json!({ "input": "one", "store": false })).await;
        let input = json!([{ "role": "user", "content": "one" }, first["output"][0], { "role": "user", "content": "two" }]);

        fixture.program.respond(json!({ "input": input, "store": false })).await;

        assert_eq!(prompt_texts(&fixture.upstream.body(1)), ["one", "Hello.", "two"]);
        fixture.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_of_an_unstored_response_uses_the_response_tables() {
    let name = "v1::stateless::no_statement_of_an_unstored_response_uses_the_response_tables";
    let Some(statements) = Statements::alone(name) else {
        return;
    };
    let fixture = V1Fixture::open(TestBackend::Sqlite).await;
    let body = json!({ "input": "Hi.", "store": false });
    fixture.program.respond(body.clone()).await;
    statements.take_statements();

    fixture.program.stream(body).await.rest().await;

    let all = statements.take_statements();
    let of_ours: Vec<&String> = all
        .iter()
        .filter(|it| it.contains("response") || it.contains("api_conversation"))
        .collect();
    // The search index is maintained independently of requests.
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
    fixture.close().await;
}
