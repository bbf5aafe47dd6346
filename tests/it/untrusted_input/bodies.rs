//! Tests request bodies below the level of JSON: a wrong length, odd chunks, compression, and bodies
//! that never end.

use std::io;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::backends::TestBackend;
use crate::support::http_client::expect;
use crate::untrusted_input::http_connection::{HttpConnection, Reply};
use crate::untrusted_input::installation::Installation;

/// A request that creates a space, with these additional headers and these bytes after the head.
fn post(server: &Installation, headers: &str, rest: &[u8]) -> Vec<u8> {
    let as_json = format!("content-type: application/json\r\n{headers}");
    let mut request = server.request("POST", "/api/spaces", &as_json, b"");
    request.extend(rest);
    request
}

fn chunked(pieces: &[&[u8]]) -> Vec<u8> {
    let mut body = Vec::new();
    for piece in pieces {
        body.extend(format!("{:x}\r\n", piece.len()).bytes());
        body.extend(*piece);
        body.extend(b"\r\n");
    }
    body.extend(b"0\r\n\r\n");
    body
}

async fn send(server: &Installation, request: &[u8]) -> io::Result<Reply> {
    HttpConnection::connect(&server.app.base)
        .send(request)
        .await
}

async fn names(server: &Installation) -> Vec<String> {
    let page = expect(200, server.admin.get("/api/spaces?limit=200").await);
    let all = page["data"]
        .as_array()
        .expect("`data` is not a list")
        .iter();
    all.map(|it| it["name"].as_str().expect("a space has no name").to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chunked_body_is_accepted() {
    let server = Installation::open(TestBackend::Sqlite).await;
    let whole = br#"{"name":"In pieces"}"#;
    let bytes: Vec<&[u8]> = whole.chunks(1).collect();

    let request = post(&server, "transfer-encoding: chunked\r\n", &chunked(&bytes));
    let reply = send(&server, &request)
        .await
        .expect("the request got no response");

    assert_eq!(reply.status, 201, "{reply:?}");
    assert_eq!(reply.json()["name"], "In pieces");
    server.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_oversized_chunked_body_is_rejected_as_too_large() {
    let server = Installation::open(TestBackend::Sqlite).await;
    let piece = vec![b' '; 64 * 1024];
    let pieces: Vec<&[u8]> = (0..200).map(|_| piece.as_slice()).collect();

    let request = post(&server, "transfer-encoding: chunked\r\n", &chunked(&pieces));
    let reply = send(&server, &request)
        .await
        .expect("the request got no response");

    assert_eq!((reply.status, reply.error().0.as_str()), (413, "too_large"));
    server.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_and_duplicate_content_lengths_are_rejected() {
    let server = Installation::open(TestBackend::Sqlite).await;
    let before = names(&server).await;
    let body = br#"{"name":"Smuggled"}"#;
    let heads = [
        "content-length: -1\r\n",
        "content-length: x\r\n",
        "content-length: 0x13\r\n",
        "content-length: 19, 19\r\n",
        "content-length: +19\r\n",
        "content-length: 99999999999999999999999\r\n",
        "content-length: 19\r\ncontent-length: 5\r\n",
        "content-length: 5\r\ncontent-length: 19\r\n",
        "content-length: 19\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 19\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
        "transfer-encoding: chunked, identity\r\n",
        "transfer-encoding: xchunked\r\n",
        "transfer-encoding: \x0bchunked\r\n",
    ];

    for head in heads {
        let reply = send(&server, &post(&server, head, body)).await;
        // A closed connection counts as a rejection, too.
        let status = reply.map_or(400, |it| it.status);
        assert!((400..500).contains(&status), "{head:?}: {status}");
    }

    assert_eq!(names(&server).await, before);
    server.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_chunks_are_rejected() {
    let server = Installation::open(TestBackend::Sqlite).await;
    let before = names(&server).await;
    let bodies: [&[u8]; 8] = [
        b"zz\r\n{}\r\n0\r\n\r\n",
        b"-1\r\n{}\r\n0\r\n\r\n",
        b"FFFFFFFFFFFFFFFFF\r\n{}\r\n0\r\n\r\n",
        b"2\r\n{}\n0\n\n\r\n\r\n",
        b"2 2\r\n{}\r\n0\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"1\r\n{}}}}}\r\n0\r\n\r\n",
        b"2;a=\0\r\n{}\r\n0\r\n\r\n",
    ];

    for body in bodies {
        let request = post(&server, "transfer-encoding: chunked\r\n", body);
        let status = send(&server, &request).await.map_or(400, |it| it.status);
        let shown = String::from_utf8_lossy(body);
        assert!((400..500).contains(&status), "{shown:?}: {status}");
    }

    assert_eq!(names(&server).await, before);
    server.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_incomplete_body_has_no_effect() {
    let server = Installation::open(TestBackend::Sqlite).await;
    let before = names(&server).await;
    let body = br#"{"name":"Half"}"#;
    let whole = chunked(&[body]);
    // Each of these prefixes lacks at least one byte of the body.
    let in_pieces = (0..whole.len()).map(|n| ("transfer-encoding: chunked\r\n", &whole[..n]));
    let with_length = (0..body.len()).map(|n| ("content-length: 15\r\n", &body[..n]));

    for (head, rest) in in_pieces.chain(with_length) {
        let mut stream = TcpStream::connect(server.app.base.trim_start_matches("http://"))
            .await
            .expect("the server does not accept connections");
        let request = post(&server, head, rest);
        stream
            .write_all(&request)
            .await
            .expect("the server does not read the request");
        drop(stream);
    }

    // A complete request on another connection, handled after all the others.
    let made = server
        .admin
        .post("/api/spaces", json!({"name": "Whole"}))
        .await;
    expect(201, made);
    let mut expected = before;
    expected.push("Whole".to_owned());
    assert_eq!(names(&server).await, expected);
    server.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_is_cut_at_its_content_length() {
    let server = Installation::open(TestBackend::Sqlite).await;
    let before = names(&server).await;
    let body = br#"{"name":"Longer"}"#;

    for length in 0..body.len() {
        let head = format!("content-length: {length}\r\n");
        let reply = send(&server, &post(&server, &head, body)).await;
        // The excess bytes are no request: the connection may close before the response is sent.
        let status = reply.map_or(400, |it| it.status);
        assert_eq!(status, 400, "{length}");
    }

    assert_eq!(names(&server).await, before);
    server.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_expects_100_continue_gets_it() {
    let server = Installation::open(TestBackend::Sqlite).await;
    let body = br#"{"name":"Asked for"}"#;
    let head = format!("expect: 100-continue\r\ncontent-length: {}\r\n", body.len());

    let reply = send(&server, &post(&server, &head, body)).await;
    let other = send(
        &server,
        &post(&server, "expect: miracles\r\ncontent-length: 2\r\n", b"{}"),
    )
    .await;

    assert_eq!(reply.expect("the request got no response").status, 201);
    assert!(other.map_or(400, |it| it.status) < 500);
    server.close_unharmed().await;
}

/// Without decompression no body can grow beyond its limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compressed_body_is_rejected_without_decompression() {
    let server = Installation::open(TestBackend::Sqlite).await;
    // The beginning of a gzip stream with a small stored block.
    let gzip: &[u8] = &[
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 0, 0xfd, 0xff, b'{', b'}',
    ];
    for encoding in [
        "gzip",
        "deflate",
        "br",
        "zstd",
        "gzip, gzip",
        "compress",
        "x",
    ] {
        let head = format!(
            "content-encoding: {encoding}\r\ncontent-length: {}\r\n",
            gzip.len()
        );
        let reply = send(&server, &post(&server, &head, gzip)).await;

        let reply = reply.expect("the request got no response");
        let found = (reply.status, reply.error().0);
        assert_eq!(
            found,
            (415, "unsupported_media_type".to_owned()),
            "{encoding}"
        );
    }
    let head = "content-encoding: identity\r\ncontent-length: 16\r\n";
    let plain = send(&server, &post(&server, head, br#"{"name":"Plain"}"#)).await;
    assert_eq!(plain.expect("the request got no response").status, 201);
    server.close_unharmed().await;
}
