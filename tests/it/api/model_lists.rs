//! Tests of what the list of models of a provider determines: the context window, and the names of
//! samplers.

use serde_json::{Value, json};

use crate::support::backends::on_both;
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::test_space::TestSpace;

/// Returns the only provider of the environment.
async fn provider(admin: &HttpClient) -> Value {
    let all = expect(200, admin.get("/api/providers").await);
    let of_model = all["data"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["kind"] != "demo");
    of_model.unwrap().clone()
}

async fn limit_of(space: &TestSpace) -> Value {
    let path = format!("/api/conversations/{}/prompt", space.conversation);
    expect(200, space.person.get(&path).await)["limit_tokens"].clone()
}

on_both! {
    async fn a_local_server_states_its_window_and_gets_its_own_samplers(backend) {
        let space = TestSpace::open(backend, json!({"settings": {"preset": {"repetition_penalty": 1.1, "seed": 7}}}), &["Ada"]).await;
        let (admin, upstream) = (&space.person, &space.upstream);
        let entry = json!({"id": "scripted", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131_072}});
        upstream.document("/v1/models", json!({"object": "list", "data": [entry]}));
        upstream.document("/props", json!({"default_generation_settings": {"n_ctx": 32_768}}));
        assert_eq!(limit_of(&space).await, 8_192 - 512);
        let row = provider(admin).await;
        let path = format!("/api/providers/{}", id(&row));

        let listed = expect(200, admin.get(&format!("{path}/models")).await);

        assert_eq!(listed["data"], json!([{"id": "scripted", "vision": null, "context_tokens": 32_768}]));
        assert_eq!(limit_of(&space).await, 32_768 - 2_048);
        expect(200, admin.patch(&path, json!({"settings": {"temperature": 0.5}})).await);
        assert_eq!(limit_of(&space).await, 32_768 - 2_048, "saving the settings keeps what the list states");
        space.post("Hello.").await;
        space.settle().await;
        let sent = upstream.body(0);
        let names = ["repeat_penalty", "repetition_penalty", "seed", "max_tokens"];
        assert_eq!(json!(names.map(|it| sent[it].clone())), json!([1.1, null, 7, 2_048]));
        expect(200, admin.patch(&path, json!({"settings": {"context_tokens": 4_096, "samplers": ["seed"]}})).await);
        assert_eq!(limit_of(&space).await, 4_096 - 512, "an admin decides");
        space.post("Hello again.").await;
        space.settle().await;
        let sent = upstream.body(1);
        assert_eq!((&sent["repeat_penalty"], &sent["temperature"], &sent["seed"]), (&Value::Null, &Value::Null, &json!(7)));
    }

    async fn a_test_reads_the_list_and_forgets_what_was_detected_before(backend) {
        let space = TestSpace::open(backend, json!({}), &["Ada"]).await;
        let admin = &space.person;
        let list = |owner: &str, window: i64| {
            json!({"data": [{"id": "scripted", "owned_by": owner, "max_model_len": window}]})
        };
        let path = format!("/api/providers/{}", id(&provider(admin).await));
        space.upstream.document("/v1/models", list("vllm", 16_384));
        expect(200, admin.post(&format!("{path}/test"), json!({})).await);
        let mut first = provider(admin).await["settings"]["detected"].clone();
        let read_at = first.as_object_mut().unwrap().shift_remove("listed_at");
        assert!(read_at.is_some_and(|it| it.is_i64()), "{first}");
        space.upstream.document("/v1/models", json!({"data": [{"id": "scripted"}]}));

        expect(200, admin.post(&format!("{path}/test"), json!({})).await);

        assert_eq!(first, json!({"context_tokens": {"scripted": 16_384}, "backend": "vllm"}));
        assert_eq!(provider(admin).await["settings"]["detected"], Value::Null);
    }

    async fn the_inspector_states_how_much_of_a_prompt_equals_the_previous_one(backend) {
        let space = TestSpace::open(backend, json!({}), &["Ada"]).await;
        let path = format!("/api/conversations/{}", space.conversation);
        let first = expect(200, space.person.get(&format!("{path}/prompt")).await);
        space.post("Hello.").await;
        space.settle().await;
        space.post("How are you?").await;
        space.settle().await;

        let runs = expect(200, space.person.get(&format!("{path}/runs")).await);
        let mut runs = runs["data"].as_array().unwrap().clone();
        runs.sort_by_key(|it| it["run_seq"].as_i64());
        let ids: Vec<&str> = runs.iter().filter_map(|it| it["id"].as_str()).collect();
        let [oldest, newest] = ids[..] else {
            panic!("there are two runs: {ids:?}");
        };
        let cache = async |run: &str| expect(200, space.person.get(&format!("/api/runs/{run}/prompt")).await)["cache"].clone();
        let preview = expect(200, space.person.get(&format!("{path}/prompt")).await);

        assert_eq!((&first["cache"], cache(oldest).await), (&Value::Null, Value::Null));
        let of_newest = cache(newest).await;
        assert_eq!(of_newest["previous_run_id"], oldest);
        let (equal, total) = (&of_newest["equal_tokens"], &of_newest["total_tokens"]);
        assert!(equal.as_i64() > Some(0) && equal.as_i64() < total.as_i64(), "{of_newest}");
        assert_eq!(preview["cache"]["previous_run_id"], newest);
    }
}
