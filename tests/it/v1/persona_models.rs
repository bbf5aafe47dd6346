//! Tests of characters as models: who may call them, their prompts, and the name in the response.

use serde_json::{Value, json};

use super::fixture::{V1Fixture, deltas, id, kinds, plain, prompt_lines, text};
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::{HttpClient, expect, token_of};
use crate::support::v1_client::V1Client;

/// Creates a character whose card has every field.
pub async fn ada(person: &HttpClient) -> Value {
    let card = json!({
        "spec": "chara_card_v2", "spec_version": "2.0",
        "data": {
            "name": "Ada", "description": "{{char}} is a mathematician. She knows {{user}}.",
            "personality": "calm, exact", "scenario": "A library in London.",
            "first_mes": "Good day.", "mes_example": "<START>\n{{user}}: Why?\n{{char}}: Because.",
            "system_prompt": "", "post_history_instructions": "Stay {{char}}.",
            "creator_notes": "", "alternate_greetings": [], "tags": [], "creator": "",
            "character_version": "", "extensions": {},
            "character_book": { "extensions": {}, "entries": [{
                "keys": ["engine"], "content": "The engine is made of brass.", "enabled": true,
                "insertion_order": 1, "extensions": {},
            }] },
        },
    });
    expect(
        201,
        person
            .post("/api/characters", json!({ "card": card }))
            .await,
    )
}

/// The name of a character as a model.
pub fn character(document: &Value) -> String {
    format!("character:{}", document["id"])
}

/// The name of a space as a model.
pub fn space(document: &Value) -> String {
    format!("space:{}", document["id"])
}

/// The prompt of a request as readable text.
pub fn written(body: &Value) -> String {
    let lines = prompt_lines(body).into_iter();
    lines
        .map(|(role, text)| format!("--- {role}\n{text}\n"))
        .collect()
}

/// The speaker of each item.
pub fn speakers(response: &Value) -> Vec<String> {
    let items = response["output"].as_array().unwrap().iter();
    items
        .map(|it| {
            it["metadata"]["speaker"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}

/// The ids and kinds of all models that a client can list.
async fn listed(program: &V1Client) -> Vec<(String, String)> {
    let all = expect(200, program.get("/models").await);
    let word = |it: &Value| it.as_str().unwrap().to_owned();
    let all = all["data"].as_array().unwrap().iter();
    all.map(|it| (word(&it["id"]), word(&it["kind"]))).collect()
}

on_sqlite! {
    async fn a_character_prompt_has_its_card_the_activated_lore_and_the_chain(backend) {
        let fixture = V1Fixture::open(backend).await;
        let ada = ada(&fixture.admin).await;
        fixture.upstream.reply_with("The engine computes.");
        let first = fixture.program.respond(json!({
            "model": character(&ada),
            "input": [{ "role": "developer", "content": "It rains." }, { "role": "user", "content": "What do you see?" }],
        })).await;

        let second = fixture.program.respond(json!({
            "model": character(&ada), "previous_response_id": id(&first), "temperature": 0.25,
            "instructions": "Answer {{user}} in one sentence.", "max_output_tokens": 100,
            "input": "And then?",
        })).await;

        let asked = fixture.upstream.body(1);
        insta::assert_snapshot!("a_character", written(&asked));
        assert_eq!((&asked["temperature"], &asked["max_tokens"]), (&json!(0.25), &json!(100)));
        assert_eq!(second["model"], json!(character(&ada)));
        assert_eq!(second["output"][0]["metadata"], json!({
            "speaker": "Ada", "speaker_id": character(&ada), "chosen_because": "asked for",
        }));
        let unrelated = json!({ "model": character(&ada), "input": "Hello." });
        fixture.program.respond(unrelated).await;
        assert!(!written(&fixture.upstream.body(2)).contains("brass"));
        fixture.close().await;
    }

    async fn a_stream_names_the_speaker_from_the_beginning_and_no_name_is_in_the_text(backend) {
        let fixture = V1Fixture::open(backend).await;
        let ada = ada(&fixture.admin).await;
        let words = ["A", "da", ": He", "llo.\n", "ad", "min: No, ", "thanks."];
        let script = words.iter().fold(ResponseScript::stream(), |script, it| script.text(it));
        fixture.upstream.always(script.finish("stop").done());
        let body = json!({ "model": character(&ada), "input": "Hi.", "store": false });

        let events = fixture.program.stream(body.clone()).await.rest().await;
        let whole = fixture.program.respond(body).await;

        assert_eq!(deltas(&events).concat(), "Hello.");
        let last = &events.last().unwrap()["response"];
        assert_eq!(text(last), "Hello.");
        assert_eq!(plain(last), plain(&whole));
        let added = &events[kinds(&events).iter().position(|it| it == "output_item.added").unwrap()];
        assert_eq!(added["item"]["metadata"]["speaker"], "Ada");
        fixture.close().await;
    }

    async fn the_model_list_has_only_characters_and_spaces_that_the_user_may_use(backend) {
        let fixture = V1Fixture::open(backend).await;
        let ben = fixture.app.register("ben").await;
        let program = V1Client::new(&ben).await;
        let [own, met, foreign] = ["Own", "Met", "Foreign"];
        let own = ben.create_character(own, None).await;
        let met = fixture.admin.create_character(met, None).await;
        let foreign = fixture.admin.create_character(foreign, None).await;
        let shared = fixture.admin.create_space("Shared", json!({})).await;
        let theirs = fixture.admin.create_space("Theirs", json!({})).await;
        let membership = fixture.admin.add_character(&shared, &met).await;
        let invite = fixture.admin.invite(shared["id"].as_i64().unwrap(), json!({ "role": "member" })).await;
        expect(201, ben.join(token_of(&invite)).await);

        let all = listed(&program).await;

        let kind_of = |name: &str| all.iter().find(|it| it.0 == name).map(|it| it.1.as_str());
        assert_eq!(kind_of("scripted"), Some("model"));
        assert_eq!(kind_of(&character(&own)), Some("character"));
        assert_eq!(kind_of(&character(&met)), Some("character"));
        assert_eq!(kind_of(&space(&shared)), Some("space"));
        assert_eq!((kind_of(&character(&foreign)), kind_of(&space(&theirs))), (None, None));
        let one = expect(200, program.get(&format!("/models/{}", character(&met))).await);
        assert_eq!((&one["name"], &one["object"]), (&json!("Met"), &json!("model")));
        assert!(one["created"].is_i64() && one["owned_by"].is_string());
        for name in [character(&foreign), space(&theirs), "character:999999".into(), "space:0".into()] {
            let refused = program.respond_with_error(json!({ "model": name, "input": "Hi." })).await;
            assert_eq!((refused.0, refused.1.as_str()), (404, "model_not_found"), "{name}");
            assert_eq!(program.get(&format!("/models/{name}")).await.0, 404);
        }
        let (removed, _) =
            fixture.admin.delete(&format!("/api/memberships/{}", membership["id"])).await;
        assert!(removed < 300, "{removed}");
        assert_eq!(program.respond_with_error(json!({ "model": character(&met), "input": "Hi." })).await.0, 404);
        assert_eq!(fixture.upstream.n_requests(), 0);
        fixture.close().await;
    }

    async fn a_chain_that_is_too_long_is_rejected_unless_truncation_is_allowed(backend) {
        let fixture = V1Fixture::open_with(backend, &[]).await;
        let small = json!({ "settings": { "context_tokens": 900, "max_tokens": 100 } });
        let (_, providers) = fixture.admin.get("/api/providers").await;
        let own = providers["data"].as_array().unwrap().iter().find(|it| it["model"] == "scripted").unwrap();
        expect(200, fixture.admin.patch(&format!("/api/providers/{}", own["id"]), small).await);
        let ada = ada(&fixture.admin).await;
        let long = "words and words ".repeat(190);
        let input: Vec<Value> = (0..3).map(|it| json!({ "role": "user", "content": format!("{it} {long}") })).collect();
        let first = fixture.program.respond(json!({ "model": "scripted", "truncation": "auto", "input": "0 ".to_owned() + &long })).await;
        let body = |truncation: &str| json!({
            "model": character(&ada), "truncation": truncation, "previous_response_id": id(&first), "input": [input[1]],
        });

        let refused = fixture.program.respond_with_error(body("disabled")).await;
        fixture.program.respond(body("auto")).await;

        assert_eq!((refused.0, refused.1.as_str()), (400, "context_length_exceeded"));
        let prompt = written(&fixture.upstream.body(1));
        assert!(prompt.contains("1 words") && !prompt.contains("0 words"), "{prompt}");
        fixture.close().await;
    }

    async fn a_character_model_can_answer_in_the_background(backend) {
        let fixture = V1Fixture::open(backend).await;
        let ada = ada(&fixture.admin).await;
        fixture.upstream.reply_with("Ada: It computes.");

        let queued = fixture.program.respond(json!({
            "model": character(&ada), "input": "Hi.", "background": true,
        })).await;

        let done = fixture.wait_for_status(id(&queued), "completed").await;
        assert_eq!((text(&done).as_str(), speakers(&done)), ("It computes.", vec!["Ada".to_owned()]));
        fixture.close().await;
    }

    async fn an_api_conversation_can_use_a_character_model(backend) {
        let fixture = V1Fixture::open(backend).await;
        let ada = ada(&fixture.admin).await;
        let made = expect(200, fixture.program.post("/conversations", json!({})).await);
        let body = |input: &str| json!({ "model": character(&ada), "conversation": id(&made), "input": input });
        fixture.program.respond(body("one")).await;

        fixture.program.respond(body("two")).await;

        let prompt = written(&fixture.upstream.body(1));
        assert!(prompt.contains("one") && prompt.contains("Hello.") && prompt.contains("two"), "{prompt}");
        let items = expect(200, fixture.program.get(&format!("/conversations/{}/items?order=asc", id(&made))).await);
        assert_eq!(items["data"][1]["metadata"]["speaker"], "Ada");
        fixture.close().await;
    }
}
