//! Tests of the log probabilities of tokens, for clients that request them.

use serde_json::{Value, json};

use super::fixture::{V1Fixture, id};
use super::simple_client::fold_items;
use super::text::Schema;
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;

fn weighed() -> ResponseScript {
    ResponseScript::stream()
        .role()
        .text_with_logprob("Hé", -0.25, &[("Hé", -0.25), ("Ho", -1.5)])
        .text_with_logprob("llo", -0.5, &[])
        .finish("stop")
        .usage(1, 2)
        .done()
}

fn told(token: &str, logprob: f64) -> Value {
    json!({ "token": token, "logprob": logprob, "bytes": token.as_bytes() })
}

on_sqlite! {
    async fn the_stream_the_response_and_the_stored_response_agree(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.upstream.always(weighed());
        let asked = json!({ "input": "Hi.", "top_logprobs": 2, "include": ["message.output_text.logprobs"] });
        let mut later = asked.clone();
        later["background"] = json!(true);

        let whole = stage.program.respond(asked.clone()).await;
        let events = stage.program.stream(asked).await.rest().await;
        let queued = stage.program.stream(later).await.rest().await;

        let mut tokens = json!([told("Hé", -0.25), told("llo", -0.5)]);
        tokens[0]["top_logprobs"] = json!([told("Hé", -0.25), told("Ho", -1.5)]);
        tokens[1]["top_logprobs"] = json!([]);
        let part = json!({ "type": "output_text", "text": "Héllo", "annotations": [], "logprobs": tokens });
        assert_eq!(whole["output"][0]["content"], json!([part]));
        assert_eq!(whole["top_logprobs"], 2);
        Schema::read().hold("ResponseResource", &whole);
        for events in [events, queued] {
            let ended = &events.last().unwrap()["response"];
            assert_eq!(ended["output"][0]["content"], json!([part]));
            assert_eq!(json!(fold_items(&events)), ended["output"]);
            let kept = stage.program.get(&format!("/responses/{}?include[]=message.output_text.logprobs", id(ended))).await;
            assert_eq!(kept, (200, ended.clone()));
            for event in &events {
                Schema::read().hold_event(event);
            }
        }
        for n in 0..3 {
            let sent = stage.upstream.body(n);
            assert_eq!((&sent["logprobs"], &sent["top_logprobs"]), (&json!(true), &json!(2)));
        }
        let unasked = stage.program.respond(json!({ "input": "Hi." })).await;
        assert_eq!(unasked["output"][0]["content"][0]["logprobs"], json!([]));
        assert_eq!(stage.upstream.body(3).get("logprobs"), None);
        let other = stage.program.get(&format!("/responses/{}?include[]=all", id(&whole))).await;
        assert_eq!((other.0, &other.1["error"]["param"]), (400, &json!("include")));
        stage.close().await;
    }

    async fn logprobs_of_an_unseen_attempt_are_dropped(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.upstream.next(ResponseScript::stream().role().text_with_logprob("", -9.0, &[]).close());
        stage.upstream.next(weighed());

        let response = stage.program.respond(json!({ "input": "Hi.", "top_logprobs": 1 })).await;

        let logprobs = &response["output"][0]["content"][0]["logprobs"];
        assert_eq!(logprobs.as_array().map(Vec::len), Some(2), "{response}");
        stage.close().await;
    }

    async fn logprobs_are_not_requested_from_unsupporting_models(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.add_model("anthropic", "claude").await;
        let ada = stage.admin.create_character("Ada", None).await;
        let ada = format!("character:{}", ada["id"]);

        for model in ["claude", ada.as_str()] {
            let refused = stage.program.respond_with_error(json!({ "model": model, "input": "x", "top_logprobs": 1 })).await;
            assert_eq!(refused, (400, "unsupported_parameter".into(), json!("top_logprobs")), "{model}");
        }

        assert_eq!(stage.n_rows("responses").await, 0);
        assert_eq!(stage.upstream.n_requests(), 0);
        stage.close().await;
    }
}
