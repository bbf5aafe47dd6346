//! Tests of compaction: a long history becomes a summary that only its owner can send again.

use serde_json::{Value, json};

use super::fixture::{V1Fixture, id, prompt_lines, prompt_texts};
use crate::support::backends::on_sqlite;
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::v1_client::{V1Client, error_of};

async fn compact(program: &V1Client, mut body: Value) -> (u16, Value) {
    if body.get("model").is_none() {
        body["model"] = json!("scripted");
    }
    program.post("/responses/compact", body).await
}

/// This output as input, followed by a user message.
fn output_and(output: &Value, text: &str) -> Value {
    let mut input = output.as_array().unwrap().clone();
    input.push(json!({ "role": "user", "content": text }));
    json!(input)
}

on_sqlite! {
    async fn a_summary_sent_as_input_replaces_the_history_in_the_prompt(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::say("Hello, Ann."));
        let input = json!([{ "role": "system", "content": "rule" }, { "role": "user", "content": "I am Ann." }]);
        let first = fixture.program.respond(json!({ "input": input })).await;
        fixture.upstream.next(ResponseScript::say("Ann the canary said hello."));

        let (status, compacted) = compact(&fixture.program, json!({ "previous_response_id": id(&first), "instructions": "be brief" })).await;

        assert_eq!(status, 200, "{compacted}");
        assert_eq!(compacted["object"], "response.compaction");
        assert!(compacted["created_at"].is_i64() && compacted["usage"]["total_tokens"].as_i64() > Some(0));
        let output = compacted["output"].as_array().unwrap();
        let roles: Vec<&Value> = output.iter().map(|it| &it["role"]).collect();
        assert_eq!(roles, [&json!("system"), &json!("user"), &Value::Null]);
        assert_eq!(output[2]["type"], "compaction");
        assert!(!compacted.to_string().contains("canary"), "the summary is not encrypted");
        assert_eq!(prompt_texts(&fixture.upstream.body(1))[..4], ["be brief", "rule", "I am Ann.", "Hello, Ann."]);
        assert_eq!(fixture.n_rows("responses").await, 1);
        let everything = DatabaseFacts::open(&fixture.app.database).await.everything().await;
        assert!(!everything.iter().any(|it| it.contains("canary")));

        let next = fixture.program.respond(json!({ "input": output_and(&compacted["output"], "Who am I?") })).await;
        let last = fixture.program.respond(json!({ "input": "And now?", "previous_response_id": id(&next) })).await;

        for at in [2, 3] {
            let prompt = prompt_lines(&fixture.upstream.body(at));
            let summary = ("system".to_owned(), "Ann the canary said hello.");
            assert_eq!((prompt[2].0.clone(), prompt[2].1.split("\n\n").last().unwrap()), summary);
            assert_eq!(prompt[3], ("user".to_owned(), "Who am I?".to_owned()));
        }
        assert_eq!(last["status"], "completed");
        fixture.close().await;
    }

    async fn only_its_owner_can_use_a_summary(backend) {
        let fixture = V1Fixture::open(backend).await;
        let other = V1Client::new(&fixture.app.register("bob").await).await;
        let (_, compacted) = compact(&fixture.program, json!({ "input": "I am Ann." })).await;
        let n_requests = fixture.upstream.n_requests();
        let sealed = ("invalid_encrypted_content".to_owned(), json!("input[1].encrypted_content"));

        let foreign = other.respond_with_error(json!({ "input": output_and(&compacted["output"], "Who?") })).await;
        let broken = json!([{ "role": "user", "content": "Hi." }, { "type": "compaction", "encrypted_content": "v1:AAAA" }]);
        let broken = fixture.program.respond_with_error(json!({ "input": broken, "store": false })).await;
        let kept = fixture.program.post("/conversations", json!({ "items": [{ "type": "compaction", "encrypted_content": "x" }] })).await;

        assert_eq!(foreign, (400, sealed.0.clone(), sealed.1.clone()));
        assert_eq!(broken, (400, sealed.0.clone(), sealed.1));
        assert_eq!(error_of(&kept), (400, sealed.0, json!("items[0].encrypted_content")));
        assert_eq!(fixture.upstream.n_requests(), n_requests);
        fixture.close().await;
    }

    async fn compaction_rejects_invalid_requests_and_reports_model_failures(backend) {
        let fixture = V1Fixture::open(backend).await;
        let refused = async |body: Value| error_of(&fixture.program.post("/responses/compact", body).await);
        let missing = |name: &str| (400, "missing_required_parameter".to_owned(), json!(name));

        assert_eq!(refused(json!({ "input": "x" })).await, missing("model"));
        assert_eq!(refused(json!({ "model": "scripted" })).await, missing("input"));
        assert_eq!(refused(json!({ "model": "none", "input": "x" })).await.0, 404);
        assert_eq!(refused(json!({ "model": "scripted", "input": "x", "stream": true })).await.1, "unknown_parameter");
        let previous = json!({ "model": "scripted", "previous_response_id": "resp_x" });
        assert_eq!(refused(previous).await.1, "previous_response_not_found");
        assert_eq!(fixture.upstream.n_requests(), 0);
        fixture.upstream.next(ResponseScript::status(400));
        let failed = refused(json!({ "model": "scripted", "input": "x" })).await;
        assert_eq!(failed, (502, "upstream_error".to_owned(), Value::Null));
        fixture.upstream.next(ResponseScript::say(""));
        assert_eq!(refused(json!({ "model": "scripted", "input": "x" })).await.0, 502);
        fixture.close().await;
    }
}
