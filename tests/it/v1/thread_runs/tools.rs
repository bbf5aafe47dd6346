//! Tests of the tools of runs: outputs of the client, tools of this server, and mixed batches.

use serde_json::{Value, json};

use super::support::{ThreadClient, function};
use crate::support::backends::{on_both, on_sqlite};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::expect;
use crate::support::v1_client::error_of;
use crate::v1::fixture::{V1Fixture, id, lines};

fn two_calls() -> ResponseScript {
    ResponseScript::calls(&[("call_1", "look", "{\"x\":1}"), ("call_2", "look", "{}")])
}

on_both! {
    async fn two_calls_need_exactly_their_two_outputs(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(two_calls());
        fixture.upstream.next(ResponseScript::say("Done."));
        let client = ThreadClient::new(&fixture.program, json!({ "tools": [function("look")] }), &["Look."]).await;
        let waiting = client.run_until(json!({}), "requires_action").await;
        let run = id(&waiting).to_owned();

        let calls = &waiting["required_action"]["submit_tool_outputs"]["tool_calls"];
        assert_eq!(calls[0], json!({ "id": "call_1", "type": "function", "function": { "name": "look", "arguments": "{\"x\":1}" } }));
        for (outputs, code) in [
            (vec![("call_1", "one")], "missing_tool_output"),
            (vec![("call_1", "one"), ("call_3", "x")], "unknown_tool_call"),
            (vec![("call_1", "one"), ("call_2", "two"), ("call_1", "again")], "duplicate_tool_output"),
        ] {
            let refused = error_of(&client.submit(&run, &outputs).await);
            assert_eq!((refused.0, refused.1.as_str()), (400, code));
        }
        assert_eq!(client.show(&run).await, waiting);
        let queued = expect(200, client.submit(&run, &[("call_1", "one"), ("call_2", "two")]).await);
        assert_eq!((&queued["status"], &queued["required_action"]), (&json!("queued"), &Value::Null));
        let ended = client.wait_for(&run, "completed").await;
        let late = error_of(&client.submit(&run, &[("call_1", "one"), ("call_2", "two")]).await);

        assert_eq!((late.0, late.1.as_str()), (400, "run_not_awaiting_tools"));
        let steps = client.steps(&run).await;
        let kinds: Vec<&Value> = steps.iter().map(|it| &it["type"]).collect();
        assert_eq!(kinds, ["tool_calls", "message_creation"]);
        let totals = steps.iter().map(|it| it["usage"]["total_tokens"].as_i64().unwrap());
        assert_eq!(Some(totals.sum()), ended["usage"]["total_tokens"].as_i64());
        assert_eq!(lines(&fixture.upstream.body(1))[1..], ["assistant||call_1,call_2|", "tool|one||call_1", "tool|two||call_2"]);
        fixture.close().await;
    }

    async fn of_two_equal_concurrent_submissions_one_continues_the_run(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(two_calls());
        let client = ThreadClient::new(&fixture.program, json!({ "tools": [function("look")] }), &["Look."]).await;
        let waiting = client.run_until(json!({}), "requires_action").await;
        let outputs = [("call_1", "one"), ("call_2", "two")];

        let (first, second) = futures::join!(client.submit(id(&waiting), &outputs), client.submit(id(&waiting), &outputs));

        let refused = if first.0 == 200 { &second } else { &first };
        assert_eq!(error_of(refused).1, "run_not_awaiting_tools");
        client.wait_for(id(&waiting), "completed").await;
        assert_eq!(fixture.upstream.n_requests(), 2);
        fixture.close().await;
    }
}

on_sqlite! {
    async fn tools_of_this_server_run_before_the_client_is_asked(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::calls(&[("call_1", "look", "{}"), ("call_2", "troupe_dice", "{\"roll\":\"1d1\"}")]));
        fixture.upstream.next(ResponseScript::say("Done."));
        let tools = json!([function("look"), { "type": "troupe:dice" }]);
        let client = ThreadClient::new(&fixture.program, json!({ "tools": tools }), &["Roll."]).await;

        let waiting = client.run_until(json!({}), "requires_action").await;
        let calls = waiting["required_action"]["submit_tool_outputs"]["tool_calls"].as_array().unwrap();
        assert_eq!((calls.len(), &calls[0]["id"]), (1, &json!("call_1")));
        expect(200, client.submit(id(&waiting), &[("call_1", "seen")]).await);
        client.wait_for(id(&waiting), "completed").await;

        let steps = client.steps(id(&waiting)).await;
        let calls = &steps[0]["step_details"]["tool_calls"];
        assert_eq!((&calls[0]["function"]["name"], &calls[1]["function"]["name"]), (&json!("troupe:dice"), &json!("look")));
        assert!(calls[0]["function"]["output"].as_str().is_some_and(|it| it.contains('1')), "{calls}");
        let sent = lines(&fixture.upstream.body(1));
        assert_eq!((sent[1].as_str(), sent.len()), ("assistant||call_2,call_1|", 4));
        fixture.close().await;
    }

    async fn a_forced_tool_choice_applies_only_to_the_first_model_call(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::calls(&[("call_1", "look", "{}")]));
        let client = ThreadClient::new(&fixture.program, json!({ "tools": [function("look")] }), &["Look."]).await;

        let waiting = client.run_until(json!({ "tool_choice": "required" }), "requires_action").await;
        expect(200, client.submit(id(&waiting), &[("call_1", "")]).await);
        let ended = client.wait_for(id(&waiting), "completed").await;

        assert_eq!(fixture.upstream.body(0)["tool_choice"], "required");
        assert_ne!(fixture.upstream.body(1)["tool_choice"], "required");
        assert_eq!(ended["tool_choice"], "required");
        fixture.close().await;
    }
}
