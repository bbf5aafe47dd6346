//! Tests that a blocking and a streamed response have the same content.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::fixture::{V1Fixture, deltas, id, kinds, plain, prompt_texts, text};
use super::simple_client::fold_items;
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;

/// What the schema requires of a response.
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

/// Holds documents to the specification, where its file is at hand.
pub(super) struct Schema(Option<Value>);

impl Schema {
    pub(super) fn read() -> Self {
        let places = ["../shared/data", "../../shared/data"];
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let file = |it: &&str| root.join(it).join("openresponses-openapi.json");
        let found = places.iter().map(file).find(|it| it.exists());
        Self(found.map(|it| serde_json::from_str(&fs::read_to_string(it).unwrap()).unwrap()))
    }

    /// Panics with what does not fit.
    pub(super) fn hold(&self, name: &str, value: &Value) {
        let Some(document) = &self.0 else { return };
        let mut schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        schema["components"] = document["components"].clone();
        let validator = jsonschema::validator_for(&schema).expect("the schema is one");
        let wrong: Vec<String> = validator
            .iter_errors(value)
            .map(|it| it.to_string())
            .collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?} in {value}");
    }

    pub(super) fn hold_event(&self, event: &Value) {
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
        self.hold(name, event);
    }
}

on_sqlite! {
    async fn a_text_is_answered_with_one_message_and_every_field(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.upstream.reply_with("Hello to you.");

        let response = stage.program.respond(json!({ "input": "Hi." })).await;

        Schema::read().hold("ResponseResource", &response);
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
        assert_eq!(stage.program.get(&format!("/responses/{}", id(&response))).await, (200, response));
        stage.close().await;
    }

    async fn a_stream_sends_in_order_what_a_later_get_returns(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.upstream.always(ResponseScript::stream().comment().role().empty().words("One two three.").finish("stop").usage(5, 3).done());

        let events = stage.program.stream(json!({ "input": "Hi." })).await.rest().await;

        let schema = Schema::read();
        events.iter().for_each(|it| schema.hold_event(it));
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
        let seen = stage.program.get(&format!("/responses/{}", id(whole))).await;
        assert_eq!(seen, (200, whole.clone()));
        stage.close().await;
    }

    async fn blocking_and_streamed_are_the_same_response(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.upstream.reply_with("The same for all.");
        let body = json!({ "input": "Hi.", "instructions": "Be brief.", "temperature": 0.5, "metadata": { "a": "b" } });

        let blocking = stage.program.respond(body.clone()).await;
        let events = stage.program.stream(body).await.rest().await;

        assert_eq!(plain(&blocking), plain(&events.last().unwrap()["response"]));
        stage.close().await;
    }

    async fn every_script_comes_back_as_it_was(backend) {
        let stage = V1Fixture::open(backend).await;
        let words = "  👩‍👩‍👧 漢字 שלום\n\tend \n";
        stage.upstream.reply_with(words);

        let response = stage.program.respond(json!({ "input": words })).await;

        assert_eq!(text(&response), words);
        let path = format!("/responses/{}", id(&response));
        assert_eq!(text(&stage.program.get(&path).await.1), words);
        let (_, input) = stage.program.get(&format!("{path}/input_items")).await;
        assert_eq!(input["data"][0]["content"][0]["text"], words);
        assert_eq!(stage.upstream.body(0)["messages"][0]["content"], words);
        stage.close().await;
    }

    async fn a_model_that_stops_at_once_has_said_nothing(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.upstream.always(ResponseScript::stream().role().finish("stop").done());

        let response = stage.program.respond(json!({ "input": "Hi." })).await;

        assert_eq!(response["status"], "completed");
        assert_eq!(response["output"][0]["content"][0]["text"], "");
        assert_eq!(stage.upstream.n_requests(), 1);
        stage.close().await;
    }

    async fn what_was_cut_short_says_why(backend) {
        let stage = V1Fixture::open(backend).await;
        for (finish, reason) in [("length", "max_output_tokens"), ("content_filter", "content_filter")] {
            stage.upstream.always(ResponseScript::stream().role().words("Not all").finish(finish).done());

            let response = stage.program.respond(json!({ "input": "Hi.", "max_output_tokens": 16 })).await;
            let events = stage.program.stream(json!({ "input": "Hi.", "max_output_tokens": 16 })).await.rest().await;

            assert_eq!(response["status"], "incomplete");
            assert_eq!(response["incomplete_details"]["reason"], reason);
            assert_eq!(response["output"][0]["status"], "incomplete");
            assert_eq!(kinds(&events).last().unwrap(), "incomplete");
            assert_eq!(plain(&events.last().unwrap()["response"]), plain(&response));
        }
        assert_eq!(stage.upstream.body(0)["max_tokens"], 16);
        stage.close().await;
    }

    async fn a_refusal_is_reported_as_one_and_kept_for_the_next_turn(backend) {
        let stage = V1Fixture::open(backend).await;
        let refusal = |text: &str| json!({ "choices": [{ "index": 0, "delta": { "refusal": text }, "finish_reason": null }] });
        let script = ResponseScript::stream().role().event(&refusal("I cannot ")).event(&refusal("help.")).finish("stop").usage(4, 9).done();
        stage.upstream.always(script);

        let events = stage.program.stream(json!({ "input": "Help!" })).await.rest().await;
        let blocking = stage.program.respond(json!({ "input": "Help!" })).await;

        let schema = Schema::read();
        events.iter().for_each(|it| schema.hold_event(it));
        assert_eq!(kinds(&events), [
            "created", "in_progress", "output_item.added", "content_part.added", "refusal.delta",
            "refusal.delta", "refusal.done", "content_part.done", "output_item.done", "completed",
        ]);
        let response = &events.last().unwrap()["response"];
        schema.hold("ResponseResource", response);
        assert_eq!(response["output"][0]["content"], json!([{ "type": "refusal", "refusal": "I cannot help." }]));
        assert_eq!(json!(fold_items(&events)), response["output"]);
        assert_eq!(plain(&blocking), plain(response));
        assert_eq!(stage.program.get(&format!("/responses/{}", id(response))).await, (200, response.clone()));
        stage.upstream.reply_with("Hello.");
        stage.program.respond(json!({ "input": "Why?", "previous_response_id": id(response) })).await;
        assert_eq!(prompt_texts(&stage.upstream.body(2)), ["Help!", "I cannot help.", "Why?"]);
        stage.close().await;
    }

    async fn what_was_thought_is_an_item_and_never_text(backend) {
        let stage = V1Fixture::open(backend).await;
        let thought = json!({ "choices": [{ "index": 0, "delta": { "reasoning_content": "Hm. " }, "finish_reason": null }] });
        stage.upstream.next(ResponseScript::stream().role().event(&thought).event(&thought).words("Yes it is.").finish("stop").usage(4, 9).done());

        let events = stage.program.stream(json!({ "input": "Is it?" })).await.rest().await;

        let schema = Schema::read();
        events.iter().for_each(|it| schema.hold_event(it));
        let response = &events.last().unwrap()["response"];
        assert_eq!(response["output"][0]["type"], "reasoning");
        assert_eq!(response["output"][0]["summary"][0]["text"], "Hm. Hm. ");
        assert_eq!(text(response), "Yes it is.");
        assert!(response["usage"]["output_tokens_details"]["reasoning_tokens"].as_i64().unwrap() > 0);
        stage.program.respond(json!({ "input": "Sure?", "previous_response_id": id(response) })).await;
        assert!(!stage.upstream.body(1).to_string().contains("Hm."));
        stage.close().await;
    }

    async fn the_prompt_contains_everything_once_and_in_order(backend) {
        let stage = V1Fixture::open(backend).await;
        let input = json!([
            { "role": "system", "content": "two" },
            { "type": "message", "role": "developer", "content": [{ "type": "input_text", "text": "three" }] },
            { "role": "user", "content": "four" },
        ]);

        stage.program.respond(json!({ "instructions": "one", "input": input, "top_p": 0.5, "presence_penalty": 1 })).await;

        let body = stage.upstream.body(0);
        assert_eq!(prompt_texts(&body), ["one", "two", "three", "four"]);
        assert_eq!(body["model"], "scripted");
        assert_eq!((&body["top_p"], &body["presence_penalty"]), (&json!(0.5), &json!(1.0)));
        assert!(body.get("temperature").is_none(), "only what was given is sent");
        stage.close().await;
    }

    async fn the_first_words_come_while_the_model_still_speaks(backend) {
        let stage = V1Fixture::open(backend).await;
        let gate = stage.upstream.gate();
        stage.upstream.reply_with("One two three.");
        let mut ears = stage.program.stream(json!({ "input": "Hi." })).await;
        gate.step();

        let events = ears.until("response.output_text.delta").await;

        assert_eq!(deltas(&events), ["One "]);
        gate.open();
        assert_eq!(deltas(&ears.rest().await).concat(), "two three.");
        stage.close().await;
    }
}
