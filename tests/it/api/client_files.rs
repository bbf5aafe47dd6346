//! Tests that the server delivers the packed web client.

use std::io::Read;

use reqwest::Response;
use troupe::server::client_files;

use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::http_client::http_client;
use crate::support::http_response::Answer;

const FOREVER: &str = "public, max-age=31536000, immutable";

/// Returns the local addresses that a page names in `href="…"` and `src="…"`.
fn named_files(page: &str) -> Vec<&str> {
    let starts = page.split("href=\"/").chain(page.split("src=\"/"));
    let mut names: Vec<_> = starts
        .skip(1)
        .filter_map(|it| it.split('"').next())
        .filter(|it| !it.is_empty() && !it.contains(['<', '\n']))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Requests a file with these accepted encodings.
async fn fetch(app: &TestApp, path: &str, encodings: &str) -> Response {
    let request = http_client().get(format!("{}{path}", app.base));
    let request = request.header("accept-encoding", encodings);
    request.send().await.expect("the server answers")
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    let value = response.headers().get(name);
    value.map_or("", |it| it.to_str().expect("our headers are text"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_paths_of_the_client_return_the_client() {
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
        assert_eq!(answer.header("cache-control"), "no-cache");
        assert!(answer.text.contains("/index.js\""), "{path}");
    }
    for path in ["/js/main.js", "/assets", "/assets/0/main.js", "/nothing"] {
        let answer = Answer::to(client.get(format!("{}{path}", app.base))).await;
        assert_eq!(answer.refusal(), (404, "not_found".to_owned()), "{path}");
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_has_a_documentation_page() {
    let app = TestApp::start(TestBackend::Sqlite).await;

    let page = Answer::to(http_client().get(format!("{}/docs", app.base))).await;

    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert!(page.text.contains("/docs.js\""));
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_names_only_files_that_exist() {
    let app = TestApp::start(TestBackend::Sqlite).await;

    for path in ["/", "/docs"] {
        let page = Answer::to(http_client().get(format!("{}{path}", app.base))).await;
        let names = named_files(&page.text);
        assert!(names.iter().any(|it| it.ends_with(".css")), "{names:?}");
        assert!(names.iter().any(|it| it.ends_with(".js")), "{names:?}");
        for name in names {
            let found = Answer::to(http_client().get(format!("{}/{name}", app.base))).await;
            assert_eq!(found.status, 200, "{name}");
        }
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_sent_in_the_encoding_that_the_browser_prefers() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let mut n_hashed = 0;

    for path in client_files::paths().filter(|it| it != "/robots.txt") {
        let plain = fetch(&app, &path, "identity").await;
        let is_hashed = path.starts_with("/assets/");
        n_hashed += usize::from(is_hashed);
        let cache = match is_hashed {
            true => FOREVER,
            false if path.ends_with(".html") => "no-cache",
            false => "public, max-age=86400",
        };
        assert_eq!(header(&plain, "content-encoding"), "", "{path}");
        assert_eq!(header(&plain, "cache-control"), cache, "{path}");
        let tag = header(&plain, "etag").to_owned();
        let bytes = plain.bytes().await.expect("the body arrives");

        for (accepted, encoding) in [
            ("gzip, deflate, br, zstd", "br"),
            ("gzip", "gzip"),
            ("gzip, br;q=0", "gzip"),
        ] {
            let packed = fetch(&app, &path, accepted).await;
            assert_eq!(header(&packed, "content-encoding"), encoding, "{path}");
            assert_eq!(header(&packed, "vary"), "accept-encoding", "{path}");
            assert_eq!(header(&packed, "cache-control"), cache, "{path}");
            assert_ne!(header(&packed, "etag"), tag, "{path}");
            let packed = packed.bytes().await.expect("the body arrives");
            assert!(packed.len() < bytes.len(), "{path}");
            assert_eq!(unpack(&packed, encoding), bytes, "{path}");
        }
    }
    assert!(n_hashed > 10, "{n_hashed}");
    app.close().await;
}

fn unpack(packed: &[u8], encoding: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    match encoding {
        "br" => brotli::BrotliDecompress(&mut &packed[..], &mut bytes).expect("brotli"),
        _ => drop(flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes)),
    }
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unchanged_client_file_is_not_sent_again() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let url = format!("{}/index.html", app.base);
    let first = Answer::to(http_client().get(&url)).await;
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
