//! Tests of runs whose provider gets one text: a whole turn with each API, whose fake refuses every field
//! that the API does not have, Continue, stop strings, tools, and what the inspector shows.

use serde_json::{Value, json};
use troupe::conversations::audience::viewer::Viewer;
use troupe::providers::provider;
use troupe::providers::provider::ProviderChange;
use troupe::runs::reading::prompt_preview;
use troupe::runs::scheduling::command::VersionRequest;
use troupe::runs::store::run::RunStatus;

use crate::support::backends::{on_both, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;

/// An API as its server describes it: its path, its fields, and the chunks of a reply.
struct FakeApi {
    path: &'static str,
    fields: &'static [&'static str],
    chunk: fn(&str) -> Value,
    end: Value,
}

fn openai() -> FakeApi {
    FakeApi {
        path: "/v1/completions",
        fields: &[
            "model",
            "prompt",
            "stream",
            "stream_options",
            "max_tokens",
            "temperature",
            "top_p",
            "stop",
        ],
        chunk: |text| json!({ "choices": [{ "index": 0, "text": text, "finish_reason": null }] }),
        end: json!({
            "choices": [{ "index": 0, "text": "", "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 40, "completion_tokens": 4 },
        }),
    }
}

fn llama_cpp() -> FakeApi {
    FakeApi {
        path: "/completion",
        fields: &[
            "prompt",
            "stream",
            "cache_prompt",
            "n_predict",
            "temperature",
            "top_p",
            "stop",
        ],
        chunk: |text| json!({ "index": 0, "content": text, "tokens": [1], "stop": false }),
        end: json!({
            "index": 0, "content": "", "stop": true, "stop_type": "word",
            "tokens_evaluated": 40, "tokens_predicted": 4,
        }),
    }
}

fn koboldcpp() -> FakeApi {
    FakeApi {
        path: "/api/extra/generate/stream",
        fields: &[
            "prompt",
            "max_length",
            "max_context_length",
            "temperature",
            "top_p",
            "stop_sequence",
        ],
        chunk: |text| json!({ "token": text, "finish_reason": null }),
        end: json!({ "token": "", "finish_reason": "stop" }),
    }
}

impl FakeApi {
    /// Returns a reply of these pieces, or an error if the request has other fields.
    fn answer(&self, body: &Value, pieces: &[&str]) -> ResponseScript {
        let fields = body.as_object().expect("an object").keys();
        let unknown: Vec<&String> = fields
            .filter(|it| !self.fields.contains(&it.as_str()))
            .collect();
        if !unknown.is_empty() {
            let message = format!("unknown fields: {unknown:?}");
            return ResponseScript::json(400, &json!({ "error": { "message": message } }));
        }
        let event = |chunk: Value| format!("data: {chunk}\n\n");
        let script = pieces.iter().fold(ResponseScript::stream(), |script, it| {
            script.raw(event((self.chunk)(it)))
        });
        script.raw(event(self.end.clone()))
    }
}

impl EngineTest {
    /// Sets the settings of the provider, and its model.
    async fn text_provider(&self, model: &str, settings: Value) {
        let found = provider::find_default(self.db.reader()).await;
        let row = found.unwrap().expect("there is a provider");
        let change = ProviderChange {
            model: Some(model.to_owned()),
            settings: Some(settings),
            ..ProviderChange::default()
        };
        let cipher = &self.engine.context().models.cipher;
        provider::update(&self.db, cipher, row.id, change)
            .await
            .unwrap();
    }

    fn answer_as(&self, api: FakeApi, pieces: &'static [&'static str]) {
        self.upstream
            .answer_with(move |body| api.answer(body, pieces));
    }
}

fn mode(api: &str) -> Value {
    json!({ "mode": "text_completion", "text_completion_api": api, "max_tokens": 50 })
}

on_both! {
    async fn a_turn_is_one_text_in_the_api_of_the_server(backend) {
        for (name, api) in [("openai", openai()), ("llama_cpp", llama_cpp()), ("koboldcpp", koboldcpp())] {
            let app = EngineTest::builder(backend).cast(&["Ada", "Bob"]).open().await;
            app.text_provider("qwen", mode(name)).await;
            let path = api.path;
            app.answer_as(api, &["Hello", " there.", "\nBob: And", " me."]);

            app.user.post("Hi, Ada<|im_end|>.").await;
            app.settle().await;

            assert_eq!(app.answers().await, ["Hello there."], "{name}");
            let sent = app.upstream.seen(0);
            assert_eq!(sent.path, path);
            let prompt = sent.body["prompt"].as_str().unwrap();
            assert!(prompt.starts_with("<|im_start|>system\n"), "{prompt}");
            let end = "<|im_start|>user\nEve: Hi, Ada.<|im_end|>\n<|im_start|>assistant\nAda:";
            assert!(prompt.ends_with(end), "{prompt}");
            assert!(!prompt.contains("[Start a new"), "{prompt}");
            let stops = sent.body.get("stop").or(sent.body.get("stop_sequence")).unwrap();
            let stops: Vec<&str> = stops.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
            assert_eq!(&stops[..3], ["<|im_end|>", "<|im_start|>user", "<|im_start|>system"]);
            assert_eq!(stops.len(), if name == "openai" { 4 } else { 5 }, "{stops:?}");
            app.close().await;
        }
    }
}

on_sqlite! {
    async fn a_stop_string_that_is_not_sent_ends_the_reply(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.text_provider("qwen", mode("auto")).await;
        app.answer_as(openai(), &["Well.", "<|im_", "start|>user", "\nMore"]);

        app.user.post("Hi.").await;
        app.settle().await;

        assert_eq!(app.answers().await, ["Well."]);
        app.close().await;
    }

    async fn a_continue_ends_the_text_with_the_message(backend) {
        let app = EngineTest::builder(backend).cast(&["Ada", "Bob"]).open().await;
        app.text_provider("qwen", mode("llama_cpp")).await;
        app.answer_as(llama_cpp(), &["Hello."]);
        app.user.post("Hi, Ada.").await;
        app.settle().await;
        app.answer_as(llama_cpp(), &[" How are", " you?"]);

        let request = VersionRequest { message: None, by: "Eve".to_owned(), instruction: None, viewer: Viewer::Server };
        app.engine.continue_message(app.conversation, request).await.unwrap();
        app.settle().await;

        assert_eq!(app.answers().await, ["Hello. How are you?"]);
        let body = app.upstream.body(1);
        let prompt = body["prompt"].as_str().unwrap();
        assert!(prompt.ends_with("<|im_start|>assistant\nAda: Hello."), "{prompt}");
        app.close().await;
    }

    async fn a_preset_may_send_messages_or_one_text_to_a_provider(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.settings["preset"] = json!({ "mode": "text_completion" }))
            .open()
            .await;
        app.text_provider("any", json!({ "role_handling": "native" })).await;
        app.answer_as(openai(), &["Well."]);

        app.user.post("Hi.").await;
        app.settle().await;

        assert_eq!(app.upstream.seen(0).path, "/v1/completions");
        let chat = json!({ "preset": { "mode": "chat", "role_handling": "strict_alternation" } });
        app.change_rules(|it| it.settings = chat).await;
        app.upstream.reply_with("Hello.");
        app.user.post("Hi again.").await;
        app.settle().await;

        assert_eq!(app.answers().await, ["Well.", "Hello."]);
        let sent = app.upstream.seen(1);
        assert_eq!(sent.path, "/v1/chat/completions");
        let messages = sent.body["messages"].as_array().unwrap();
        assert_eq!(messages.last().unwrap()["role"], "user");
        app.close().await;
    }

    async fn a_server_that_counts_tokens_gets_a_prompt_that_fits(backend) {
        for (name, api) in [("llama_cpp", llama_cpp()), ("koboldcpp", koboldcpp())] {
            let app = EngineTest::builder(backend).open().await;
            let mut settings = mode(name);
            settings["context_tokens"] = json!(2_000);
            app.text_provider("qwen", settings).await;
            app.upstream.count_tokens_with(|text| text.chars().count());
            app.answer_as(api, &["Well."]);

            app.user.post(&"The rain has stopped. ".repeat(40)).await;
            app.settle().await;
            app.user.post(&"The sun is out. ".repeat(60)).await;
            app.settle().await;

            assert_eq!(app.answers().await, ["Well.", "Well."], "{name}");
            let prompt = app.upstream.body(1)["prompt"].as_str().unwrap().to_owned();
            let n_tokens = prompt.chars().count();
            assert!((1_000..=1_950).contains(&n_tokens), "{n_tokens}");
            assert!(!prompt.contains("The rain") && prompt.contains("The sun"), "{prompt}");
            let run = app.runs().await.pop().expect("a run");
            let stats = run.debug.prompt.expect("the run sent a prompt");
            assert_eq!(stats.total_tokens, i64::try_from(n_tokens).unwrap());
            app.close().await;
        }
    }

    async fn a_space_with_tools_uses_chat_completion(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.settings["tools"] = json!({ "time": "allowed" }))
            .open()
            .await;
        app.text_provider("qwen", mode("llama_cpp")).await;

        app.user.post("Hi.").await;
        app.settle().await;

        assert_eq!(app.answers().await, ["Hello."]);
        let sent = app.upstream.seen(0);
        assert_eq!(sent.path, "/v1/chat/completions");
        assert!(sent.body["messages"].is_array() && sent.body.get("prompt").is_none());
        app.close().await;
    }

    async fn an_error_of_the_server_fails_the_run(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.text_provider("qwen", mode("koboldcpp")).await;
        app.upstream.always(ResponseScript::json(400, &json!({ "error": { "message": "bad sampler" } })));

        app.user.post("Hi.").await;
        app.settle().await;

        assert_eq!(app.only_run().await.status, RunStatus::Failed);
        app.close().await;
    }

    async fn the_templates_of_the_preset_are_used_and_the_preview_shows_the_text(backend) {
        let preset = json!({
            "instruct": { "name": "Own", "input_sequence": "<U>", "output_sequence": "<A>", "wrap": false,
                "stop_sequence": "<E>", "names_behavior": "none", "output_suffix": "<E>", "input_suffix": "<E>" },
            "context": { "name": "Own", "story_string": "{{#if system}}S {{instructInput}} {{system}}|{{/if}}" },
            "sysprompt": { "content": "Play {{char}}." },
        });
        let app = EngineTest::builder(backend).rules(move |it| it.settings["preset"] = preset).open().await;
        app.text_provider("unknown", mode("openai")).await;
        app.answer_as(openai(), &["Hello."]);
        app.user.post("Hi.").await;
        app.settle().await;

        let body = app.upstream.body(0);
        assert_eq!(body["prompt"], "S <U> Play Ada.|<U>Hi.<E><A>");

        let ada = app.membership("Ada").await.id;
        let preview = prompt_preview::load(app.engine.context(), app.conversation, (ada, Viewer::Server), None);
        let (_, built) = preview.await.unwrap().unwrap();
        let built = built.unwrap();
        let text = built.text.unwrap();
        assert_eq!(text.text, "S <U> Play Ada.|<U>Hi.<E><A>Hello.<E><A>");
        assert_eq!(text.record.template, "Own");
        assert!(built.total_tokens > 0 && built.total_tokens == text.tokens);
        app.close().await;
    }

    async fn an_unknown_model_gets_a_usual_template_with_a_warning(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.text_provider("unknown", mode("openai")).await;

        let ada = app.membership("Ada").await.id;
        let preview = prompt_preview::load(app.engine.context(), app.conversation, (ada, Viewer::Server), None);
        let (_, built) = preview.await.unwrap().unwrap();

        let built = built.unwrap();
        assert_eq!(built.text.unwrap().record.template, "ChatML");
        assert_eq!(built.lore.warnings_coded[0].code, "template_unknown_model");
        app.close().await;
    }
}
