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

/// A post of a space: what stands between the key and the end of the head, and all that follows.
fn post(house: &Installation, headers: &str, rest: &[u8]) -> Vec<u8> {
    let as_json = format!("content-type: application/json\r\n{headers}");
    let mut request = house.request("POST", "/api/spaces", &as_json, b"");
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

async fn ask(house: &Installation, request: &[u8]) -> io::Result<Reply> {
    HttpConnection::connect(&house.app.base).send(request).await
}

async fn names(house: &Installation) -> Vec<String> {
    let page = expect(200, house.admin.get("/api/spaces?limit=200").await);
    let all = page["data"].as_array().expect("a list").iter();
    all.map(|it| it["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_in_pieces_is_a_body() {
    let house = Installation::open(TestBackend::Sqlite).await;
    let whole = br#"{"name":"In pieces"}"#;
    let bytes: Vec<&[u8]> = whole.chunks(1).collect();

    let request = post(&house, "transfer-encoding: chunked\r\n", &chunked(&bytes));
    let reply = ask(&house, &request).await.expect("an answer");

    assert_eq!(reply.status, 201, "{reply:?}");
    assert_eq!(reply.json()["name"], "In pieces");
    house.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pieces_without_end_are_too_large() {
    let house = Installation::open(TestBackend::Sqlite).await;
    let piece = vec![b' '; 64 * 1024];
    let pieces: Vec<&[u8]> = (0..200).map(|_| piece.as_slice()).collect();

    let request = post(&house, "transfer-encoding: chunked\r\n", &chunked(&pieces));
    let reply = ask(&house, &request).await.expect("an answer");

    assert_eq!((reply.status, reply.error().0.as_str()), (413, "too_large"));
    house.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_length_that_is_none_or_two_is_refused() {
    let house = Installation::open(TestBackend::Sqlite).await;
    let before = names(&house).await;
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
        let reply = ask(&house, &post(&house, head, body)).await;
        // A connection that is closed is refused as well.
        let status = reply.map_or(400, |it| it.status);
        assert!((400..500).contains(&status), "{head:?}: {status}");
    }

    assert_eq!(names(&house).await, before);
    house.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_pieces_are_refused() {
    let house = Installation::open(TestBackend::Sqlite).await;
    let before = names(&house).await;
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
        let request = post(&house, "transfer-encoding: chunked\r\n", body);
        let status = ask(&house, &request).await.map_or(400, |it| it.status);
        let shown = String::from_utf8_lossy(body);
        assert!((400..500).contains(&status), "{shown:?}: {status}");
    }

    assert_eq!(names(&house).await, before);
    house.close_unharmed().await;
}

/// Whatever is cut off, nothing of it is done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_does_not_come_whole_does_nothing() {
    let house = Installation::open(TestBackend::Sqlite).await;
    let before = names(&house).await;
    let body = br#"{"name":"Half"}"#;
    let whole = chunked(&[body]);
    // Every cut but the last loses something that belongs to the body.
    let in_pieces = (0..whole.len()).map(|n| ("transfer-encoding: chunked\r\n", &whole[..n]));
    let with_length = (0..body.len()).map(|n| ("content-length: 15\r\n", &body[..n]));

    for (head, rest) in in_pieces.chain(with_length) {
        let mut stream = TcpStream::connect(house.app.base.trim_start_matches("http://"))
            .await
            .expect("the server is there");
        let request = post(&house, head, rest);
        stream.write_all(&request).await.expect("it takes it");
        drop(stream);
    }

    // One more, on a connection of its own: the others were there before it.
    let made = house
        .admin
        .post("/api/spaces", json!({"name": "Whole"}))
        .await;
    expect(201, made);
    let mut expected = before;
    expected.push("Whole".to_owned());
    assert_eq!(names(&house).await, expected);
    house.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_longer_than_it_said_is_cut_where_it_said() {
    let house = Installation::open(TestBackend::Sqlite).await;
    let before = names(&house).await;
    let body = br#"{"name":"Longer"}"#;

    for length in 0..body.len() {
        let head = format!("content-length: {length}\r\n");
        let reply = ask(&house, &post(&house, &head, body)).await;
        // What is left over is no request: the connection may end before the answer is out.
        let status = reply.map_or(400, |it| it.status);
        assert_eq!(status, 400, "{length}");
    }

    assert_eq!(names(&house).await, before);
    house.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_expects_100_continue_gets_it() {
    let house = Installation::open(TestBackend::Sqlite).await;
    let body = br#"{"name":"Asked for"}"#;
    let head = format!("expect: 100-continue\r\ncontent-length: {}\r\n", body.len());

    let reply = ask(&house, &post(&house, &head, body)).await;
    let other = ask(
        &house,
        &post(&house, "expect: miracles\r\ncontent-length: 2\r\n", b"{}"),
    )
    .await;

    assert_eq!(reply.expect("an answer").status, 201);
    assert!(other.map_or(400, |it| it.status) < 500);
    house.close_unharmed().await;
}

/// Nothing is unpacked, so nothing can grow by being unpacked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_packed_body_is_refused_and_not_unpacked() {
    let house = Installation::open(TestBackend::Sqlite).await;
    // A small stored block, and the beginning of a stream that says it is compressed.
    let gzip: &[u8] = &[
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 0, 0xfd, 0xff, b'{', b'}',
    ];
    for packing in [
        "gzip",
        "deflate",
        "br",
        "zstd",
        "gzip, gzip",
        "compress",
        "x",
    ] {
        let head = format!(
            "content-encoding: {packing}\r\ncontent-length: {}\r\n",
            gzip.len()
        );
        let reply = ask(&house, &post(&house, &head, gzip)).await;

        let reply = reply.expect("an answer");
        let found = (reply.status, reply.error().0);
        assert_eq!(
            found,
            (415, "unsupported_media_type".to_owned()),
            "{packing}"
        );
    }
    let head = "content-encoding: identity\r\ncontent-length: 16\r\n";
    let plain = ask(&house, &post(&house, head, br#"{"name":"Plain"}"#)).await;
    assert_eq!(plain.expect("an answer").status, 201);
    house.close_unharmed().await;
}
