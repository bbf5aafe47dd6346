//! Tests every string of the corpus in every field of a request that can contain text.

use serde_json::json;

use crate::support::app::TestApp;
use crate::support::backends::on_sqlite;
use crate::support::http_client::HttpClient;
use crate::untrusted_input::attacks::{Attack, send};
use crate::untrusted_input::encodings::{BROKEN_PERCENTS, BROKEN_TOKENS, percent_encoded, share};
use crate::untrusted_input::endpoint_fields::{EndpointFields, Field, Shape, of_all_endpoints};
use crate::untrusted_input::installation::{Installation, all_endpoints, parameter};
use crate::untrusted_input::strings;

/// Every string as a path segment, but those that are too long for a request head.
fn segments() -> Vec<String> {
    let strings = strings::all().into_iter().filter(|it| it.len() < 10_000);
    let encoded = strings.map(|it| percent_encoded(&it));
    encoded
        .chain(BROKEN_PERCENTS.iter().map(|it| (*it).to_owned()))
        .collect()
}

fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

on_sqlite! {
    async fn no_string_in_a_path_causes_a_server_error(backend) {
        let server = Installation::open(backend).await;
        let mut attacks = Vec::new();
        let segments = segments();
        let mut index = 0;
        for endpoint in all_endpoints() {
            let address = server.address(&endpoint).await;
            let parts: Vec<&str> = address.split('/').collect();
            let indexed_parts = endpoint.path().split('/').enumerate();
            for (at, _) in indexed_parts.filter(|(_, it)| parameter(it).is_some()) {
                // A number may be an existing id, which a deletion must not find.
                let is_deletion = endpoint.method() == "DELETE";
                let segments: Vec<_> = segments.iter().filter(|it| !is_deletion || it.trim_start_matches("%2B").parse::<i64>().is_err()).collect();
                index += 1;
                for segment in share(&segments, index) {
                    let mut parts = parts.clone();
                    parts[at] = segment.as_str();
                    let target = parts.join("/");
                    let method = endpoint.method().as_str();
                    let what = format!("{method} {}: {}", endpoint.path(), shown(segment));
                    let bytes = server.request_with(method, &target, "{}");
                    attacks.push(Attack { what, bytes });
                }
            }
        }

        let tally = send(&server.app.base, attacks).await;

        tally.finish("strings in paths");
        server.close_unharmed().await;
    }

    async fn no_string_in_a_body_field_causes_a_server_error(backend) {
        let server = Installation::open(backend).await;
        let strings = strings::all();
        let mut attacks = Vec::new();
        let mut n_fields = 0;
        for endpoint in of_all_endpoints(&server).await {
            for field in &endpoint.fields {
                n_fields += 1;
                attacks.extend(in_field(&server, &endpoint, field, &strings, n_fields));
            }
        }
        // The longest last, because later requests read what earlier ones stored.
        attacks.sort_by_key(|it| it.bytes.len() > 4_000);
        assert!(n_fields > 80, "only {n_fields} fields were found");

        let tally = send(&server.app.base, attacks).await;

        tally.finish(&format!("strings in {n_fields} fields of bodies"));
        server.close_unharmed().await;
    }
}

on_sqlite! {
    async fn setup_rejects_an_incomplete_account_with_any_string(backend) {
        let app = TestApp::start(backend).await;
        let host = app.base.trim_start_matches("http://").to_owned();
        let strings = strings::all();
        let bodies = strings.iter().flat_map(|it| {
            [
                json!({"username": it, "password": "short", "display_name": it}),
                json!({"username": "", "password": it, "display_name": "A"}),
            ]
        });
        let attacks = bodies.map(|body| {
            let body = body.to_string();
            let head = "POST /api/setup HTTP/1.1\r\ncontent-type: application/json";
            let request = format!("{head}\r\nhost: {host}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            Attack { what: shown(&body), bytes: request.into_bytes() }
        });

        let tally = send(&app.base, attacks.collect()).await;

        assert_eq!(tally.by_status.keys().collect::<Vec<_>>(), [&422]);
        tally.finish("strings in the setup");
        let needed = HttpClient::new(&app.base).get("/api/setup").await;
        assert_eq!(needed, (200, json!({"needed": true})));
        app.close().await;
    }
}

fn in_field(
    server: &Installation,
    endpoint: &EndpointFields,
    field: &Field,
    strings: &[String],
    index: usize,
) -> Vec<Attack> {
    // A sign-in attempt takes about 20 ms of hashing.
    let step = if endpoint.base.contains_key("password") {
        4
    } else {
        1
    };
    let strings = share(strings, index).step_by(step);
    let bodies: Vec<String> = match field.shape {
        Shape::None => Vec::new(),
        shape => strings
            .map(|it| endpoint.body_with(&field.name, shape.around(it)))
            .collect(),
    };
    let broken = share(BROKEN_TOKENS, index).map(|it| format!("{{\"{}\":{it}}}", field.name));
    bodies
        .into_iter()
        .chain(broken)
        .map(|body| Attack {
            what: format!("{} {}: {}", endpoint.call(), field.name, shown(&body)),
            bytes: server.request_with(&endpoint.method, &endpoint.address, &body),
        })
        .collect()
}
