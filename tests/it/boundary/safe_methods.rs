//! Safe methods change nothing, and a page of another site cannot send anything else: no image,
//! link or form.

use reqwest::Method;
use troupe::server::client_files;

use super::space_isolation::{EndpointFixture, all_endpoints};
use crate::support::backends::on_sqlite;
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_response::Answer;

/// A description, the headers and the body.
type Forgery = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

/// Requests that a page of another site can make a browser send.
const FORGERIES: [Forgery; 6] = [
    (
        "a form",
        &[
            ("origin", "https://evil.example"),
            ("content-type", "application/x-www-form-urlencoded"),
        ],
        "name=x",
    ),
    (
        "JSON as text",
        &[
            ("origin", "https://evil.example"),
            ("content-type", "text/plain"),
        ],
        "{\"name\":\"x\"}",
    ),
    (
        "fetch",
        &[
            ("origin", "https://evil.example"),
            ("content-type", "application/json"),
        ],
        "{\"name\":\"x\"}",
    ),
    (
        "a sandboxed frame",
        &[
            ("origin", "null"),
            ("content-type", "multipart/form-data; boundary=x"),
        ],
        "--x--",
    ),
    (
        "a page beside ours",
        &[
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-mode", "no-cors"),
        ],
        "",
    ),
    (
        "a beacon",
        &[
            ("sec-fetch-site", "cross-site"),
            ("origin", "https://evil.example"),
        ],
        "x",
    ),
];

on_sqlite! {
    async fn safe_methods_change_nothing(backend) {
        let fixture = EndpointFixture::create(backend, &[]).await;
        let mut facts = DatabaseFacts::open(&fixture.app.database).await;
        let before = facts.everything().await;
        let mut n_seen = 0;

        for endpoint in all_endpoints() {
            let address = fixture.address(&endpoint);
            for query in ["", "?speaker_id=2", "?_method=DELETE"] {
                let path = format!("{address}{query}");
                for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE] {
                    let overridden = fixture.request(method.clone(), &path)
                        .header("x-http-method-override", "DELETE")
                        .header("x-method-override", endpoint.method().as_str());
                    let answer = Answer::to(overridden).await;
                    n_seen += usize::from(answer.status == 200);
                    assert!(answer.status < 500, "{method} {path}: {answer:?}");
                }
            }
        }
        for path in client_files::paths() {
            n_seen += usize::from(Answer::to(fixture.request(Method::GET, &path)).await.status == 200);
        }

        // Most of the endpoints returned success; otherwise the test would prove little.
        assert!(n_seen > 100, "{n_seen}");
        assert_eq!(facts.everything().await, before);
        fixture.app.close().await;
    }

    async fn no_forged_request_is_accepted_by_any_endpoint(backend) {
        let fixture = EndpointFixture::create(backend, &[]).await;
        let mut facts = DatabaseFacts::open(&fixture.app.database).await;
        let before = facts.everything().await;
        let unsafe_endpoints = all_endpoints().into_iter().filter(|it| it.method() != Method::GET.as_str());

        for endpoint in unsafe_endpoints {
            let address = fixture.address(&endpoint);
            for (what, headers, body) in FORGERIES {
                let method = Method::from_bytes(endpoint.method().as_str().as_bytes()).unwrap();
                let mut forged = fixture.request(method, &address).body(body);
                for (name, value) in headers {
                    forged = forged.header(*name, *value);
                }

                let answer = Answer::to(forged).await;

                let expected = (403, "cross_origin".to_owned());
                assert_eq!(answer.refusal(), expected, "{what}: {} {address}", endpoint.method());
                assert_eq!(answer.header("set-cookie"), "", "{what}");
            }
        }

        assert_eq!(facts.everything().await, before);
        fixture.app.close().await;
    }

    async fn a_body_without_a_json_content_type_is_rejected(backend) {
        let fixture = EndpointFixture::create(backend, &[]).await;
        let mut facts = DatabaseFacts::open(&fixture.app.database).await;
        let before = facts.everything().await;

        for content_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", ""] {
            // Sent as an old browser sends a form: without headers that name its origin.
            let form = fixture.request(Method::POST, "/api/spaces")
                .header("content-type", content_type)
                .body("{\"name\":\"x\"}");
            let answer = Answer::to(form).await;
            assert_eq!(answer.refusal(), (415, "unsupported_media_type".to_owned()), "{content_type}");
        }

        assert_eq!(facts.everything().await, before);
        fixture.app.close().await;
    }
}
