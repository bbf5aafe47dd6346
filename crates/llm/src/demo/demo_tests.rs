//! Tests of the demo model: personas, the notice, tool calls and schemas.

use std::collections::HashSet;
use std::time::Duration;

use base::prompt_role::PromptRole;
use futures::StreamExt;
use serde_json::{Value, json};

use super::{DemoModel, NOTICE};
use crate::delta::{Delta, FinishReason};
use crate::demo::speaker_choice::SCHEMA_NAME;
use crate::provider::Provider;
use crate::request::{Message, Request};
use crate::tool::{AnsweredCall, OutputFormat, OutputSchema, Tool, ToolChoice};

fn request(speaker: &str, seed: u64, text: &str) -> Request {
    Request {
        messages: vec![
            Message::new(PromptRole::System, "Be kind."),
            Message::new(PromptRole::User, text),
        ],
        seed,
        speaker: speaker.to_owned(),
        ..Request::default()
    }
}

async fn deltas(request: &Request) -> Vec<Delta> {
    let stream = DemoModel::new(Duration::ZERO)
        .stream(request)
        .await
        .unwrap();
    stream.map(Result::unwrap).collect().await
}

async fn answer(request: &Request) -> String {
    let texts = deltas(request)
        .await
        .into_iter()
        .filter_map(|delta| match delta {
            Delta::Text(text) => Some(text),
            _ => None,
        });
    texts.collect()
}

#[tokio::test]
async fn only_the_first_reply_contains_the_notice() {
    let mut request = request("Ada", 1, "Hello!");
    request.messages.insert(
        1,
        Message::new(PromptRole::Assistant, "Welcome, I am Ada.").with_name("Ada"),
    );

    let first = answer(&request).await;
    request
        .messages
        .push(Message::new(PromptRole::Assistant, first.clone()).with_name("Ada"));
    request
        .messages
        .push(Message::new(PromptRole::User, "Nice."));
    let second = answer(&request).await;

    assert!(first.starts_with(NOTICE), "{first}");
    assert!(first.len() > NOTICE.len() + 10, "{first}");
    assert!(!second.contains(NOTICE), "{second}");
}

#[tokio::test]
async fn the_answer_depends_only_on_the_request_and_its_seed() {
    let answers: Vec<String> = futures::future::join_all(
        (0..20)
            .map(|seed| async move { answer(&request("Ada", seed, "I saw a lighthouse.")).await }),
    )
    .await;

    assert_eq!(
        answers[3],
        answer(&request("Ada", 3, "I saw a lighthouse.")).await
    );
    assert!(answers.iter().collect::<HashSet<_>>().len() > 10);
}

#[tokio::test]
async fn a_reply_uses_a_word_of_the_message() {
    for speaker in ["Ada", "Bob", "Cleo", "Dan", "Eve"] {
        let reply = answer(&request(speaker, 1, "I saw a lighthouse.")).await;

        assert!(
            reply.to_lowercase().contains("lighthouse"),
            "{speaker}: {reply}"
        );
    }
}

#[tokio::test]
async fn the_demo_model_answers_other_characters_and_never_itself() {
    let mut request = request("Ada", 1, NOTICE);
    request
        .messages
        .push(Message::new(PromptRole::Assistant, "A zeppelin!").with_name("Bob"));
    request
        .messages
        .push(Message::new(PromptRole::Assistant, "Gorgonzola.").with_name("Ada"));

    let reply = answer(&request).await;

    assert!(reply.to_lowercase().contains("zeppelin"), "{reply}");
}

#[tokio::test]
async fn every_message_gets_a_reply_without_placeholders() {
    for text in [
        "",
        "?",
        "ok",
        "Is it?",
        "这是什么？",
        "🦀🦀🦀",
        "{word} {word}",
        &"x".repeat(10_000),
    ] {
        for seed in 0..30 {
            let reply = answer(&request("Ada", seed, text))
                .await
                .replace(NOTICE, "");

            assert!(reply.trim().len() > 10, "{text:.20}: {reply}");
            assert!(
                text.contains("{word}") || !reply.contains("{word}"),
                "{reply}"
            );
        }
    }
}

#[tokio::test]
async fn a_reply_ends_at_the_length_limit() {
    let limited = Request {
        max_tokens: Some(3),
        ..request("Ada", 1, "Hi.")
    };

    let deltas = deltas(&limited).await;

    assert_eq!(
        deltas
            .iter()
            .filter(|it| matches!(it, Delta::Text(_)))
            .count(),
        3
    );
    assert!(deltas.contains(&Delta::End(FinishReason::Length)));
}

#[tokio::test(start_paused = true)]
async fn words_are_sent_at_the_configured_speed() {
    let began = tokio::time::Instant::now();
    let stream = DemoModel::new(Duration::from_millis(50))
        .stream(&request("Ada", 1, "Hi."))
        .await
        .unwrap();

    let n_words = stream
        .filter(|it| std::future::ready(matches!(it, Ok(Delta::Text(_)))))
        .count()
        .await;

    let per_word = began.elapsed().as_millis() / n_words as u128;
    assert!((40..=61).contains(&per_word), "{per_word}");
}

fn with_tools(text: &str, tool_choice: ToolChoice) -> Request {
    let tool = |name: &str| Tool {
        name: name.to_owned(),
        description: None,
        parameters: json!({
            "type": "object",
            "properties": { "city": { "type": "string" }, "days": { "type": "integer" } },
            "required": ["city", "days"],
        }),
        strict: None,
    };
    Request {
        tools: vec![tool("get_weather"), tool("get_tides")],
        tool_choice,
        ..request("", 1, text)
    }
}

/// Returns the name and the arguments of each call, assembled from its deltas.
async fn calls(request: &Request) -> Vec<(String, Value)> {
    let mut calls: Vec<(String, String)> = Vec::new();
    let deltas = deltas(request).await;
    for delta in &deltas {
        let Delta::ToolCall(piece) = delta else {
            continue;
        };
        if let Some(name) = &piece.name {
            assert_eq!(piece.index, calls.len());
            assert!(piece.id.as_ref().is_some_and(|it| it.starts_with("call_")));
            calls.push((name.clone(), String::new()));
        }
        calls[piece.index].1 += &piece.arguments;
    }
    let reason = deltas.contains(&Delta::End(FinishReason::ToolCalls));
    assert_eq!(reason, !calls.is_empty());
    let read = |it: (String, String)| (it.0, serde_json::from_str(&it.1).unwrap());
    calls.into_iter().map(read).collect()
}

#[tokio::test]
async fn a_mentioned_tool_is_called() {
    let prompt = with_tools("What is the weather in Oslo?", ToolChoice::Auto);

    let tool_calls = calls(&prompt).await;

    let arguments = json!({ "city": "Oslo", "days": 1 });
    assert_eq!(tool_calls, [("get_weather".to_owned(), arguments)]);
    assert!(
        calls(&with_tools("Hello!", ToolChoice::Auto))
            .await
            .is_empty()
    );
    assert!(
        calls(&with_tools("The weather?", ToolChoice::None))
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn all_mentioned_tools_are_called_together_unless_serial() {
    let both = with_tools("Weather and tides in Brest?", ToolChoice::Auto);
    let serial = Request {
        is_serial: true,
        ..both.clone()
    };

    assert_eq!(calls(&both).await.len(), 2);
    assert_eq!(calls(&serial).await.len(), 1);
}

#[tokio::test]
async fn a_required_tool_is_called() {
    let named = ToolChoice::Named("get_tides".to_owned());

    assert_eq!(
        calls(&with_tools("Hi.", ToolChoice::Required)).await[0].0,
        "get_weather"
    );
    assert_eq!(calls(&with_tools("Hi.", named)).await[0].0, "get_tides");
}

#[tokio::test]
async fn a_tool_result_is_reported_without_another_call() {
    let mut prompt = with_tools("What is the weather in Oslo?", ToolChoice::Auto);
    prompt.messages.push(Message {
        answers: Some(AnsweredCall {
            id: "1".to_owned(),
            name: "get_weather".to_owned(),
        }),
        ..Message::new(PromptRole::User, "18 degrees and sunny")
    });

    let reply = answer(&prompt).await;

    assert!(calls(&prompt).await.is_empty());
    assert!(
        reply.contains("get_weather") && reply.contains("18 degrees and sunny"),
        "{reply}"
    );
}

#[tokio::test]
async fn a_reply_has_the_requested_format() {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let format = |format| Request {
        format,
        ..request("", 1, "I am in Oslo.")
    };
    let with_schema = format(OutputFormat::Schema(OutputSchema {
        name: "place".to_owned(),
        description: None,
        schema,
        strict: None,
    }));

    let schema_reply: Value = serde_json::from_str(&answer(&with_schema).await).unwrap();
    let json_reply: Value =
        serde_json::from_str(&answer(&format(OutputFormat::Json)).await).unwrap();

    assert_eq!(schema_reply, json!({ "city": "Oslo" }));
    assert!(
        json_reply["answer"]
            .as_str()
            .is_some_and(|it| it.len() > 10),
        "{json_reply}"
    );
}

#[tokio::test]
async fn asked_who_speaks_next_it_draws_one_of_the_allowed_names() {
    let names = json!({ "type": "array", "items": { "type": "string", "enum": ["Ada", "Bob"] } });
    let schema = json!({
        "type": "object",
        "properties": { "speakers": names, "reason": { "type": "string" } },
        "required": ["speakers", "reason"],
    });
    let mut drawn = HashSet::new();

    for n in 0..40 {
        let request = Request {
            format: OutputFormat::Schema(OutputSchema {
                name: SCHEMA_NAME.to_owned(),
                description: None,
                schema: schema.clone(),
                strict: Some(true),
            }),
            ..request("", 0, &format!("Message {n}."))
        };
        let reply: Value = serde_json::from_str(&answer(&request).await).unwrap();
        assert!(reply["reason"].is_string(), "{reply}");
        let [speaker] = reply["speakers"].as_array().unwrap().as_slice() else {
            panic!("not one speaker: {reply}");
        };
        drawn.insert(speaker.as_str().unwrap().to_owned());
    }

    let both = ["Ada", "Bob"].map(str::to_owned);
    assert_eq!(drawn, HashSet::from(both));
}
