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
    let routes = std::fs::read_to_string("src/web/v1/routes.rs").expect("the routes of /v1");
    let paths = routes
        .split("at(\"")
        .skip(1)
        .filter_map(|it| it.split('"').next());
    let paths = paths.map(|it| it.replace("{id:.+}", "x").replace("{id}", "x"));
    let paths = paths.map(|it| format!("/v1{}", it.replace("{item_id}", "y")));
    paths.chain(["/v1/nowhere".to_owned()]).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_private_answer_may_be_kept_by_a_cache() {
    let house = EndpointFixture::create(TestBackend::Sqlite, &[]).await;
    let program = V1Client::new(&house.admin).await;
    let mut addresses: Vec<String> = all_endpoints().iter().map(|it| house.address(it)).collect();
    addresses.extend(addresses_of_v1());
    addresses.extend(["/api", "/api/nowhere", "/api/spaces/+1"].map(str::to_owned));
    assert!(addresses.len() > 100, "{}", addresses.len());
    let is_private = |it: &&String| it.starts_with("/api") || it.starts_with("/v1");

    for address in addresses.iter().filter(is_private) {
        let url = format!("{}{address}", house.app.base);
        for method in [Method::GET, Method::POST, Method::PATCH, Method::PUT] {
            let is_open = address == "/api/setup" && method == Method::GET;
            let stranger = http_client().request(method.clone(), &url);
            let by_key = http_client()
                .request(method.clone(), &url)
                .bearer_auth(&program.key);
            for asked in [stranger, house.request(method.clone(), address), by_key] {
                let answer = Answer::to(asked).await;
                let kept = answer.header("cache-control");
                let is_picture = answer.header("content-type").starts_with("image/");
                match is_open || is_picture {
                    true => assert!(!kept.contains("no-store"), "{method} {address}: {kept}"),
                    false => assert_eq!(kept, "no-store", "{method} {address}"),
                }
            }
        }
    }
    house.app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_stream_of_a_program_may_be_kept_by_a_cache() {
    let house = EndpointFixture::create(TestBackend::Sqlite, &[]).await;
    let program = V1Client::new(&house.admin).await;
    let url = format!("{}/v1/responses", house.app.base);
    let models = program.get("/models").await.1;
    let asked = json!({"model": models["data"][0]["id"], "input": "Hi.", "stream": true});

    let asked = http_client()
        .post(url)
        .bearer_auth(&program.key)
        .json(&asked);
    let answer = Answer::to(asked).await;

    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.header("cache-control"), "no-store, no-transform");
    house.app.close().await;
}
