//! Tests how many SQL statements a stored response, an unstored one and a chat completion need.
#![allow(clippy::print_stdout)] // the statements are read in the test output

use serde_json::json;

use super::chat_client::{ask, complete};
use super::fixture::V1Fixture;
use crate::support::backends::TestBackend;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::statements::Statements;

/// More is a regression. The row and the input at the start, the row and the output at the end.
const STORED_WRITES: usize = 4;
/// Of the key with its owner, and of the provider.
const READS: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_stored_response_writes_and_needs_four_statements_for_it() {
    let name = "v1::statements::only_a_stored_response_writes_and_needs_four_statements_for_it";
    let Some(statements) = Statements::alone(name) else {
        return;
    };
    let fixture = V1Fixture::open(TestBackend::Sqlite).await;
    fixture
        .upstream
        .always(ResponseScript::say("A short answer."));
    let mut costs = Vec::new();
    // The first iteration prepares statements and stores when the key was used.
    for _ in 0..2 {
        costs.clear();
        for store in [Some(true), Some(false), None] {
            statements.take_statements();
            let response = match store {
                Some(store) => {
                    let body = json!({"input": "Hello?", "store": store});
                    fixture.program.respond(body).await["status"].clone()
                }
                None => complete(&fixture.program, ask("Hello?")).await["object"].clone(),
            };
            assert!(response == "completed" || response == "chat.completion");
            let all = statements.take_statements();
            let all: Vec<&String> = all.iter().filter(|it| is_of_request(it)).collect();
            println!("store {store:?}: {all:#?}");
            let n_reads = all.iter().filter(|sql| sql.starts_with("SELECT")).count();
            costs.push((n_reads, all.len() - n_reads));
        }
    }

    assert_eq!(costs, [(READS, STORED_WRITES), (READS, 0), (READS, 0)]);
    fixture.close().await;
}

/// Returns whether a statement belongs to a request, and not to the loops that look for queued and for
/// lost responses, renew leases and recover runs.
fn is_of_request(sql: &str) -> bool {
    let tables = [
        "\"response_events\"",
        "\"api_conversations\"",
        "\"responses\"",
        "\"response_items\"",
        "\"api_keys\"",
        "\"llm_providers\"",
    ];
    let is_of_loop =
        sql.contains("status = '") || sql.starts_with("UPDATE \"responses\" SET \"heartbeat_at\"");
    tables.iter().any(|it| sql.contains(it)) && !is_of_loop
}
