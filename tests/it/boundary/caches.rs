//! Only the client, pictures and the setup state may be cached.

use reqwest::Method;
use serde_json::json;

use super::space_isolation::{EndpointFixture, all_endpoints};
use crate::support::backends::TestBackend;
use crate::support::http_client::http_client;
use crate::support::http_response::Answer;
use crate::support::v1_client::V1Client;

/// Returns the paths under `/v1` from its routes, and one that does not exist.
fn addresses_of_v1() -> Vec<String> {
    let routes =
        std::fs::read_to_string("src/web/v1/routes.rs").expect("the routes of /v1 are readable");
    let paths = routes
        .split("at(\"")
        .skip(1)
        .filter_map(|it| it.split('"').next());
    let paths = paths.map(|it| it.replace("{id:.+}", "x").replace("{id}", "x"));
    let paths = paths.map(|it| format!("/v1{}", it.replace("{item_id}", "y")));
    paths.chain(["/v1/nowhere".to_owned()]).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn private_responses_are_never_cached() {
    let fixture = EndpointFixture::create(TestBackend::Sqlite, &[]).await;
    let program = V1Client::new(&fixture.admin).await;
    let mut addresses: Vec<String> = all_endpoints()
        .iter()
        .map(|it| fixture.address(it))
        .collect();
    addresses.extend(addresses_of_v1());
    addresses.extend(["/api", "/api/nowhere", "/api/spaces/+1"].map(str::to_owned));
    assert!(addresses.len() > 100, "{}", addresses.len());
    let is_private = |it: &&String| it.starts_with("/api") || it.starts_with("/v1");

    for address in addresses.iter().filter(is_private) {
        let url = format!("{}{address}", fixture.app.base);
        for method in [Method::GET, Method::POST, Method::PATCH, Method::PUT] {
            let is_open = address == "/api/setup" && method == Method::GET;
            let signed_out = http_client().request(method.clone(), &url);
            let by_key = http_client()
                .request(method.clone(), &url)
                .bearer_auth(&program.key);
            for request in [signed_out, fixture.request(method.clone(), address), by_key] {
                let answer = Answer::to(request).await;
                let cache_control = answer.header("cache-control");
                let is_picture = answer.header("content-type").starts_with("image/");
                match is_open || is_picture {
                    true => assert!(
                        !cache_control.contains("no-store"),
                        "{method} {address}: {cache_control}"
                    ),
                    false => assert_eq!(cache_control, "no-store", "{method} {address}"),
                }
            }
        }
    }
    fixture.app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v1_streams_are_never_cached() {
    let fixture = EndpointFixture::create(TestBackend::Sqlite, &[]).await;
    let program = V1Client::new(&fixture.admin).await;
    let url = format!("{}/v1/responses", fixture.app.base);
    let models = program.get("/models").await.1;
    let request = json!({"model": models["data"][0]["id"], "input": "Hi.", "stream": true});

    let request = http_client()
        .post(url)
        .bearer_auth(&program.key)
        .json(&request);
    let answer = Answer::to(request).await;

    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.header("cache-control"), "no-store, no-transform");
    fixture.app.close().await;
}
