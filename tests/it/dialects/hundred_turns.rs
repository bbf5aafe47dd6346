//! Tests that a group space with four characters and three people can take a hundred turns on each of seven
//! fake APIs, which reject the same requests as the real ones.

use std::sync::Arc;

use llm::registry::ProviderKind;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::kinds::{error_response, recorded, sends};
use super::strict_apis::{
    ANTHROPIC, GEMINI, KOBOLD_CPP, LLAMA_CPP, MISTRAL, OLLAMA, OPENAI, StrictApi,
};
use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::poll;
use crate::support::test_resolver::TestResolver;

/// The turns on each API.
const N_TURNS: usize = 100;

/// An API, the provider that is created for it, and how it replies.
struct ApiCase {
    api: StrictApi,
    kind: ProviderKind,
    provider: fn(&FakeProvider) -> Value,
    reply: fn() -> ResponseScript,
}

const API_CASES: [ApiCase; 7] = [
    ApiCase {
        api: OPENAI,
        kind: ProviderKind::Openai,
        provider: |it| json!({"kind": "openai", "base_url": it.base_url(), "model": "gpt-5.1"}),
        reply: || ResponseScript::say("The lamp is lit."),
    },
    ApiCase {
        api: ANTHROPIC,
        kind: ProviderKind::Anthropic,
        provider: |it| json!({"kind": "anthropic", "base_url": it.origin(), "model": "claude-sonnet-4-5"}),
        reply: || hello(ProviderKind::Anthropic),
    },
    ApiCase {
        api: GEMINI,
        kind: ProviderKind::Gemini,
        provider: |it| json!({"kind": "gemini", "base_url": it.origin(), "model": "gemini-2.5-flash"}),
        reply: || hello(ProviderKind::Gemini),
    },
    ApiCase {
        api: OLLAMA,
        kind: ProviderKind::Ollama,
        provider: |it| json!({"kind": "ollama", "base_url": it.origin(), "model": "gemma3"}),
        reply: || hello(ProviderKind::Ollama),
    },
    ApiCase {
        api: LLAMA_CPP,
        kind: ProviderKind::OpenaiCompatible,
        provider: |it| text_provider(it, "llama_cpp"),
        reply: || {
            text_events(
                &json!({"content": "The lamp is lit.", "stop": false}),
                &json!({"content": "", "stop": true, "stop_type": "eos"}),
            )
        },
    },
    ApiCase {
        api: KOBOLD_CPP,
        kind: ProviderKind::OpenaiCompatible,
        provider: |it| text_provider(it, "koboldcpp"),
        reply: || {
            text_events(
                &json!({"token": "The lamp is lit."}),
                &json!({"token": "", "finish_reason": "stop"}),
            )
        },
    },
    ApiCase {
        api: MISTRAL,
        kind: ProviderKind::OpenaiCompatible,
        provider: |it| {
            let port = it
                .origin()
                .rsplit(':')
                .next()
                .map(str::to_owned)
                .unwrap_or_default();
            json!({"base_url": format!("http://api.mistral.ai:{port}/v1"), "model": "mistral-small-latest"})
        },
        reply: || ResponseScript::say("The lamp is lit."),
    },
];

fn hello(kind: ProviderKind) -> ResponseScript {
    sends(kind, recorded(kind, "hello").expect("a recorded reply"))
}

fn text_events(chunk: &Value, end: &Value) -> ResponseScript {
    ResponseScript::stream().raw(format!("data: {chunk}\n\ndata: {end}\n\n"))
}

fn text_provider(upstream: &FakeProvider, api: &str) -> Value {
    let settings = json!({"mode": "text_completion", "text_completion_api": api});
    json!({"base_url": upstream.base_url(), "model": "my-llama-3-8b", "settings": settings})
}

/// Returns a card with all fields that enter a prompt.
fn card(name: &str) -> Value {
    json!({"card": {"spec": "chara_card_v2", "spec_version": "2.0", "data": {
        "name": name, "description": format!("{{{{char}}}} keeps room {} of the inn.", name.len()),
        "personality": "dry", "scenario": "An inn at the harbor.", "first_mes": "Good evening, {{user}}.",
        "mes_example": "<START>\n{{user}}: Is it late?\n{{char}}: It is.", "system_prompt": "",
        "post_history_instructions": "Stay {{char}}.", "creator_notes": "", "alternate_greetings": [], "tags": [],
        "creator": "", "character_version": "", "character_book": {"extensions": {}, "entries": [{
            "keys": ["lamp"], "content": format!("{name} lights the lamp."), "enabled": true, "insertion_order": 1,
            "extensions": {"position": 4, "depth": 2, "role": 1},
        }]}, "extensions": {"depth_prompt": {"prompt": "{{char}} is tired.", "depth": 3, "role": "system"}},
    }}})
}

struct GroupSpace {
    people: Vec<HttpClient>,
    characters: Vec<i64>,
    space: i64,
}

impl GroupSpace {
    async fn open(app: &TestApp) -> Self {
        let ann = app.admin().await;
        let preset = json!({
            "temperature": 0.9, "top_k": 40, "min_p": 0.05, "repetition_penalty": 1.1, "seed": 5,
            "stop": ["***", "###", "END", "~~~", "The end"], "assistant_prefill": "",
        });
        let note = json!({"text": "Keep it short.", "depth": 1, "role": "assistant"});
        let settings = json!({"preset": preset, "author_note": note});
        let space = ann
            .create_space(
                "Inn",
                json!({"reply_order": "manual", "settings": settings}),
            )
            .await;
        let mut characters = Vec::new();
        for name in ["Ada", "Bo Lee", "Çem", "Dr. Eel"] {
            let made = expect(201, ann.post("/api/characters", card(name)).await);
            characters.push(id(&ann.add_character(&space, &made).await));
        }
        let mut people = vec![ann.clone()];
        for name in ["Finn O'Hara", "Гена"] {
            let invite = ann.invite(id(&space), json!({"role": "guest"})).await;
            let token = invite["token"].as_str().expect("a token");
            people.push(HttpClient::join_by_link(&app.base, token, name).await.0);
        }
        Self {
            people,
            characters,
            space: id(&space),
        }
    }

    async fn create_conversation(&self, title: &str) -> i64 {
        let path = format!("/api/spaces/{}/conversations", self.space);
        id(&expect(
            201,
            self.people[0].post(&path, json!({"title": title})).await,
        ))
    }

    /// Takes one turn, and returns its run after it has ended.
    async fn take_turn(&self, conversation: i64, n: usize) -> Value {
        let ann = &self.people[0];
        if n.is_multiple_of(3) {
            let text = format!("Turn {n}: who lights the lamp?");
            let person = &self.people[n / 3 % 3];
            expect(201, person.post_message(conversation, &text, None).await);
        }
        let speaker = self.characters[n % 4];
        let path = format!("/api/conversations/{conversation}");
        let started = match n {
            // A message of a person cannot be continued.
            _ if n < 5 || n.is_multiple_of(3) => ann.generate(conversation, Some(speaker)).await,
            _ if n % 10 == 5 => ann.post(&format!("{path}/continue"), json!({})).await,
            _ if n % 10 == 8 => ann.post(&format!("{path}/regenerate"), json!({})).await,
            _ => ann.generate(conversation, Some(speaker)).await,
        };
        assert!((200..300).contains(&started.0), "turn {n}: {started:?}");
        let newest = poll::until("the run has ended", async || {
            let runs = expect(200, ann.get(&format!("{path}/runs")).await);
            let newest = runs["data"][0].clone();
            let is_active = newest["status"] == "queued" || newest["status"] == "running";
            (newest.is_object() && !is_active).then_some(newest)
        });
        newest.await
    }
}

on_sqlite! {
    async fn a_group_space_takes_a_hundred_turns_on_each_api_without_a_refusal(backend) {
        take_turns(backend).await;
    }
}

async fn take_turns(backend: TestBackend) {
    let names = TestResolver::new(&[("api.mistral.ai", &["127.0.0.1"])]);
    let app = TestApp::start_with_resolver(backend, &[], names).await;
    let group = GroupSpace::open(&app).await;
    let ann = &group.people[0];
    for case in API_CASES {
        let name = case.api.name;
        let upstream = FakeProvider::start().await;
        let refusals: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = refusals.clone();
        upstream.answer_with(move |body| match (case.api.check)(body) {
            Ok(()) => (case.reply)(),
            Err(reason) => {
                log.lock().push(format!("{reason}: {body}"));
                error_response(case.kind, 400, &reason)
            }
        });
        let mut provider = (case.provider)(&upstream);
        provider["name"] = json!(name);
        provider["is_default"] = json!(true);
        provider["api_key"] = json!("sk-test");
        expect(201, ann.post("/api/providers", provider).await);
        let conversation = group.create_conversation(name).await;

        for n in 0..N_TURNS {
            let run = group.take_turn(conversation, n).await;
            assert_eq!(refusals.lock().first(), None, "{name}, turn {n}");
            assert_eq!(run["status"], "succeeded", "{name}, turn {n}: {run}");
        }

        // The maintenance of memories also sends requests.
        assert!(upstream.n_requests() >= N_TURNS, "{name}");
    }
    app.close().await;
}
