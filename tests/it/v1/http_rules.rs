//! Tests of the rules of HTTP that clients of `/v1` rely on: methods, headers of answers, compressed
//! bodies, and messages that state what is wrong.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::{GzEncoder, ZlibEncoder};
use reqwest::Method;
use serde_json::{Value, json};

use super::fixture::{V1Fixture, id, text};
use crate::support::backends::on_sqlite;
use crate::support::http_client::http_client;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

on_sqlite! {
    async fn a_wrong_method_gets_the_methods_of_the_path_and_head_works_like_get(backend) {
        let fixture = V1Fixture::open(backend).await;
        let made = fixture.program.respond(json!({ "input": "Hi." })).await;
        let send = async |method: Method, path: &str| {
            fixture.program.request(method, path).send().await.unwrap()
        };

        for (method, path, allowed) in [
            (Method::PUT, "/responses", "GET, POST"),
            (Method::POST, "/models", "GET, HEAD"),
            (Method::PATCH, "/responses/resp_1", "GET, HEAD, DELETE"),
            (Method::GET, "/memory/query", "POST"),
        ] {
            let answer = send(method, path).await;
            assert_eq!((answer.status().as_u16(), answer.headers()["allow"].to_str().unwrap()), (405, allowed), "{path}");
        }
        for path in ["/models".to_owned(), format!("/responses/{}", id(&made)), format!("/responses/{}?stream=true", id(&made))] {
            let answer = send(Method::HEAD, &path).await;
            assert_eq!(answer.status(), 200, "{path}");
            assert_eq!(answer.text().await.unwrap(), "");
        }
        let unknown = send(Method::POST, "/foo").await;
        assert_eq!(unknown.status(), 404);
        let body: Value = unknown.json().await.unwrap();
        assert_eq!(body["error"]["message"], "No such endpoint: POST /v1/foo.");
        let without_key = http_client().get(format!("{}/v1/models", fixture.app.base)).send().await.unwrap();
        assert_eq!(without_key.headers()["www-authenticate"], "Bearer");
        fixture.close().await;
    }

    async fn a_compressed_body_is_read_and_an_unknown_encoding_is_named(backend) {
        let fixture = V1Fixture::open(backend).await;
        let body = json!({ "model": "scripted", "input": "Hi." }).to_string();
        let send = async |encoding: &str, body: Vec<u8>| {
            let request = fixture.program.request(Method::POST, "/responses");
            let request = request.header("content-type", "application/json");
            let answer = request.header("content-encoding", encoding).body(body).send().await.unwrap();
            (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
        };

        for (encoding, packed) in [("gzip", gzip(body.as_bytes())), ("deflate", deflate(body.as_bytes()))] {
            let (status, answer) = send(encoding, packed).await;
            assert_eq!((status, text(&answer)), (200, "Hello.".to_owned()), "{encoding}: {answer}");
        }
        let (status, refused) = send("zstd", body.clone().into_bytes()).await;
        assert_eq!((status, &refused["error"]["code"]), (415, &json!("unsupported_media_type")));
        assert!(refused["error"]["message"].as_str().unwrap().contains("'zstd'"), "{refused}");
        assert_eq!(send("gzip", gzip(&vec![b' '; 4 << 20])).await.0, 413);
        assert_eq!(send("gzip", body.into_bytes()).await.1["error"]["code"], "invalid_json");
        fixture.close().await;
    }

    async fn answers_state_their_id_duration_and_limits_in_headers(backend) {
        let fixture = V1Fixture::open_with(backend, &[("RESPONSES_RATE_PER_MINUTE", "2")]).await;
        let send = async |stream: bool, id: &str| {
            let body = json!({ "model": "scripted", "input": "Hi.", "stream": stream });
            let request = fixture.program.request(Method::POST, "/responses").json(&body);
            request.header("x-client-request-id", id).send().await.unwrap()
        };
        let long = "x".repeat(513);

        let (whole, streamed, refused) = (send(false, "mine").await, send(true, &long).await, send(false, "").await);

        let value = |answer: &reqwest::Response, name: &str| {
            answer.headers().get(name).map(|it| it.to_str().unwrap().to_owned())
        };
        assert_eq!(value(&whole, "x-client-request-id").as_deref(), Some("mine"));
        assert_eq!(value(&streamed, "x-client-request-id"), None);
        assert!(value(&whole, "openai-processing-ms").unwrap().parse::<u64>().is_ok());
        assert_eq!(value(&streamed, "openai-processing-ms"), None);
        for (answer, left) in [(&whole, "1"), (&streamed, "0"), (&refused, "0")] {
            assert_eq!(value(answer, "x-ratelimit-limit-requests").as_deref(), Some("2"));
            assert_eq!(value(answer, "x-ratelimit-remaining-requests").as_deref(), Some(left));
            assert_eq!(value(answer, "x-ratelimit-reset-requests").as_deref(), Some("1m0s"));
        }
        assert_eq!(refused.status(), 429);
        assert_eq!(value(&refused, "retry-after").as_deref(), Some("60"));
        let ids = [&whole, &streamed, &refused].map(|it| value(it, "x-request-id").unwrap());
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
        fixture.close().await;
    }

    async fn a_message_names_the_parameter_the_value_and_what_is_supported(backend) {
        let fixture = V1Fixture::open(backend).await;
        let message = async |fields: Value| {
            let mut body = json!({ "model": "scripted", "input": "Hi." });
            for (name, value) in fields.as_object().unwrap() {
                body[name] = value.clone();
            }
            let (status, answer) = fixture.program.post("/responses", body).await;
            assert_eq!(status, 400, "{answer}");
            answer["error"]["message"].as_str().unwrap().to_owned()
        };

        assert_eq!(message(json!({ "wobble": 1 })).await, "Unknown parameter: 'wobble'.");
        assert_eq!(message(json!({ "moderation": {} })).await, "Unsupported parameter: 'moderation'.");
        assert_eq!(message(json!({ "temperature": 5 })).await, "Invalid value for 'temperature': 5. Must be between 0 and 2.");
        assert_eq!(message(json!({ "stream": "yes" })).await, "Invalid value for 'stream': 'yes'. Must be true or false.");
        assert_eq!(
            message(json!({ "tools": [{ "type": "foo" }] })).await,
            "Unsupported tool type 'foo' at tools[0]; supported: function, custom, local_shell, mcp, namespace, troupe:*."
        );
        let long = message(json!({ "truncation": "x".repeat(65) })).await;
        assert!(long.starts_with(&format!("Invalid value for 'truncation': '{}…'. Must be ", "x".repeat(64))), "{long}");
        let secret = json!({ "type": "mcp", "server_label": "w", "server_url": "https://w.test", "authorization": format!("canary{}", "x".repeat(8 * 1024)) });
        assert!(!message(json!({ "tools": [secret] })).await.contains("canary"));
        fixture.close().await;
    }

    async fn a_long_json_answer_is_compressed_if_the_client_accepts_it_and_a_stream_never(backend) {
        let fixture = V1Fixture::open(backend).await;
        let body = json!({ "model": "scripted", "input": "x".repeat(2_000), "metadata": { "a": "b".repeat(500), "c": "d".repeat(500) } });
        let send = async |body: &Value, accepted: &str| {
            let request = fixture.program.request(Method::POST, "/responses").json(body);
            request.header("accept-encoding", accepted).send().await.unwrap()
        };

        let packed = send(&body, "br, gzip").await;

        assert_eq!(packed.headers()["content-encoding"], "gzip");
        assert_eq!(packed.headers()["vary"], "accept-encoding");
        assert!(packed.headers().contains_key("openai-processing-ms"));
        let bytes = packed.bytes().await.unwrap();
        let mut unpacked = String::new();
        GzDecoder::new(&bytes[..]).read_to_string(&mut unpacked).unwrap();
        let response: Value = serde_json::from_str(&unpacked).unwrap();
        assert_eq!(response["metadata"]["a"], body["metadata"]["a"]);
        let plain = send(&body, "identity").await;
        assert!(!plain.headers().contains_key("content-encoding"));
        let short = fixture.program.request(Method::GET, "/responses/resp_1").header("accept-encoding", "gzip");
        assert!(!short.send().await.unwrap().headers().contains_key("content-encoding"));
        let mut streamed = body.clone();
        streamed["stream"] = json!(true);
        let stream = send(&streamed, "gzip").await;
        assert!(!stream.headers().contains_key("content-encoding"));
        assert!(stream.text().await.unwrap().ends_with("data: [DONE]\n\n"));
        fixture.close().await;
    }
}
