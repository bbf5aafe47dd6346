//! Tests that the server delivers the web client.

use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::http_client::http_client;
use crate::support::http_response::Answer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clients_own_addresses_load_the_client() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let client = http_client();

    for path in [
        "/",
        "/admin",
        "/admin/runs",
        "/c/5",
        "/join/abc",
        "/settings/models",
    ] {
        let answer = Answer::to(client.get(format!("{}{path}", app.base))).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
        assert!(answer.text.contains("/js/main.js"), "{path}");
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_has_a_page_of_its_own() {
    let app = TestApp::start(TestBackend::Sqlite).await;

    let page = Answer::to(http_client().get(format!("{}/docs", app.base))).await;

    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert!(page.text.contains("/js/docs/main.js"));
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_known_is_not_sent_again() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let url = format!("{}/js/main.js", app.base);
    let first = Answer::to(http_client().get(&url)).await;
    assert_eq!(
        first.header("content-type"),
        "text/javascript; charset=utf-8"
    );
    let tag = first.header("etag");
    assert!(!tag.is_empty());

    let again = Answer::to(http_client().get(&url).header("if-none-match", tag)).await;

    assert_eq!((again.status, again.text.as_str()), (304, ""));
    let head = Answer::to(http_client().head(&url)).await;
    assert_eq!(head.status, 200);
    let posted = Answer::to(http_client().post(&url)).await;
    assert_eq!(posted.refusal(), (405, "method_not_allowed".to_owned()));
    app.close().await;
}
