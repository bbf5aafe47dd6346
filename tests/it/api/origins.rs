//! What another site's page can make a browser do: nothing.

use reqwest::Method;
use serde_json::json;

use crate::support::answer::Answer;
use crate::support::app::TestApp;
use crate::support::backends::Backend;
use crate::support::person::Person;
use crate::support::person::http_client;

const PUBLIC: &[(&str, &str)] = &[("TROUPE_PUBLIC_URL", "https://troupe.example")];

async fn with(app: &TestApp, person: &Person, headers: &[(&str, &str)]) -> (u16, String) {
    let mut request = http_client()
        .post(format!("{}/api/spaces", app.base))
        .header("cookie", person.cookie())
        .json(&json!({"name": "Room"}));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = Answer::to(request).await;
    match answer.status {
        201 => (201, String::new()),
        _ => answer.refusal(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_our_own_origin_may_use_the_cookie() {
    let app = TestApp::start_with(Backend::Sqlite, PUBLIC).await;
    let admin = app.admin().await;
    let host = app.base.strip_prefix("http://").unwrap();
    let foreign = [
        "null".to_owned(),
        "https://evil.example".to_owned(),
        format!("http://evil.{host}"),
        format!("http://{host}.evil.example"),
        "http://127.0.0.1:1".to_owned(),
        "http://127.0.0.1".to_owned(),
        format!("https://{host}"),
        format!("HTTP://{host}"),
        format!("http://127.0.0.1.:{}", host.rsplit(':').next().unwrap()),
        format!("http://me@{host}"),
        format!("http://[::1]:{}", host.rsplit(':').next().unwrap()),
        "http://troupe.example".to_owned(),
        "https://sub.troupe.example".to_owned(),
    ];

    for origin in &foreign {
        let answer = with(&app, &admin, &[("origin", origin)]).await;
        assert_eq!(answer, (403, "cross_origin".to_owned()), "{origin}");
    }
    for origin in [app.base.as_str(), "https://troupe.example"] {
        assert_eq!(with(&app, &admin, &[("origin", origin)]).await.0, 201);
    }
    let twice = [
        ("origin", app.base.as_str()),
        ("origin", "https://evil.example"),
    ];
    assert_eq!(with(&app, &admin, &twice).await.0, 403);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_browsers_own_word_counts() {
    let app = TestApp::start(Backend::Sqlite).await;
    let admin = app.admin().await;

    for (site, status) in [
        ("same-origin", 201),
        ("none", 201),
        ("same-site", 403),
        ("cross-site", 403),
    ] {
        let answer = with(&app, &admin, &[("sec-fetch-site", site)]).await;
        assert_eq!(answer.0, status, "{site}");
    }
    assert_eq!(with(&app, &admin, &[]).await.0, 201);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_unsafe_method_is_guarded_and_reading_is_not() {
    let app = TestApp::start(Backend::Sqlite).await;
    let admin = app.admin().await;
    let ask = |method: Method, path: &str| {
        http_client()
            .request(method, format!("{}{path}", app.base))
            .header("cookie", admin.cookie())
            .header("origin", "https://evil.example")
    };

    for (method, path) in [
        (Method::DELETE, "/api/session"),
        (Method::PATCH, "/api/users/me"),
        (Method::PUT, "/api/nowhere"),
        (Method::POST, "/api/session"),
    ] {
        let answer = Answer::to(ask(method, path)).await;
        assert_eq!(answer.refusal(), (403, "cross_origin".to_owned()), "{path}");
    }

    assert_eq!(
        Answer::to(ask(Method::GET, "/api/session")).await.status,
        200
    );
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_no_cookie() {
    let app = TestApp::start(Backend::Sqlite).await;
    let admin = app.admin().await;
    let key = admin.post("/api/api_keys", json!({"name": "bot"})).await.1["key"].clone();
    let ask = |scheme: &str| {
        http_client()
            .post(format!("{}/api/spaces", app.base))
            .header("cookie", admin.cookie())
            .header("origin", "https://evil.example")
            .header(
                "authorization",
                format!("{scheme} {}", key.as_str().unwrap()),
            )
            .json(&json!({"name": "Room"}))
    };

    assert_eq!(Answer::to(ask("Bearer")).await.status, 201);
    // What is no key of ours (a proxy's password) leaves the cookie, and the cookie is guarded.
    assert_eq!(Answer::to(ask("Basic")).await.status, 403);
    app.close().await;
}
