//! Tests of the list of endpoints: it matches its snapshot, and every endpoint is mounted.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use troupe::server::endpoints;
use troupe::web::openapi::endpoint::ApiEndpoint;

use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::http_client::http_client;
use crate::support::http_response::Answer;

/// Every method that an endpoint can have.
const METHODS: [Method; 5] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
];

fn all() -> Vec<ApiEndpoint> {
    let endpoints = endpoints::all();
    [endpoints.api, endpoints.open].concat()
}

/// Returns the path of an endpoint with 1 for each parameter in braces, or a UUID for a run.
fn address(endpoint: &ApiEndpoint) -> String {
    let parts = endpoint.path().split('/').map(|part| match part {
        "{run_id}" => "01890000-0000-7000-8000-000000000001",
        _ if part.starts_with('{') => "1",
        _ => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Returns the methods of each path.
fn endpoint_methods() -> BTreeMap<String, BTreeSet<String>> {
    let mut methods_by_path: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for endpoint in all() {
        let methods = methods_by_path.entry(address(&endpoint)).or_default();
        assert!(
            methods.insert(endpoint.method().to_string()),
            "{} {} is listed twice",
            endpoint.method(),
            endpoint.path()
        );
    }
    methods_by_path
}

#[test]
fn the_list_of_endpoints_matches_its_snapshot() {
    let mut endpoints: Vec<_> = all()
        .iter()
        .map(|endpoint| (endpoint.path().to_owned(), endpoint.method().to_string()))
        .collect();
    endpoints.sort();
    let lines: Vec<_> = endpoints
        .iter()
        .map(|(path, method)| format!("{method} {path}"))
        .collect();

    insta::assert_snapshot!(lines.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_path_accepts_its_methods_and_lists_them_for_others() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let client = http_client();

    for (address, methods) in endpoint_methods() {
        for method in METHODS {
            let url = format!("{}{address}", app.base);
            let answer = Answer::to(client.request(method.clone(), url)).await;
            if methods.contains(method.as_str()) {
                // A client that is not signed in gets 401 from most endpoints; 404 and 405 mean
                // that the endpoint is not mounted. The invite endpoint returns its own 404 for an
                // unknown token.
                let is_mounted = ![404, 405].contains(&answer.status)
                    || answer.text.contains("This invite does not exist");
                assert!(is_mounted, "{method} {address}");
                continue;
            }
            let refusal = (405, "method_not_allowed".to_owned());
            assert_eq!(answer.refusal(), refusal, "{method} {address}");
            let allowed = answer.header("allow").split(", ").map(str::to_owned);
            assert_eq!(allowed.collect::<BTreeSet<_>>(), methods, "{address}");
        }
    }
    app.close().await;
}
