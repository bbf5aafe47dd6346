//! Tests of the log probabilities of tokens, for clients that request them.

use serde_json::{Value, json};

use super::fixture::{V1Fixture, id};
use super::simple_client::fold_items;
use super::text::Schema;
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;

fn script_with_logprobs() -> ResponseScript {
    ResponseScript::stream()
        .role()
        .text_with_logprob("Hé", -0.25, &[("Hé", -0.25), ("Ho", -1.5)])
        .text_with_logprob("llo", -0.5, &[])
        .finish("stop")
        .usage(1, 2)
        .done()
}

fn token_logprob(token: &str, logprob: f64) -> Value {
    json!({ "token": token, "logprob": logprob, "bytes": token.as_bytes() })
}

on_sqlite! {
    async fn logprobs_agree_in_the_stream_the_response_and_the_stored_response(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.always(script_with_logprobs());
        let asked = json!({ "input": "Hi.", "top_logprobs": 2, "include": ["message.output_text.logprobs"] });
        let mut later = asked.clone();
        later["background"] = json!(true);

        let whole = fixture.program.respond(asked.clone()).await;
        let events = fixture.program.stream(asked).await.rest().await;
        let queued = fixture.program.stream(later).await.rest().await;

        let mut tokens = json!([token_logprob("Hé", -0.25), token_logprob("llo", -0.5)]);
        tokens[0]["top_logprobs"] = json!([token_logprob("Hé", -0.25), token_logprob("Ho", -1.5)]);
        tokens[1]["top_logprobs"] = json!([]);
        let part = json!({ "type": "output_text", "text": "Héllo", "annotations": [], "logprobs": tokens });
        assert_eq!(whole["output"][0]["content"], json!([part]));
        assert_eq!(whole["top_logprobs"], 2);
        Schema::read().check("ResponseResource", &whole);
        for events in [events, queued] {
            let ended = &events.last().unwrap()["response"];
            assert_eq!(ended["output"][0]["content"], json!([part]));
            assert_eq!(json!(fold_items(&events)), ended["output"]);
            let kept = fixture.program.get(&format!("/responses/{}?include[]=message.output_text.logprobs", id(ended))).await;
            assert_eq!(kept, (200, ended.clone()));
            for event in &events {
                Schema::read().check_event(event);
            }
        }
        for n in 0..3 {
            let sent = fixture.upstream.body(n);
            assert_eq!((&sent["logprobs"], &sent["top_logprobs"]), (&json!(true), &json!(2)));
        }
        let without_logprobs = fixture.program.respond(json!({ "input": "Hi." })).await;
        assert_eq!(without_logprobs["output"][0]["content"][0]["logprobs"], json!([]));
        assert_eq!(fixture.upstream.body(3).get("logprobs"), None);
        let other = fixture.program.get(&format!("/responses/{}?include[]=all", id(&whole))).await;
        assert_eq!((other.0, &other.1["error"]["param"]), (400, &json!("include")));
        fixture.close().await;
    }

    async fn logprobs_of_an_attempt_without_output_are_dropped(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::stream().role().text_with_logprob("", -9.0, &[]).close());
        fixture.upstream.next(script_with_logprobs());

        let response = fixture.program.respond(json!({ "input": "Hi.", "top_logprobs": 1 })).await;

        let logprobs = &response["output"][0]["content"][0]["logprobs"];
        assert_eq!(logprobs.as_array().map(Vec::len), Some(2), "{response}");
        fixture.close().await;
    }

    async fn logprobs_are_not_requested_from_unsupporting_models(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.add_model("anthropic", "claude").await;
        let ada = fixture.admin.create_character("Ada", None).await;
        let ada = format!("character:{}", ada["id"]);

        for model in ["claude", ada.as_str()] {
            let refused = fixture.program.respond_with_error(json!({ "model": model, "input": "x", "top_logprobs": 1 })).await;
            assert_eq!(refused, (400, "unsupported_parameter".into(), json!("top_logprobs")), "{model}");
        }

        assert_eq!(fixture.n_rows("responses").await, 0);
        assert_eq!(fixture.upstream.n_requests(), 0);
        fixture.close().await;
    }
}
