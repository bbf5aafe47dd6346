//! Tests of endpoints that refuse fields or an order of roles that others accept: the request is repeated
//! without them, and the next one is not sent with them again.

use base::prompt_role::PromptRole::{Assistant, System, User};
use futures::StreamExt;
use llm::error::LlmError;
use llm::provider_options::ProviderOptions;
use llm::registry::ProviderSpec;
use llm::request::{Message, Request};
use serde_json::{Value, json};

use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::model_call::{provider, registry, request, spec};

fn refusal(message: &str) -> ResponseScript {
    ResponseScript::json(400, &json!({"error": {"message": message}}))
}

/// Answers as an endpoint that refuses these fields.
fn refuse_fields(upstream: &FakeProvider, fields: &'static [&'static str]) {
    upstream.answer_with(|body| {
        let refused = fields.iter().find(|it| body.get(**it).is_some());
        match refused {
            Some(field) => refusal(&format!("Unrecognized request argument supplied: {field}")),
            None => ResponseScript::say("Hello."),
        }
    });
}

async fn is_answered(upstream: &FakeProvider, request: &Request) -> Result<(), LlmError> {
    let stream = provider(upstream).stream(request).await?;
    stream.for_each(async |_| ()).await;
    Ok(())
}

/// Two characters and two people, with an instruction within the history and a nudge at its end.
fn group_scene() -> Request {
    let messages = vec![
        Message::new(System, "You write for Ada."),
        Message::new(System, "The inn is old."),
        Message::new(Assistant, "Welcome.").with_name("Ada"),
        Message::new(User, "Hi.").with_name("Eve"),
        Message::new(User, "Hello.").with_name("Fay"),
        Message::new(Assistant, "Sit down.").with_name("Bob"),
        Message::new(System, "It rains."),
        Message::new(User, "Any soup?").with_name("Eve"),
        Message::new(System, "[Write the next reply only as Ada.]"),
    ];
    Request {
        messages,
        speaker: "Ada".to_owned(),
        ..request()
    }
}

/// Returns why a chat template refuses these messages: system text only first or never, then the user and
/// the model in turn, the user last.
fn template_error(body: &Value, has_system_role: bool) -> Option<&'static str> {
    let roles = body["messages"].as_array().expect("a list of messages");
    let mut roles: Vec<&str> = roles.iter().filter_map(|it| it["role"].as_str()).collect();
    if has_system_role && roles.first() == Some(&"system") {
        roles.remove(0);
    }
    let is_alternating = |it: &[&str]| it.iter().step_by(2).all(|it| *it == "user");
    let model: Vec<&str> = roles.iter().skip(1).step_by(2).copied().collect();
    match roles.last() {
        _ if roles.contains(&"system") => Some("System role not supported"),
        _ if !is_alternating(&roles) || model.iter().any(|it| *it != "assistant") => {
            Some("Conversation roles must alternate user/assistant/user/assistant/...")
        }
        Some(&"user") => None,
        _ => Some("Expected last role User or Tool but got assistant"),
    }
}

#[tokio::test]
async fn a_refused_field_is_left_out_and_not_sent_again() {
    let upstream = FakeProvider::start().await;
    refuse_fields(&upstream, &["stream_options"]);
    let request = request();

    is_answered(&upstream, &request).await.expect("answered");
    assert_eq!(upstream.n_requests(), 2);
    is_answered(&upstream, &request).await.expect("answered");

    assert_eq!(upstream.n_requests(), 3);
    assert!(upstream.body(2).get("stream_options").is_none());
    let found = request.found_refusals.get();
    assert_eq!(Vec::from_iter(found.fields), ["stream_options"]);
}

#[tokio::test]
async fn a_request_is_repeated_at_most_twice_for_its_fields() {
    let upstream = FakeProvider::start().await;
    let mut request = request();
    request.samplers.top_k = Some(4);
    request.samplers.min_p = Some(0.1);
    refuse_fields(&upstream, &["stream_options", "top_k"]);
    is_answered(&upstream, &request.clone())
        .await
        .expect("answered");
    assert_eq!(upstream.n_requests(), 3);

    let strict = FakeProvider::start().await;
    refuse_fields(&strict, &["stream_options", "top_k", "min_p"]);
    let mut other = self::request();
    other.samplers = request.samplers;
    let refused = is_answered(&strict, &other).await;

    assert_eq!(refused.expect_err("refused").status(), Some(400));
    assert_eq!(strict.n_requests(), 3);
    assert!(other.found_refusals.get().is_empty());
}

#[tokio::test]
async fn the_limit_of_tokens_is_sent_under_its_other_name() {
    let upstream = FakeProvider::start().await;
    refuse_fields(&upstream, &["max_tokens"]);
    let request = Request {
        max_tokens: Some(50),
        ..request()
    };

    is_answered(&upstream, &request).await.expect("answered");

    assert_eq!(upstream.body(1)["max_completion_tokens"], 50);
}

#[tokio::test]
async fn a_group_scene_is_accepted_at_the_first_request_by_strict_templates() {
    for (model, has_system_role) in [
        ("gemma-2-9b-it", false),
        ("gemma-3-27b-it", true),
        ("mistral-nemo", true),
        ("qwen3-32b", true),
    ] {
        let upstream = FakeProvider::start().await;
        let is_alternating = !model.starts_with("qwen");
        upstream.answer_with(move |body| {
            let roles = body["messages"].as_array().expect("a list of messages");
            let is_later = roles.iter().skip(1).any(|it| it["role"] == "system");
            let error = match is_alternating {
                true => template_error(body, has_system_role),
                false => is_later.then_some("System message must be at the beginning."),
            };
            error.map_or_else(|| ResponseScript::say("Hello."), refusal)
        });
        let scene = Request {
            model: model.to_owned(),
            ..group_scene()
        };

        is_answered(&upstream, &scene).await.expect(model);

        assert_eq!(upstream.n_requests(), 1, "{model}");
        let sent = upstream.body(0).to_string();
        let texts = scene.messages.iter().map(|it| it.content.as_str());
        let lost: Vec<&str> = texts.filter(|it| !sent.contains(*it)).collect();
        assert!(lost.is_empty(), "{model} did not get {lost:?}");
        assert!(
            sent.contains("Eve: Hi.") && sent.contains("Fay: Hello."),
            "{model}"
        );
    }
}

#[tokio::test]
async fn an_unknown_model_with_a_strict_template_is_asked_once_more() {
    let upstream = FakeProvider::start().await;
    upstream.answer_with(|body| match template_error(body, true) {
        Some(error) => refusal(error),
        None => ResponseScript::say("Hello."),
    });
    let scene = group_scene();

    is_answered(&upstream, &scene).await.expect("answered");

    assert_eq!(upstream.n_requests(), 2);
    assert!(scene.found_refusals.get().role_order);
}

#[tokio::test]
async fn what_an_admin_adds_is_merged_last() {
    let upstream = FakeProvider::start().await;
    let settings =
        json!({"extra_body": {"chat_template_kwargs": {"thinking": false}, "temperature": null}});
    let spec = ProviderSpec {
        options: ProviderOptions::from_settings(&settings),
        ..spec(&upstream.base_url())
    };
    let provider = registry().provider(&spec).expect("the settings are valid");
    let request = Request {
        temperature: Some(0.5),
        ..request()
    };

    provider.stream(&request).await.map(drop).expect("answered");

    let sent = upstream.body(0);
    assert_eq!(sent["chat_template_kwargs"], json!({"thinking": false}));
    assert!(sent.get("temperature").is_none());
}
