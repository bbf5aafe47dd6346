//! Tests of the regex scripts of cards: who allows them, and what they change.

use serde_json::{Value, json};

use crate::support::backends::{TestBackend, on_both};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::http_response::refusal;
use crate::support::multipart::upload;
use crate::support::test_space::TestSpace;

fn script(find: &str, replace: &str, place: i64, display: bool, prompt: bool) -> Value {
    json!({
        "scriptName": find, "findRegex": find, "replaceString": replace, "placement": [place],
        "disabled": false, "markdownOnly": display, "promptOnly": prompt, "runOnEdit": true,
    })
}

/// Opens a space with Ada, whose card has a script of each kind; also returns the path of the character and the
/// id of her membership.
async fn open(backend: TestBackend) -> (TestSpace, String, i64) {
    let space = TestSpace::open(backend, json!({}), &[]).await;
    let scripts = [
        script("/lamp/g", "lantern", 2, false, false),
        script("/rain/g", "**snow**", 1, true, false),
        script("/harbor/g", "[place]", 1, false, true),
    ];
    let data = json!({"name": "Ada", "description": "{{char}} keeps the inn.", "extensions": {"regex_scripts": scripts}});
    let card = json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": data}).to_string();
    let made = expect(
        201,
        upload(
            &space.person,
            "/api/characters/import",
            "ada.json",
            card.as_bytes(),
        )
        .await,
    );
    let ada = space
        .person
        .add_character(&space.space, &made["character"])
        .await;
    let path = format!("/api/characters/{}", id(&made["character"]));
    (space, path, id(&ada))
}

/// Posts a text, to which the model replies "The lamp is lit."; returns both messages.
async fn post_and_reply(space: &TestSpace, text: &str) -> [Value; 2] {
    space.upstream.next(ResponseScript::say("The lamp is lit."));
    space.post(text).await;
    space.settle().await;
    let mut all = space.person.messages(space.conversation).await;
    let reply = all.pop().expect("a reply");
    [all.pop().expect("a post"), reply]
}

async fn allow(person: &HttpClient, path: &str) {
    let changed = expect(
        200,
        person.patch(path, json!({"regex_allowed": true})).await,
    );
    assert_eq!(changed["regex_allowed"], true, "{changed}");
}

/// The newest request, as text.
fn newest_request(space: &TestSpace) -> String {
    space.upstream.body(space.upstream.n_requests() - 1)["messages"].to_string()
}

on_both! {
    async fn scripts_change_replies_prompts_and_what_is_shown_once_they_are_allowed(backend) {
        let (space, card, _) = open(backend).await;
        let [post, reply] = post_and_reply(&space, "Does it rain in the harbor?").await;
        assert_eq!(reply["content"], "The lamp is lit.");
        assert!(post["html"].as_str().unwrap().contains("rain"), "{post}");
        assert!(newest_request(&space).contains("harbor"));

        allow(&space.person, &card).await;
        let [post, reply] = post_and_reply(&space, "And now, does it rain in the harbor?").await;

        assert_eq!(reply["content"], "The lantern is lit.");
        assert_eq!(reply["metadata"]["unscripted"], "The lamp is lit.");
        assert_eq!(post["content"], "And now, does it rain in the harbor?");
        assert!(post["html"].as_str().unwrap().contains("<strong>snow</strong>"), "{post}");
        let sent = newest_request(&space);
        assert!(sent.contains("[place]") && !sent.contains("harbor"), "{sent}");
        let prompt = format!("/api/conversations/{}/prompt", space.conversation);
        let shown = expect(200, space.person.get(&prompt).await);
        let names: Vec<&Value> = shown["scripts"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
        assert!(names.contains(&&json!("/harbor/g")), "{}", shown["scripts"]);
    }

    async fn a_space_can_switch_off_the_scripts_of_a_member(backend) {
        let (space, card, ada) = open(backend).await;
        allow(&space.person, &card).await;
        let path = format!("/api/spaces/{}", id(&space.space));
        let off = json!({"settings": {"regex_scripts_off": {"membership_ids": [ada]}}});
        expect(200, space.person.patch(&path, off).await);

        let [post, reply] = post_and_reply(&space, "Does it rain in the harbor?").await;

        assert_eq!(reply["content"], "The lamp is lit.");
        assert!(!post["html"].as_str().unwrap().contains("snow"), "{post}");
        assert!(newest_request(&space).contains("harbor"));
    }

    async fn only_the_owner_of_a_card_allows_its_scripts(backend) {
        let (space, card, _) = open(backend).await;
        let invite = space.person.invite(id(&space.space), json!({"role": "guest"})).await;
        let token = invite["token"].as_str().expect("a token");
        let (other, _) = HttpClient::join_by_link(&space.server.url(), token, "Ben").await;

        let refused = other.patch(&card, json!({"regex_allowed": true})).await;
        let wrong = space.person.patch(&card, json!({"regex_allowed": "yes"})).await;

        assert!(matches!(refused.0, 403 | 404), "{refused:?}");
        assert_eq!(refusal(&wrong).0, 400);
        assert_eq!(expect(200, space.person.get(&card).await)["regex_allowed"], false);
    }
}
