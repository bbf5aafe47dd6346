//! Sends JSON that is malformed, deeply nested, large, or of another kind than a field accepts.

use serde_json::json;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::untrusted_input::attacks::{Attack, Tally, send};
use crate::untrusted_input::endpoint_fields::{EndpointFields, of_all_endpoints};
use crate::untrusted_input::http_connection::HttpConnection;
use crate::untrusted_input::installation::Installation;

/// Values of every JSON type, and the limits of numbers.
const VALUES: [&str; 27] = [
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "-1",
    "1.5",
    "1e308",
    "1e-400",
    "1e400",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "99999999999999999999999999",
    "\"\"",
    "\"1\"",
    "[]",
    "[null]",
    "[1]",
    "[-1, 9223372036854775807]",
    "[\"x\", 1]",
    "{}",
    "{\"a\": 1}",
    "{\"id\": null, \"\": {\"\": []}}",
    "[{}, {\"a\": [{}]}]",
];

/// A whole body, and whether every endpoint that reads it must reject it.
struct Document {
    what: &'static str,
    bytes: Vec<u8>,
    must_be_rejected: bool,
}

fn rejected(what: &'static str, bytes: impl Into<Vec<u8>>) -> Document {
    Document {
        what,
        bytes: bytes.into(),
        must_be_rejected: true,
    }
}

fn any(what: &'static str, bytes: impl Into<Vec<u8>>) -> Document {
    Document {
        must_be_rejected: false,
        ..rejected(what, bytes)
    }
}

fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(to_bytes).collect()
}

fn documents() -> Vec<Document> {
    let keys: Vec<String> = (0..10_000).map(|n| format!("\"k{n}\":1")).collect();
    let deep_object = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
    vec![
        rejected(
            "200 lists deep",
            format!("{}{}", "[".repeat(200), "]".repeat(200)),
        ),
        rejected("200 objects deep", deep_object.clone()),
        rejected("200 deep in a field", format!("{{\"name\":{deep_object}}}")),
        rejected("a million deep", "[".repeat(1_000_000)),
        rejected("a million deep, objects", "{\"a\":".repeat(200_000)),
        rejected(
            "as many small numbers as fit",
            format!("[{}0]", "0,".repeat(520_000)),
        ),
        // A card with a list of numbers as its name is repaired.
        any(
            "small numbers in a field",
            format!("{{\"name\":[{}0]}}", "0,".repeat(500_000)),
        ),
        rejected("10 000 keys", format!("{{{}}}", keys.join(","))),
        rejected("a huge key", format!("{{\"{}\":1}}", "k".repeat(1_000_000))),
        rejected(
            "a huge key over a NUL",
            format!("{{\"{}\":{{\"a\":\"\\u0000\"}}}}", "k".repeat(100_000)),
        ),
        rejected(
            "a NUL below many keys",
            format!(
                "{}\"\\u0000\"{}",
                "{\"a key of some length\":".repeat(100),
                "}".repeat(100)
            ),
        ),
        rejected(
            "a huge number",
            format!("{{\"name\":{}}}", "9".repeat(1_000_000)),
        ),
        rejected("out of range", "{\"name\":1e400}"),
        any("twice the same key", "{\"name\":\"a\",\"name\":\"b\"}"),
        rejected("twice, once wrong", "{\"name\":\"a\",\"name\":[[]]}"),
        rejected("a list", "[]"),
        rejected("a text", "\"name\""),
        rejected("a number", "1"),
        rejected("null", "null"),
        rejected("true", "true"),
        any("nothing", ""),
        rejected("blanks", "   \r\n\t "),
        rejected("two documents", "{}{}"),
        rejected("a document and more", "{} x"),
        rejected("a comment", "{} // and so on"),
        rejected("a comma too many", "{\"name\":\"a\",}"),
        rejected("no quotes", "{name:'a'}"),
        rejected("no number", "{\"name\":NaN}"),
        rejected("infinity", "{\"name\":-Infinity}"),
        rejected("a number with zeros", "{\"name\":007}"),
        rejected("half", "{\"name\":\"a"),
        rejected("a NUL behind it", "{}\0"),
        rejected("a mark before it", "\u{feff}{}"),
        rejected("UTF-16, little end first", utf16("{}", u16::to_le_bytes)),
        rejected(
            "UTF-16, big end first",
            utf16("\u{feff}{}", u16::to_be_bytes),
        ),
        rejected("Latin-1", b"{\"name\":\"caf\xe9\"}".to_vec()),
        rejected("an overlong code", b"{\"name\":\"\xc0\xaf\"}".to_vec()),
        rejected(
            "a surrogate in UTF-8",
            b"{\"name\":\"\xed\xa0\x80\"}".to_vec(),
        ),
        rejected("XML", "<?xml version=\"1.0\"?><a/>"),
        rejected("a form", "name=a&status=b"),
        rejected("gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".to_vec()),
    ]
}

/// Content types that are not `application/json`.
const MEDIA_TYPES: [&str; 13] = [
    "text/plain",
    "text/json",
    "application/x-www-form-urlencoded",
    "application/xml",
    "application/jsonp",
    "application/json5",
    "application/json, text/plain",
    "application/merge-patch+json",
    "multipart/form-data; boundary=x",
    "application/json; charset=utf-16",
    "application/json; charset=iso-8859-1",
    "*/*",
    "json",
];

/// Sends the requests of `attacks` to every endpoint that reads a body.
async fn send_to_all(
    server: &Installation,
    mut attacks: impl FnMut(&EndpointFields) -> Vec<Attack>,
) -> Tally {
    let endpoints = of_all_endpoints(server).await;
    let readers: Vec<_> = endpoints.iter().filter(|it| it.reads).collect();
    assert!(
        readers.len() > 20,
        "{} endpoints read a body",
        readers.len()
    );
    let attacks = readers.into_iter().flat_map(&mut attacks).collect();
    send(&server.app.base, attacks).await
}

on_sqlite! {
    async fn no_kind_of_value_in_a_field_causes_a_server_error(backend) {
        let server = Installation::open(backend).await;

        let tally = send_to_all(&server, |endpoint| {
            let fields = endpoint.fields.iter().map(|it| it.name.as_str());
            let pairs = fields.flat_map(|field| VALUES.map(|value| (field, value)));
            let attacks = pairs.map(|(field, value)| {
                let body = endpoint.body_with(field, json!("@")).replacen("\"@\"", value, 1);
                Attack {
                    what: format!("{}: {body}", endpoint.call()),
                    bytes: server.request_with(&endpoint.method, &endpoint.address, &body),
                }
            });
            attacks.collect()
        })
        .await;

        tally.finish("kinds of values");
        server.close_unharmed().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_not_json_is_rejected_by_every_endpoint() {
    let server = Installation::open(TestBackend::Sqlite).await;
    for document in documents() {
        // Long bodies take long to read, so each is sent to some of the endpoints.
        let step = if document.bytes.len() > 50_000 { 5 } else { 1 };
        let mut index = 0;
        let tally = send_to_all(&server, |endpoint| {
            index += 1;
            if index % step != 0 {
                return Vec::new();
            }
            let as_json = "content-type: application/json\r\n";
            let what = format!("{}: {}", endpoint.call(), document.what);
            let bytes = server.request(
                &endpoint.method,
                &endpoint.address,
                as_json,
                &document.bytes,
            );
            vec![Attack { what, bytes }]
        })
        .await;

        let success_codes: Vec<_> = tally.by_status.keys().filter(|it| **it < 400).collect();
        assert!(
            success_codes.is_empty() || !document.must_be_rejected,
            "{}: {tally}",
            document.what
        );
        tally.finish(document.what);
    }
    server.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_of_ten_megabytes_is_rejected_as_too_large() {
    let server = Installation::open(TestBackend::Sqlite).await;
    let body = format!("{{\"name\":[{}0]}}", "0,".repeat(5_000_000));

    let mut index = 0;
    let tally = send_to_all(&server, |endpoint| {
        index += 1;
        if index % 5 != 0 {
            return Vec::new();
        }
        let what = format!("{}: 10 MB", endpoint.call());
        let bytes = server.request_with(&endpoint.method, &endpoint.address, &body);
        vec![Attack { what, bytes }]
    })
    .await;

    assert_eq!(tally.by_status.keys().collect::<Vec<_>>(), [&413]);
    tally.finish("10 MB");
    server.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_content_type_is_rejected_by_every_endpoint() {
    let server = Installation::open(TestBackend::Sqlite).await;

    let tally = send_to_all(&server, |endpoint| {
        let attacks = MEDIA_TYPES.map(|media_type| {
            let header = format!("content-type: {media_type}\r\n");
            Attack {
                what: format!("{}: {media_type}", endpoint.call()),
                bytes: server.request(&endpoint.method, &endpoint.address, &header, b"{}"),
            }
        });
        attacks.into()
    })
    .await;

    assert_eq!(tally.by_status.keys().collect::<Vec<_>>(), [&415]);
    tally.finish("content types");
    server.close_unharmed().await;
}

on_sqlite! {
    async fn stored_values_of_the_maximum_depth_can_be_read(backend) {
        let server = Installation::open(backend).await;
        let deep = |n: usize| -> String { format!("{}1{}", "{\"a\":".repeat(n), "}".repeat(n)) };
        let bodies = |deep: &str| {
            [
                ("/api/characters", format!("{{\"name\":\"Deep\",\"extensions\":{deep}}}")),
                ("/api/characters", format!("{{\"card\":{{\"spec\":\"chara_card_v2\",\"data\":{{\"name\":\"Deep\",\"extensions\":{deep}}}}}}}")),
                ("/api/spaces", format!("{{\"name\":\"Deep\",\"settings\":{deep}}}")),
                ("/api/providers", format!("{{\"name\":\"Deep\",\"model\":\"m\",\"base_url\":\"http://127.0.0.1:9/v1\",\"settings\":{deep}}}")),
            ]
        };

        let mut connection = HttpConnection::connect(&server.app.base);
        let mut n_accepted = 0;
        for n in 100..130 {
            for (list, body) in bodies(&deep(n)) {
                let request = server.request_with("POST", list, &body);
                let reply = connection.send(&request).await.expect("the request got no response");
                n_accepted += usize::from(reply.status == 201);
                assert!([201, 400, 422].contains(&reply.status), "{n} in {list}: {reply:?}");
            }
        }
        assert!(n_accepted > 60, "{n_accepted} were accepted");

        for list in ["/api/characters", "/api/spaces", "/api/providers"] {
            // Checked as text, because the response is too deep for the JSON parser.
            let request = server.request("GET", &format!("{list}?limit=200"), "", b"");
            let reply = connection.send(&request).await.expect("the request got no response");
            let text = String::from_utf8(reply.body).expect("the body is not UTF-8");
            let n_deep = text.matches("\"a\":1}").count();
            assert!(reply.status == 200 && n_deep > 10, "{list}: {n_deep}");
        }
        server.close_unharmed().await;
    }
}
