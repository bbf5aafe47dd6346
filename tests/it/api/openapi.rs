//! Tests of the OpenAPI document: it is complete, consistent, and matches the endpoints.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use troupe::server::endpoints;

use crate::live::fixture::LiveFixture;
use crate::support::api_contract;
use crate::support::api_contract::document;
use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::http_client::{expect, http_client};
use crate::support::http_response::Answer;
use crate::support::ws_client::{WsClient, type_of};

/// Returns every operation: its path, its method and its part of the document.
fn operations() -> Vec<(&'static str, &'static str, &'static Value)> {
    let paths = document()["paths"]
        .as_object()
        .expect("`paths` is an object");
    let each = paths.iter().flat_map(|(path, item)| {
        let item = item.as_object().expect("the path is an object");
        item.iter()
            .map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
    });
    each.collect()
}

/// Calls `visit` with every object that a value contains.
fn walk(value: &'static Value, visit: &mut impl FnMut(&'static Value)) {
    visit(value);
    match value {
        Value::Object(fields) => fields.values().for_each(|it| walk(it, visit)),
        Value::Array(items) => items.iter().for_each(|it| walk(it, visit)),
        _ => {}
    }
}

fn path_parameters(path: &str) -> BTreeSet<&str> {
    let parts = path.split('/').filter(|part| part.starts_with('{'));
    parts.map(|part| part.trim_matches(['{', '}'])).collect()
}

#[test]
fn the_document_is_openapi_3_1_and_names_its_product() {
    let document = document();

    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["title"], "Troupe");
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn every_reference_resolves_and_every_schema_is_used() {
    let mut named = BTreeSet::new();
    walk(document(), &mut |value| {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            let pointer = reference
                .strip_prefix('#')
                .expect("the reference is within the document");
            assert!(document().pointer(pointer).is_some(), "{reference}");
            named.insert(reference);
        }
    });

    let schemas = document()["components"]["schemas"].as_object().unwrap();
    for name in schemas.keys() {
        let reference = format!("#/components/schemas/{name}");
        assert!(
            named.contains(reference.as_str()),
            "{name} is not referenced"
        );
    }
}

#[test]
fn every_operation_has_a_unique_id_a_summary_and_a_known_tag() {
    let known_tags = document()["tags"].as_array().unwrap();
    let known_tags: BTreeSet<&str> = known_tags
        .iter()
        .map(|tag| tag["name"].as_str().unwrap())
        .collect();
    let mut seen = BTreeSet::new();
    let mut used = BTreeSet::new();

    for (path, method, operation) in operations() {
        let id = operation["operationId"].as_str().unwrap();
        assert!(seen.insert(id), "{id} is not unique");
        let summary = operation["summary"].as_str().unwrap_or_default();
        assert!(summary.ends_with('.'), "{method} {path}: {summary:?}");
        let tags = operation["tags"].as_array().unwrap();
        assert_eq!(tags.len(), 1, "{id}");
        let tag = tags[0].as_str().unwrap();
        assert!(known_tags.contains(tag), "{id} has an unknown tag");
        assert!(id.starts_with(&format!("{tag}_")), "{id}");
        used.insert(tag);
    }
    assert_eq!(used, known_tags);
}

#[test]
fn every_path_parameter_is_declared_and_no_other() {
    for (path, method, operation) in operations() {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let declared = parameters.filter(|it| it["in"] == "path");
        let declared: Vec<&Value> = declared.collect();
        for parameter in &declared {
            assert_eq!(parameter["required"], true, "{method} {path}");
        }
        let names = declared.iter().map(|it| it["name"].as_str().unwrap());
        assert_eq!(
            names.collect::<BTreeSet<_>>(),
            path_parameters(path),
            "{method} {path}"
        );
    }
}

#[test]
fn every_parameter_has_a_type() {
    for (path, method, operation) in operations() {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let has_shape = parameter["schema"]["type"].is_string();
            assert!(has_shape, "{method} {path}: {parameter}");
        }
    }
}

#[test]
fn every_operation_documents_its_success_and_its_errors() {
    for (path, method, operation) in operations() {
        let responses = operation["responses"].as_object().unwrap();
        let what = format!("{method} {path}: {:?}", responses.keys());
        let has_success = responses.keys().any(|it| it < &"400".to_owned());
        assert!(has_success || path.ends_with("/avatar"), "{what}");
        let is_secured = operation.get("security").is_none();
        assert!(!is_secured || responses.contains_key("401"), "{what}");
        for status in ["400", "413", "415", "422"] {
            let has_body = operation.get("requestBody").is_some();
            assert!(!has_body || responses.contains_key(status), "{what}");
        }
        for (status, response) in responses {
            let response = match response["$ref"].as_str() {
                Some(reference) => document().pointer(&reference[1..]).unwrap(),
                None => response,
            };
            let about = response["description"].as_str().unwrap_or_default();
            assert!(about.ends_with('.'), "{what}: {status} {about:?}");
            let error = &response["content"]["application/json"]["schema"];
            // The 503 of `/readyz` has the state of each component in addition to the error.
            let is_readiness = path == "/readyz" && status == "503";
            let is_error = is_readiness || *error == json!({"$ref": "#/components/schemas/Error"});
            assert_eq!(is_error, status >= &"400".to_owned(), "{what}: {status}");
        }
    }
}

#[test]
fn request_bodies_allow_no_other_fields_and_responses_require_all() {
    let schemas = document()["components"]["schemas"].as_object().unwrap();
    for (path, method, operation) in operations() {
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        let Some(reference) = body["$ref"].as_str() else {
            continue;
        };
        let name = reference.rsplit('/').next().unwrap();
        let schema = &schemas[name];
        let choices = schema["anyOf"].as_array();
        for shape in choices.map_or(vec![schema], |all| all.iter().collect()) {
            assert_eq!(
                shape["additionalProperties"], false,
                "{method} {path}: {name}"
            );
        }
    }
    for document in [
        "User",
        "Space",
        "Character",
        "Membership",
        "Conversation",
        "Message",
        "Round",
        "Run",
    ] {
        let schema = &schemas[document];
        let fields = schema["properties"].as_object().unwrap();
        assert_eq!(
            schema["required"].as_array().unwrap().len(),
            fields.len(),
            "{document}"
        );
    }
}

/// Fields of the documents that the design of the API requires.
#[test]
fn the_documents_have_every_field_that_clients_rely_on() {
    let documents = [
        (
            "User",
            "id username display_name role status locale settings",
        ),
        (
            "Space",
            "id name description owner_id status reply_order director_provider_id replies_per_turn card_handling_mode allow_self_responses auto_mode_enabled auto_mode_delay_ms auto_mode_max_turns during_generation_user_input_policy user_turn_debounce_ms slow_mode_s group_regenerate_mode translation_provider_id model_language settings settings_version token_limit tokens_used root_conversation_id my_role created_at",
        ),
        (
            "Character",
            "id name owner_id spec_version card public_card share_whole_card avatar_url greetings lore_entries created_at",
        ),
        (
            "Membership",
            "id space_id kind user_id character_id role position status participation display_name aliases avatar_url persona talkativeness settings settings_version copilot_mode copilot_remaining_steps copilot_conversation_id llm_provider_id preset_id",
        ),
        (
            "Invitation",
            "id space_id user_id role status invited_by created_at expires_at",
        ),
        (
            "Conversation",
            "id space_id kind title settings auto_mode_turns_left last_seq parent_conversation_id forked_from_message_id rev state round queued_run running_run created_at",
        ),
        (
            "Message",
            "id conversation_id seq space_membership_id author_name role content html visibility conversation_run_id client_id swipes origin_message_id edited_at created_at rev metadata",
        ),
        ("Round", "id status state cursor trigger_message_id slots"),
        (
            "Slot",
            "position membership_id status skip_reason chosen_because",
        ),
        (
            "Run",
            "id conversation_id run_seq round_id slot_position kind status reason speaker_space_membership_id chosen_because run_after cancel_requested_at started_at finished_at heartbeat_at attempt canceled_because superseded_by_message_id error usage target_message_id created_at",
        ),
        ("RunError", "code message retryable"),
        ("Usage", "prompt_tokens completion_tokens"),
        ("Swipes", "count active"),
        ("ErrorBody", "type code message param"),
    ];
    for (name, fields) in documents {
        let required = document()["components"]["schemas"][name]["required"].clone();
        let required = required.as_array().cloned().unwrap_or_default();
        for field in fields.split(' ') {
            assert!(required.contains(&json!(field)), "{name}.{field}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_document_is_public_and_not_sent_again_if_unchanged() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let url = format!("{}/openapi.json", app.base);

    let first = Answer::to(http_client().get(&url)).await;

    assert_eq!(first.status, 200);
    assert_eq!(first.header("content-type"), "application/json");
    assert_eq!(first.json(), endpoints::all().document());
    let tag = first.header("etag");
    let again = Answer::to(http_client().get(&url).header("if-none-match", tag)).await;
    assert_eq!((again.status, again.text.as_str()), (304, ""));
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_documented_public_endpoints_work_without_authentication() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    app.admin().await;

    for (path, method, operation) in operations() {
        let parts = path.split('/').map(|part| match part {
            "{run_id}" => "01890000-0000-7000-8000-000000000001",
            _ if part.starts_with('{') => "1",
            _ => part,
        });
        let url = format!("{}{}", app.base, parts.collect::<Vec<_>>().join("/"));
        let method: Method = method.to_uppercase().parse().unwrap();
        let response = Answer::to(http_client().request(method.clone(), url)).await;

        // Public: no security requirement, or an empty one among the alternatives.
        let choices = operation["security"].as_array();
        let is_open = choices.is_some_and(|all| all.is_empty() || all.contains(&json!({})));
        let is_unauthenticated =
            response.status == 401 && response.refusal().1 == "not_authenticated";
        assert_eq!(
            is_open, !is_unauthenticated,
            "{method} {path}: {}",
            response.status
        );
        let responses = &operation["responses"];
        assert!(
            !responses[response.status.to_string()].is_null(),
            "{method} {path}: {}",
            response.status
        );
    }
    app.close().await;
}

#[test]
#[should_panic(expected = "violates the API document")]
fn an_undocumented_field_is_detected() {
    let body = json!({"needed": false, "secret": 1});

    api_contract::check_response(&Method::GET, "/api/setup", 200, &body);
}

#[test]
#[should_panic(expected = "which is not in the API document")]
fn an_undocumented_status_is_detected() {
    api_contract::check_response(&Method::GET, "/api/setup", 418, &json!({}));
}

/// The engine tests check the events of runs against the document; this test checks user actions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_a_space_match_the_document() {
    let fixture = LiveFixture::open().await;
    let (space, conversation) = (fixture.space.0, fixture.conversation.0);
    let client = WsClient::subscribed(&fixture.bob, conversation).await;
    for frame in [
        json!({"op": "subscribe_space", "space_id": space}),
        json!({"op": "typing", "conversation_id": conversation, "active": true}),
        json!({"op": "away", "away": true}),
        json!({"op": "ping"}),
        json!({"op": "shout"}),
    ] {
        client.call(frame).await;
    }
    client.send_text("{").await;

    let ann = &fixture.ann;
    let space = format!("/api/spaces/{space}");
    let conversation = format!("/api/conversations/{conversation}");
    let membership = format!("/api/memberships/{}", fixture.bobs_seat);
    expect(200, ann.patch(&space, json!({"description": "Rain"})).await);
    expect(
        200,
        ann.patch(&conversation, json!({"title": "Rain"})).await,
    );
    expect(
        200,
        ann.patch(&membership, json!({"aliases": ["Bobby"]})).await,
    );
    expect(
        200,
        fixture
            .bob
            .patch(&membership, json!({"copilot_mode": "none"}))
            .await,
    );
    let posts = format!("{conversation}/messages");
    let posted = expect(201, ann.post(&posts, json!({"content": "Hello."})).await);
    let message = format!("/api/messages/{}", posted["message"]["id"]);
    expect(
        200,
        ann.patch(
            &message,
            json!({"content": "Hello!", "expected_version": 1}),
        )
        .await,
    );
    expect(204, ann.delete(&message).await);
    expect(204, ann.delete(&membership).await);
    client
        .wait_for("the end of the subscription", |frame| {
            frame["type"] == "unsubscribed" && frame["space_id"].is_number()
        })
        .await;

    let log = client.log();
    log.iter().for_each(api_contract::check_frame);
    let received: BTreeSet<String> = log.iter().filter_map(type_of).collect();
    for event in [
        "activity",
        "conversation_updated",
        "copilot_updated",
        "membership_updated",
        "message_created",
        "message_hidden",
        "message_updated",
        "presence_updated",
        "space_updated",
        "unsubscribed",
    ] {
        assert!(
            received.contains(event),
            "{event} was not received: {received:?}"
        );
    }
    fixture.house.close().await;
}
