//! Tests that a blocking and a streamed response have the same content.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::fixture::{V1Fixture, deltas, id, kinds, plain, prompt_texts, text};
use super::simple_client::fold_items;
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;

/// The fields that the schema requires in a response.
const REQUIRED: [&str; 31] = [
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "incomplete_details",
    "model",
    "previous_response_id",
    "instructions",
    "output",
    "error",
    "tools",
    "tool_choice",
    "truncation",
    "parallel_tool_calls",
    "text",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "temperature",
    "reasoning",
    "usage",
    "max_output_tokens",
    "max_tool_calls",
    "store",
    "background",
    "service_tier",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
];

/// Validates documents against the specification, if its file is available.
pub(super) struct Schema(Option<Value>);

impl Schema {
    pub(super) fn read() -> Self {
        let folders = ["../shared/data", "../../shared/data"];
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let file = |it: &&str| root.join(it).join("openresponses-openapi.json");
        let found = folders.iter().map(file).find(|it| it.exists());
        Self(found.map(|it| serde_json::from_str(&fs::read_to_string(it).unwrap()).unwrap()))
    }

    /// Panics with the validation errors of the value.
    pub(super) fn check(&self, name: &str, value: &Value) {
        let Some(document) = &self.0 else { return };
        let mut schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        schema["components"] = document["components"].clone();
        let validator = jsonschema::validator_for(&schema).expect("the schema is invalid");
        let errors: Vec<String> = validator
            .iter_errors(value)
            .map(|it| it.to_string())
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:?} in {value}");
    }

    pub(super) fn check_event(&self, event: &Value) {
        let name = match event["type"].as_str().unwrap() {
            "response.created" => "ResponseCreatedStreamingEvent",
            "response.queued" => "ResponseQueuedStreamingEvent",
            "response.in_progress" => "ResponseInProgressStreamingEvent",
            "response.completed" => "ResponseCompletedStreamingEvent",
            "response.incomplete" => "ResponseIncompleteStreamingEvent",
            "response.failed" => "ResponseFailedStreamingEvent",
            "response.output_item.added" => "ResponseOutputItemAddedStreamingEvent",
            "response.output_item.done" => "ResponseOutputItemDoneStreamingEvent",
            "response.content_part.added" => "ResponseContentPartAddedStreamingEvent",
            "response.content_part.done" => "ResponseContentPartDoneStreamingEvent",
            "response.output_text.delta" => "ResponseOutputTextDeltaStreamingEvent",
            "response.output_text.annotation.added" => {
                "ResponseOutputTextAnnotationAddedStreamingEvent"
            }
            "response.output_text.done" => "ResponseOutputTextDoneStreamingEvent",
            "response.refusal.delta" => "ResponseRefusalDeltaStreamingEvent",
            "response.refusal.done" => "ResponseRefusalDoneStreamingEvent",
            "response.reasoning_summary_part.added" => {
                "ResponseReasoningSummaryPartAddedStreamingEvent"
            }
            "response.reasoning_summary_part.done" => {
                "ResponseReasoningSummaryPartDoneStreamingEvent"
            }
            "response.reasoning_summary_text.delta" => {
                "ResponseReasoningSummaryDeltaStreamingEvent"
            }
            "response.reasoning_summary_text.done" => "ResponseReasoningSummaryDoneStreamingEvent",
            other => panic!("no such event: {other}"),
        };
        self.check(name, event);
    }
}

on_sqlite! {
    async fn a_text_is_answered_with_one_message_and_every_field(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.reply_with("Hello to you.");

        let response = fixture.program.respond(json!({ "input": "Hi." })).await;

        Schema::read().check("ResponseResource", &response);
        for name in REQUIRED {
            assert!(response.get(name).is_some(), "{name} is missing in {response}");
        }
        assert_eq!(response["status"], "completed");
        assert_eq!(response["output"].as_array().unwrap().len(), 1);
        assert_eq!(text(&response), "Hello to you.");
        let usage = &response["usage"];
        assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(7), &json!(3)));
        assert_eq!(usage["total_tokens"], 10);
        assert!(response["completed_at"].is_i64());
        assert_eq!(fixture.program.get(&format!("/responses/{}", id(&response))).await, (200, response));
        fixture.close().await;
    }

    async fn a_stream_sends_in_order_what_a_later_get_returns(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.always(ResponseScript::stream().comment().role().empty().words("One two three.").finish("stop").usage(5, 3).done());

        let events = fixture.program.stream(json!({ "input": "Hi." })).await.rest().await;

        let schema = Schema::read();
        events.iter().for_each(|it| schema.check_event(it));
        assert_eq!(kinds(&events), [
            "created", "in_progress", "output_item.added", "content_part.added",
            "output_text.delta", "output_text.delta", "output_text.delta", "output_text.done",
            "content_part.done", "output_item.done", "completed",
        ]);
        for (at, event) in events.iter().enumerate() {
            assert_eq!(event["sequence_number"], at);
        }
        let whole = &events[10]["response"];
        assert_eq!(events[0]["response"]["output"], json!([]));
        assert_eq!(deltas(&events).concat(), "One two three.");
        assert_eq!(events[7]["text"], "One two three.");
        assert_eq!(events[8]["part"], whole["output"][0]["content"][0]);
        assert_eq!(events[9]["item"], whole["output"][0]);
        let seen = fixture.program.get(&format!("/responses/{}", id(whole))).await;
        assert_eq!(seen, (200, whole.clone()));
        fixture.close().await;
    }

    async fn blocking_and_streamed_are_the_same_response(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.reply_with("The same for all.");
        let body = json!({ "input": "Hi.", "instructions": "Be brief.", "temperature": 0.5, "metadata": { "a": "b" } });

        let blocking = fixture.program.respond(body.clone()).await;
        let events = fixture.program.stream(body).await.rest().await;

        assert_eq!(plain(&blocking), plain(&events.last().unwrap()["response"]));
        fixture.close().await;
    }

    async fn text_of_every_script_is_returned_unchanged(backend) {
        let fixture = V1Fixture::open(backend).await;
        let words = "  👩‍👩‍👧 漢字 שלום\n\tend \n";
        fixture.upstream.reply_with(words);

        let response = fixture.program.respond(json!({ "input": words })).await;

        assert_eq!(text(&response), words);
        let path = format!("/responses/{}", id(&response));
        assert_eq!(text(&fixture.program.get(&path).await.1), words);
        let (_, input) = fixture.program.get(&format!("{path}/input_items")).await;
        assert_eq!(input["data"][0]["content"][0]["text"], words);
        assert_eq!(fixture.upstream.body(0)["messages"][0]["content"], words);
        fixture.close().await;
    }

    async fn a_model_that_stops_at_once_gives_an_empty_text(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.always(ResponseScript::stream().role().finish("stop").done());

        let response = fixture.program.respond(json!({ "input": "Hi." })).await;

        assert_eq!(response["status"], "completed");
        assert_eq!(response["output"][0]["content"][0]["text"], "");
        assert_eq!(fixture.upstream.n_requests(), 1);
        fixture.close().await;
    }

    async fn an_incomplete_response_gives_the_reason(backend) {
        let fixture = V1Fixture::open(backend).await;
        for (finish, reason) in [("length", "max_output_tokens"), ("content_filter", "content_filter")] {
            fixture.upstream.always(ResponseScript::stream().role().words("Not all").finish(finish).done());

            let response = fixture.program.respond(json!({ "input": "Hi.", "max_output_tokens": 16 })).await;
            let events = fixture.program.stream(json!({ "input": "Hi.", "max_output_tokens": 16 })).await.rest().await;

            assert_eq!(response["status"], "incomplete");
            assert_eq!(response["incomplete_details"]["reason"], reason);
            assert_eq!(response["output"][0]["status"], "incomplete");
            assert_eq!(kinds(&events).last().unwrap(), "incomplete");
            assert_eq!(plain(&events.last().unwrap()["response"]), plain(&response));
        }
        assert_eq!(fixture.upstream.body(0)["max_tokens"], 16);
        fixture.close().await;
    }

    async fn a_refusal_has_its_own_content_type_and_is_in_the_next_prompt(backend) {
        let fixture = V1Fixture::open(backend).await;
        let refusal = |text: &str| json!({ "choices": [{ "index": 0, "delta": { "refusal": text }, "finish_reason": null }] });
        let script = ResponseScript::stream().role().event(&refusal("I cannot ")).event(&refusal("help.")).finish("stop").usage(4, 9).done();
        fixture.upstream.always(script);

        let events = fixture.program.stream(json!({ "input": "Help!" })).await.rest().await;
        let blocking = fixture.program.respond(json!({ "input": "Help!" })).await;

        let schema = Schema::read();
        events.iter().for_each(|it| schema.check_event(it));
        assert_eq!(kinds(&events), [
            "created", "in_progress", "output_item.added", "content_part.added", "refusal.delta",
            "refusal.delta", "refusal.done", "content_part.done", "output_item.done", "completed",
        ]);
        let response = &events.last().unwrap()["response"];
        schema.check("ResponseResource", response);
        assert_eq!(response["output"][0]["content"], json!([{ "type": "refusal", "refusal": "I cannot help." }]));
        assert_eq!(json!(fold_items(&events)), response["output"]);
        assert_eq!(plain(&blocking), plain(response));
        assert_eq!(fixture.program.get(&format!("/responses/{}", id(response))).await, (200, response.clone()));
        fixture.upstream.reply_with("Hello.");
        fixture.program.respond(json!({ "input": "Why?", "previous_response_id": id(response) })).await;
        assert_eq!(prompt_texts(&fixture.upstream.body(2)), ["Help!", "I cannot help.", "Why?"]);
        fixture.close().await;
    }

    async fn reasoning_is_an_item_and_never_part_of_the_text(backend) {
        let fixture = V1Fixture::open(backend).await;
        let reasoning = json!({ "choices": [{ "index": 0, "delta": { "reasoning_content": "Hm. " }, "finish_reason": null }] });
        fixture.upstream.next(ResponseScript::stream().role().event(&reasoning).event(&reasoning).words("Yes it is.").finish("stop").usage(4, 9).done());

        let events = fixture.program.stream(json!({ "input": "Is it?" })).await.rest().await;

        let schema = Schema::read();
        events.iter().for_each(|it| schema.check_event(it));
        let response = &events.last().unwrap()["response"];
        assert_eq!(response["output"][0]["type"], "reasoning");
        assert_eq!(response["output"][0]["summary"][0]["text"], "Hm. Hm. ");
        assert_eq!(text(response), "Yes it is.");
        assert!(response["usage"]["output_tokens_details"]["reasoning_tokens"].as_i64().unwrap() > 0);
        fixture.program.respond(json!({ "input": "Sure?", "previous_response_id": id(response) })).await;
        assert!(!fixture.upstream.body(1).to_string().contains("Hm."));
        fixture.close().await;
    }

    async fn a_reply_is_cut_if_its_limit_is_below_that_of_the_model(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.reply_with("Hello to you all.");

        let response = fixture.program.respond(json!({ "input": "Hi.", "max_output_tokens": 1 })).await;

        assert_eq!(fixture.upstream.body(0)["max_tokens"], 16);
        assert_eq!((text(&response).as_str(), &response["max_output_tokens"]), ("Hello", &json!(1)));
        assert_eq!((&response["status"], &response["incomplete_details"]["reason"]), (&json!("incomplete"), &json!("max_output_tokens")));
        fixture.close().await;
    }

    async fn the_prompt_contains_everything_once_and_in_order(backend) {
        let fixture = V1Fixture::open(backend).await;
        let input = json!([
            { "role": "system", "content": "two" },
            { "type": "message", "role": "developer", "content": [{ "type": "input_text", "text": "three" }] },
            { "role": "user", "content": "four" },
        ]);

        fixture.program.respond(json!({ "instructions": "one", "input": input, "top_p": 0.5, "presence_penalty": 1 })).await;

        let body = fixture.upstream.body(0);
        assert_eq!(prompt_texts(&body), ["one", "two", "three", "four"]);
        assert_eq!(body["model"], "scripted");
        assert_eq!((&body["top_p"], &body["presence_penalty"]), (&json!(0.5), &json!(1.0)));
        assert!(
            body.get("temperature").is_none(),
            "a parameter was sent that the request does not have",
        );
        fixture.close().await;
    }

    async fn deltas_arrive_while_the_model_still_generates(backend) {
        let fixture = V1Fixture::open(backend).await;
        let gate = fixture.upstream.gate();
        fixture.upstream.reply_with("One two three.");
        let mut stream = fixture.program.stream(json!({ "input": "Hi." })).await;
        gate.step();

        let events = stream.until("response.output_text.delta").await;

        assert_eq!(deltas(&events), ["One "]);
        gate.open();
        assert_eq!(deltas(&stream.rest().await).concat(), "two three.");
        fixture.close().await;
    }
}
