//! Tests of `/v1/assistants`: stored settings for runs of threads.

use reqwest::Method;
use serde_json::{Value, json};

use super::support::{create_assistant, create_thread, objects, user};
use crate::support::backends::{on_both, on_sqlite};
use crate::support::http_client::expect;
use crate::support::v1_client::{V1Client, error_of};
use crate::v1::fixture::{V1Fixture, id};

on_both! {
    async fn an_assistant_is_created_changed_and_deleted(backend) {
        let fixture = V1Fixture::open(backend).await;
        let function = json!({ "name": "f", "parameters": { "type": "object" }, "strict": true });
        let tools = json!([{ "type": "function", "function": function }, { "type": "troupe:dice" }]);
        let schema = json!({ "name": "s", "schema": { "type": "object" } });
        let body = json!({
            "model": "scripted", "name": "Ada", "description": "Helps.", "instructions": "Be kind.",
            "tools": tools, "metadata": { "a": "b" }, "temperature": 0.25, "top_p": 0.5,
            "response_format": { "type": "json_schema", "json_schema": schema },
        });

        let made = expect(200, fixture.program.post("/assistants", body.clone()).await);

        let path = format!("/assistants/{}", id(&made));
        assert!(id(&made).starts_with("asst_"), "{made}");
        assert_eq!(made["object"], "assistant");
        for (name, value) in body.as_object().expect("an object") {
            assert_eq!(&made[name], value, "{name}");
        }
        assert_eq!(fixture.program.get(&path).await, (200, made.clone()));
        let change = json!({ "instructions": "Be brief.", "tools": [], "metadata": {} });
        let changed = expect(200, fixture.program.post(&path, change).await);
        let mut expected = made.clone();
        expected["instructions"] = json!("Be brief.");
        expected["tools"] = json!([]);
        expected["metadata"] = json!({});
        assert_eq!(changed, expected);
        let unchanged = expect(200, fixture.program.post(&path, json!({ "name": null })).await);
        assert_eq!(unchanged, expected);
        let deleted = json!({ "id": made["id"], "object": "assistant.deleted", "deleted": true });
        assert_eq!(fixture.program.delete(&path).await, (200, deleted));
        assert_eq!(fixture.program.get(&path).await.0, 404);
        assert_eq!(fixture.program.post(&path, json!({})).await.0, 404);
        assert_eq!(fixture.program.delete(&path).await.0, 404);
        fixture.close().await;
    }
}

on_sqlite! {
    async fn an_assistant_without_settings_has_the_defaults(backend) {
        let fixture = V1Fixture::open(backend).await;

        let mut made = create_assistant(&fixture, json!({})).await;

        for name in ["id", "created_at"] {
            made[name] = json!(null);
        }
        assert_eq!(made, json!({
            "id": null, "object": "assistant", "created_at": null, "name": null,
            "description": null, "model": "scripted", "instructions": null, "tools": [],
            "metadata": {}, "temperature": 1.0, "top_p": 1.0, "response_format": "auto",
        }));
        fixture.close().await;
    }

    async fn an_assistant_requires_a_known_model_and_supported_tools(backend) {
        let fixture = V1Fixture::open(backend).await;
        let refused = async |body: Value| error_of(&fixture.program.post("/assistants", body).await);
        let tool = |kind: &str| json!({ "model": "scripted", "tools": [{ "type": kind }] });

        assert_eq!(refused(json!({})).await, (400, "missing_required_parameter".into(), json!("model")));
        assert_eq!(refused(json!({ "model": "none" })).await, (404, "model_not_found".into(), json!("model")));
        assert_eq!(refused(json!({ "model": "space:9" })).await.1, "model_not_found");
        for kind in ["file_search", "code_interpreter"] {
            assert_eq!(refused(tool(kind)).await, (400, "unsupported_tool".into(), json!("tools[0].type")));
        }
        let resources = json!({ "model": "scripted", "tool_resources": { "file_search": {} } });
        assert_eq!(refused(resources).await.1, "unsupported_tool");
        assert_eq!(fixture.n_rows("assistants").await, 0);
        let made = create_assistant(&fixture, json!({})).await;
        let path = format!("/assistants/{}", id(&made));
        let change = fixture.program.post(&path, json!({ "model": "none" })).await;
        assert_eq!(error_of(&change).1, "model_not_found");
        assert_eq!(fixture.program.get(&path).await.1, made);
        fixture.close().await;
    }

    async fn a_character_can_be_the_model_of_an_assistant(backend) {
        let fixture = V1Fixture::open(backend).await;
        let mina = fixture.admin.create_character("Mina", None).await;
        let model = format!("character:{}", mina["id"]);

        let made = expect(200, fixture.program.post("/assistants", json!({ "model": model })).await);

        assert_eq!(made["model"], model);
        let ben = V1Client::new(&fixture.app.register("ben").await).await;
        let refused = ben.post("/assistants", json!({ "model": model })).await;
        assert_eq!(error_of(&refused).1, "model_not_found");
        fixture.close().await;
    }

    async fn the_beta_header_of_the_sdks_is_accepted(backend) {
        let fixture = V1Fixture::open(backend).await;
        let request = fixture.program.request(Method::POST, "/assistants");
        let request = request.header("OpenAI-Beta", "assistants=v2");

        let answer = request.json(&json!({ "model": "scripted" })).send().await;

        assert_eq!(answer.expect("the server answers").status(), 200);
        fixture.close().await;
    }

    async fn data_of_another_user_is_not_found(backend) {
        let fixture = V1Fixture::open(backend).await;
        let assistant = create_assistant(&fixture, json!({})).await;
        let thread = create_thread(&fixture, &["Hi."]).await;
        let messages = format!("/threads/{thread}/messages");
        let message = objects(&fixture, &messages).await.remove(0);
        let ben = V1Client::new(&fixture.app.register("ben").await).await;

        for path in [
            format!("/assistants/{}", id(&assistant)),
            format!("/threads/{thread}"),
            format!("{messages}/{}", id(&message)),
        ] {
            assert_eq!(ben.get(&path).await.0, 404, "{path}");
            assert_eq!(ben.post(&path, json!({})).await.0, 404, "{path}");
            assert_eq!(ben.delete(&path).await.0, 404, "{path}");
            assert_eq!(fixture.program.get(&path).await.0, 200, "{path}");
        }
        assert_eq!(ben.get(&messages).await.0, 404);
        assert_eq!(ben.post(&messages, user("x")).await.0, 404);
        let own = expect(200, ben.get("/assistants").await);
        assert_eq!(own["data"], json!([]));
        fixture.close().await;
    }

    async fn an_id_of_another_type_of_object_is_not_found(backend) {
        let fixture = V1Fixture::open(backend).await;
        let assistant = create_assistant(&fixture, json!({})).await;
        let thread = create_thread(&fixture, &["Hi."]).await;
        let conversation = expect(200, fixture.program.post("/conversations", json!({})).await);

        for path in [
            format!("/threads/{}", id(&assistant)),
            format!("/threads/{}", id(&conversation)),
            format!("/assistants/{thread}"),
            format!("/threads/{thread}/messages/{thread}"),
            "/assistants/%00".to_owned(),
            "/threads/%00".to_owned(),
            format!("/threads/{thread}/messages/%00"),
        ] {
            assert_eq!(fixture.program.get(&path).await.0, 404, "{path}");
        }
        fixture.close().await;
    }

    async fn metadata_has_limits(backend) {
        let fixture = V1Fixture::open(backend).await;
        let thread = create_thread(&fixture, &[]).await;
        let pairs = |n: usize| (0..n).map(|it| (it.to_string(), json!("x"))).collect::<Value>();
        let bodies = |metadata: &Value| [
            ("/assistants".to_owned(), json!({ "model": "scripted", "metadata": metadata })),
            ("/threads".to_owned(), json!({ "metadata": metadata })),
            (format!("/threads/{thread}"), json!({ "metadata": metadata })),
            (format!("/threads/{thread}/messages"), json!({ "role": "user", "content": "x", "metadata": metadata })),
        ];

        for (metadata, param) in [
            (pairs(17), "metadata"),
            (json!({ "k".repeat(65): "x" }), "metadata.kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"),
            (json!({ "k": "x".repeat(513) }), "metadata.k"),
        ] {
            for (path, body) in bodies(&metadata) {
                let refused = error_of(&fixture.program.post(&path, body).await);
                assert_eq!(refused, (400, "invalid_value".into(), json!(param)), "{path}");
            }
        }
        let most = json!({ "k".repeat(64): "ä".repeat(512) });
        for metadata in [pairs(16), most] {
            for (path, body) in bodies(&metadata) {
                let made = expect(200, fixture.program.post(&path, body).await);
                assert_eq!(made["metadata"], metadata, "{path}");
            }
        }
        fixture.close().await;
    }
}
