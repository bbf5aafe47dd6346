//! Tests of runs that are polled: their end, messages, steps and usage, and what a run repeats.

use serde_json::{Value, json};

use super::support::{ThreadClient, function, text_of, user};
use crate::support::backends::{on_both, on_sqlite};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::expect;
use crate::support::v1_client::error_of;
use crate::v1::fixture::{V1Fixture, id};

on_both! {
    async fn a_run_completes_with_a_message_a_step_and_its_usage(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.always(ResponseScript::say("It is noon."));
        let client = ThreadClient::new(&fixture.program, json!({}), &["What time is it?"]).await;

        let queued = client.create(json!({ "metadata": { "a": "b" } })).await;
        let run = client.wait_for(id(&queued), "completed").await;

        assert_eq!((&queued["object"], &queued["status"]), (&json!("thread.run"), &json!("queued")));
        assert_eq!(queued["usage"], Value::Null);
        assert_eq!((&run["metadata"], &run["model"]), (&json!({ "a": "b" }), &json!("scripted")));
        let usage = json!({ "prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10 });
        assert_eq!(run["usage"], usage);
        for (name, is_given) in [("started_at", true), ("completed_at", true), ("expires_at", false), ("failed_at", false), ("required_action", false)] {
            assert_eq!(!run[name].is_null(), is_given, "{name}: {run}");
        }
        let messages = client.messages().await;
        let answer = messages.last().unwrap();
        assert_eq!((messages.len(), text_of(answer).as_str()), (2, "It is noon."));
        assert_eq!((&answer["role"], &answer["status"]), (&json!("assistant"), &json!("completed")));
        assert_eq!((&answer["run_id"], &answer["assistant_id"]), (&run["id"], &json!(client.assistant)));
        let steps = client.steps(id(&run)).await;
        assert_eq!(steps.len(), 1);
        assert_eq!((&steps[0]["type"], &steps[0]["status"]), (&json!("message_creation"), &json!("completed")));
        let created = json!({ "type": "message_creation", "message_creation": { "message_id": answer["id"] } });
        assert_eq!((&steps[0]["step_details"], &steps[0]["usage"]), (&created, &usage));
        let path = client.path(&format!("/runs/{}/steps/{}", id(&run), id(&steps[0])));
        assert_eq!(fixture.program.get(&path).await, (200, steps[0].clone()));
        fixture.close().await;
    }

    async fn while_a_run_is_active_its_thread_accepts_no_message_and_no_other_run(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::hang_before_headers());
        let client = ThreadClient::new(&fixture.program, json!({}), &["Hi."]).await;
        let other = ThreadClient::new(&fixture.program, json!({}), &["Hello."]).await;
        let run = client.create(json!({})).await;
        fixture.upstream.wait_for_requests(1).await;

        let message = error_of(&client.say("More.").await);
        let second = client.create_with_error(json!({})).await;
        let elsewhere = other.run_until(json!({}), "completed").await;

        assert_eq!((message.0, message.1.as_str()), (400, "thread_has_active_run"));
        assert_eq!((second.0, second.1.as_str()), (400, "thread_has_active_run"));
        assert_eq!(elsewhere["thread_id"], json!(other.thread));
        assert_eq!(fixture.n_rows("thread_runs").await, 2);
        client.cancel(id(&run)).await;
        client.wait_for(id(&run), "cancelled").await;
        expect(200, client.say("More.").await);
        fixture.close().await;
    }

    async fn of_two_concurrent_runs_one_is_created(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.always(ResponseScript::hang_before_headers());
        let client = ThreadClient::new(&fixture.program, json!({}), &["Hi."]).await;
        let body = json!({ "assistant_id": client.assistant });
        let path = client.path("/runs");

        let create = || fixture.program.post(&path, body.clone());
        let (first, second) = futures::join!(create(), create());

        let mut statuses = [first.0, second.0];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 400]);
        assert_eq!(fixture.n_rows("thread_runs").await, 1);
        let run = if first.0 == 200 { first.1 } else { second.1 };
        client.cancel(id(&run)).await;
        client.wait_for(id(&run), "cancelled").await;
        fixture.close().await;
    }
}

on_sqlite! {
    async fn a_run_repeats_its_settings_and_sends_them_to_the_model(backend) {
        let fixture = V1Fixture::open(backend).await;
        let assistant = json!({ "instructions": "Be kind.", "temperature": 0.25, "tools": [function("f")] });
        let client = ThreadClient::new(&fixture.program, assistant, &["Hi."]).await;
        fixture.add_model("openai_compatible", "other").await;

        let plain = client.run_until(json!({}), "completed").await;
        let changed = client.run_until(json!({
            "model": "other", "instructions": "Be brief.", "additional_instructions": "Rhyme.",
            "temperature": 0.5, "top_p": 0.75, "tools": [function("g")], "tool_choice": "none",
            "parallel_tool_calls": false, "max_completion_tokens": 50,
            "truncation_strategy": { "type": "last_messages", "last_messages": 5 },
        }), "completed").await;

        let sent = fixture.upstream.body(0);
        assert_eq!(sent["messages"][0], json!({ "role": "system", "content": "Be kind." }));
        assert_eq!((&sent["temperature"], &sent["tools"][0]["function"]["name"]), (&json!(0.25), &json!("f")));
        assert_eq!((&plain["instructions"], &plain["tools"]), (&json!("Be kind."), &json!([function("f")])));
        let sent = fixture.upstream.body(1);
        assert_eq!(sent["messages"][0]["content"], "Be brief.\n\nRhyme.");
        assert_eq!((&sent["model"], &sent["temperature"], &sent["top_p"]), (&json!("other"), &json!(0.5), &json!(0.75)));
        assert_eq!(sent["tools"][0]["function"]["name"], "g");
        for (name, value) in [
            ("model", json!("other")), ("instructions", json!("Be brief.\n\nRhyme.")), ("temperature", json!(0.5)),
            ("top_p", json!(0.75)), ("tools", json!([function("g")])), ("tool_choice", json!("none")),
            ("parallel_tool_calls", json!(false)), ("max_completion_tokens", json!(50)),
            ("truncation_strategy", json!({ "type": "last_messages", "last_messages": 5 })),
        ] {
            assert_eq!(changed[name], value, "{name}");
        }
        fixture.close().await;
    }

    async fn a_thread_and_its_run_are_created_together(backend) {
        let fixture = V1Fixture::open(backend).await;
        let client = ThreadClient::new(&fixture.program, json!({}), &[]).await;
        let thread = json!({ "messages": [user("Hi.")], "metadata": { "k": "v" } });
        let body = json!({ "assistant_id": client.assistant, "thread": thread });

        let run = expect(200, fixture.program.post("/threads/runs", body).await);

        let created = ThreadClient { thread: run["thread_id"].as_str().unwrap().to_owned(), ..client };
        created.wait_for(id(&run), "completed").await;
        assert_eq!(created.texts().await, ["Hi.", "Hello."]);
        let (_, found) = fixture.program.get(&created.path("")).await;
        assert_eq!(found["metadata"], json!({ "k": "v" }));
        let refused = json!({ "assistant_id": "asst_0", "thread": thread });
        let refused = error_of(&fixture.program.post("/threads/runs", refused).await);
        assert_eq!((refused.0, refused.2), (404, json!("assistant_id")));
        assert_eq!(fixture.n_rows("threads").await, 2, "a rejected request created a thread");
        fixture.close().await;
    }

    async fn runs_are_listed_newest_first_and_their_metadata_can_be_changed(backend) {
        let fixture = V1Fixture::open(backend).await;
        let client = ThreadClient::new(&fixture.program, json!({}), &["Hi."]).await;
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(client.run_until(json!({}), "completed").await["id"].clone());
        }

        let (_, page) = fixture.program.get(&client.path("/runs?limit=2")).await;
        let after = client.path(&format!("/runs?limit=2&after={}", ids[1].as_str().unwrap()));
        let (_, next) = fixture.program.get(&after).await;
        let path = client.path(&format!("/runs/{}", ids[0].as_str().unwrap()));
        let changed = expect(200, fixture.program.post(&path, json!({ "metadata": { "x": "y" } })).await);

        assert_eq!((&page["data"][0]["id"], &page["data"][1]["id"]), (&ids[2], &ids[1]));
        assert_eq!(page["has_more"], true);
        assert_eq!((&next["data"][0]["id"], &next["has_more"]), (&ids[0], &json!(false)));
        assert_eq!(changed["metadata"], json!({ "x": "y" }));
        assert_eq!(fixture.program.get(&path).await.1, changed);
        fixture.close().await;
    }

    async fn a_run_of_another_user_or_thread_is_not_found(backend) {
        let fixture = V1Fixture::open(backend).await;
        let client = ThreadClient::new(&fixture.program, json!({}), &["Hi."]).await;
        let run = client.run_until(json!({}), "completed").await;
        let person = fixture.app.register("eve").await;
        let stranger = crate::support::v1_client::V1Client::new(&person).await;
        let other = ThreadClient::new(&fixture.program, json!({}), &["Hi."]).await;
        let path = client.path(&format!("/runs/{}", id(&run)));
        let wrong = other.path(&format!("/runs/{}", id(&run)));

        for (program, path) in [(&stranger, &path), (&fixture.program, &wrong)] {
            for rest in ["", "/steps"] {
                assert_eq!(program.get(&format!("{path}{rest}")).await.0, 404);
            }
            for rest in ["/cancel", "/submit_tool_outputs"] {
                let body = json!({ "tool_outputs": [] });
                assert_eq!(program.post(&format!("{path}{rest}"), body).await.0, 404);
            }
        }
        let foreign = json!({ "assistant_id": client.assistant, "thread": {} });
        assert_eq!(stranger.post("/threads/runs", foreign).await.0, 404);
        fixture.close().await;
    }

    async fn an_invalid_run_is_rejected_and_stores_nothing(backend) {
        let fixture = V1Fixture::open(backend).await;
        let client = ThreadClient::new(&fixture.program, json!({}), &["Hi."]).await;
        for (fields, status, code, param) in [
            (json!({ "assistant_id": null }), 400, "missing_required_parameter", "assistant_id"),
            (json!({ "assistant_id": "asst_0" }), 404, "not_found", "assistant_id"),
            (json!({ "wobble": 1 }), 400, "unknown_parameter", "wobble"),
            (json!({ "model": "none" }), 404, "model_not_found", "model"),
            (json!({ "temperature": 5 }), 400, "invalid_value", "temperature"),
            (json!({ "tools": [{ "type": "file_search" }] }), 400, "unsupported_tool", "tools[0].type"),
            (json!({ "tools": [{ "type": "troupe:memory" }] }), 400, "unsupported_tool", "tools[0].type"),
            (json!({ "truncation_strategy": { "type": "last_messages" } }), 400, "missing_required_parameter", "truncation_strategy.last_messages"),
            (json!({ "additional_messages": [{ "role": "user" }] }), 400, "missing_required_parameter", "additional_messages[0].content"),
        ] {
            let refused = client.create_with_error(fields.clone()).await;
            assert_eq!(refused, (status, code.to_owned(), json!(param)), "{fields}");
        }
        assert_eq!(fixture.n_rows("thread_runs").await, 0);
        assert_eq!(fixture.n_rows("thread_messages").await, 1);
        assert_eq!(fixture.upstream.n_requests(), 0);
        fixture.close().await;
    }
}
