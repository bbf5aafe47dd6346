//! Sends JSON that is malformed, deeply nested, large, or of another kind than a field accepts.

use serde_json::json;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::untrusted_input::attacks::{Attack, Tally, send};
use crate::untrusted_input::endpoint_fields::{EndpointFields, of_all_endpoints};
use crate::untrusted_input::http_connection::HttpConnection;
use crate::untrusted_input::installation::Installation;

/// Every kind of value, at its edges.
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
    must_be_refused: bool,
}

fn refused(what: &'static str, bytes: impl Into<Vec<u8>>) -> Document {
    Document {
        what,
        bytes: bytes.into(),
        must_be_refused: true,
    }
}

fn any(what: &'static str, bytes: impl Into<Vec<u8>>) -> Document {
    Document {
        must_be_refused: false,
        ..refused(what, bytes)
    }
}

fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(to_bytes).collect()
}

fn documents() -> Vec<Document> {
    let keys: Vec<String> = (0..10_000).map(|n| format!("\"k{n}\":1")).collect();
    let deep_object = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
    vec![
        refused(
            "200 lists deep",
            format!("{}{}", "[".repeat(200), "]".repeat(200)),
        ),
        refused("200 objects deep", deep_object.clone()),
        refused("200 deep in a field", format!("{{\"name\":{deep_object}}}")),
        refused("a million deep", "[".repeat(1_000_000)),
        refused("a million deep, objects", "{\"a\":".repeat(200_000)),
        refused(
            "as many small numbers as fit",
            format!("[{}0]", "0,".repeat(520_000)),
        ),
        // A card that has numbers for a name is put right.
        any(
            "small numbers in a field",
            format!("{{\"name\":[{}0]}}", "0,".repeat(500_000)),
        ),
        refused("10 000 keys", format!("{{{}}}", keys.join(","))),
        refused("a huge key", format!("{{\"{}\":1}}", "k".repeat(1_000_000))),
        refused(
            "a huge key over a NUL",
            format!("{{\"{}\":{{\"a\":\"\\u0000\"}}}}", "k".repeat(100_000)),
        ),
        refused(
            "a NUL below many keys",
            format!(
                "{}\"\\u0000\"{}",
                "{\"a key of some length\":".repeat(100),
                "}".repeat(100)
            ),
        ),
        refused(
            "a huge number",
            format!("{{\"name\":{}}}", "9".repeat(1_000_000)),
        ),
        refused("out of range", "{\"name\":1e400}"),
        any("twice the same key", "{\"name\":\"a\",\"name\":\"b\"}"),
        refused("twice, once wrong", "{\"name\":\"a\",\"name\":[[]]}"),
        refused("a list", "[]"),
        refused("a text", "\"name\""),
        refused("a number", "1"),
        refused("null", "null"),
        refused("true", "true"),
        any("nothing", ""),
        refused("blanks", "   \r\n\t "),
        refused("two documents", "{}{}"),
        refused("a document and more", "{} x"),
        refused("a comment", "{} // and so on"),
        refused("a comma too many", "{\"name\":\"a\",}"),
        refused("no quotes", "{name:'a'}"),
        refused("no number", "{\"name\":NaN}"),
        refused("infinity", "{\"name\":-Infinity}"),
        refused("a number with zeros", "{\"name\":007}"),
        refused("half", "{\"name\":\"a"),
        refused("a NUL behind it", "{}\0"),
        refused("a mark before it", "\u{feff}{}"),
        refused("UTF-16, little end first", utf16("{}", u16::to_le_bytes)),
        refused(
            "UTF-16, big end first",
            utf16("\u{feff}{}", u16::to_be_bytes),
        ),
        refused("Latin-1", b"{\"name\":\"caf\xe9\"}".to_vec()),
        refused("an overlong code", b"{\"name\":\"\xc0\xaf\"}".to_vec()),
        refused(
            "a surrogate in UTF-8",
            b"{\"name\":\"\xed\xa0\x80\"}".to_vec(),
        ),
        refused("XML", "<?xml version=\"1.0\"?><a/>"),
        refused("a form", "name=a&status=b"),
        refused("gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".to_vec()),
    ]
}

/// Content types that are not ours.
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

/// Sends to every endpoint with a body what `attacks` makes for it.
async fn to_readers(
    house: &Installation,
    mut attacks: impl FnMut(&EndpointFields) -> Vec<Attack>,
) -> Tally {
    let doors = of_all_endpoints(house).await;
    let readers: Vec<_> = doors.iter().filter(|it| it.reads).collect();
    assert!(readers.len() > 20, "{} doors read a body", readers.len());
    let attacks = readers.into_iter().flat_map(&mut attacks).collect();
    send(&house.app.base, attacks).await
}

on_sqlite! {
    async fn any_kind_of_value_in_any_field_is_taken_or_refused(backend) {
        let house = Installation::open(backend).await;

        let tally = to_readers(&house, |door| {
            let fields = door.fields.iter().map(|it| it.name.as_str());
            let pairs = fields.flat_map(|field| VALUES.map(|value| (field, value)));
            let attacks = pairs.map(|(field, value)| {
                let body = door.body_with(field, json!("@")).replacen("\"@\"", value, 1);
                Attack {
                    what: format!("{}: {body}", door.call()),
                    bytes: house.request_with(&door.method, &door.address, &body),
                }
            });
            attacks.collect()
        })
        .await;

        tally.finish("kinds of values");
        house.close_unharmed().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_not_json_is_rejected_by_every_endpoint() {
    let house = Installation::open(TestBackend::Sqlite).await;
    for document in documents() {
        // Long bodies need long to read: each is sent to some of the endpoints.
        let step = if document.bytes.len() > 50_000 { 5 } else { 1 };
        let mut place = 0;
        let tally = to_readers(&house, |door| {
            place += 1;
            if place % step != 0 {
                return Vec::new();
            }
            let as_json = "content-type: application/json\r\n";
            let what = format!("{}: {}", door.call(), document.what);
            let bytes = house.request(&door.method, &door.address, as_json, &document.bytes);
            vec![Attack { what, bytes }]
        })
        .await;

        let taken: Vec<_> = tally.by_status.keys().filter(|it| **it < 400).collect();
        assert!(
            taken.is_empty() || !document.must_be_refused,
            "{}: {tally}",
            document.what
        );
        tally.finish(document.what);
    }
    house.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_megabytes_of_small_numbers_are_too_large() {
    let house = Installation::open(TestBackend::Sqlite).await;
    let body = format!("{{\"name\":[{}0]}}", "0,".repeat(5_000_000));

    let mut place = 0;
    let tally = to_readers(&house, |door| {
        place += 1;
        if place % 5 != 0 {
            return Vec::new();
        }
        let what = format!("{}: 10 MB", door.call());
        let bytes = house.request_with(&door.method, &door.address, &body);
        vec![Attack { what, bytes }]
    })
    .await;

    assert_eq!(tally.by_status.keys().collect::<Vec<_>>(), [&413]);
    tally.finish("10 MB");
    house.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_content_type_is_rejected_by_every_endpoint() {
    let house = Installation::open(TestBackend::Sqlite).await;

    let tally = to_readers(&house, |door| {
        let attacks = MEDIA_TYPES.map(|media_type| {
            let header = format!("content-type: {media_type}\r\n");
            Attack {
                what: format!("{}: {media_type}", door.call()),
                bytes: house.request(&door.method, &door.address, &header, b"{}"),
            }
        });
        attacks.into()
    })
    .await;

    assert_eq!(tally.by_status.keys().collect::<Vec<_>>(), [&415]);
    tally.finish("content types");
    house.close_unharmed().await;
}

on_sqlite! {
    async fn what_is_stored_as_deep_as_it_may_be_can_be_read(backend) {
        let house = Installation::open(backend).await;
        let deep = |n: usize| -> String { format!("{}1{}", "{\"a\":".repeat(n), "}".repeat(n)) };
        let bodies = |deep: &str| {
            [
                ("/api/characters", format!("{{\"name\":\"Deep\",\"extensions\":{deep}}}")),
                ("/api/characters", format!("{{\"card\":{{\"spec\":\"chara_card_v2\",\"data\":{{\"name\":\"Deep\",\"extensions\":{deep}}}}}}}")),
                ("/api/spaces", format!("{{\"name\":\"Deep\",\"settings\":{deep}}}")),
                ("/api/providers", format!("{{\"name\":\"Deep\",\"model\":\"m\",\"base_url\":\"http://127.0.0.1:9/v1\",\"settings\":{deep}}}")),
            ]
        };

        let mut line = HttpConnection::connect(&house.app.base);
        let mut n_taken = 0;
        for n in 100..130 {
            for (list, body) in bodies(&deep(n)) {
                let request = house.request_with("POST", list, &body);
                let reply = line.send(&request).await.expect("an answer");
                n_taken += usize::from(reply.status == 201);
                assert!([201, 400, 422].contains(&reply.status), "{n} in {list}: {reply:?}");
            }
        }
        assert!(n_taken > 60, "{n_taken} were taken");

        for list in ["/api/characters", "/api/spaces", "/api/providers"] {
            // Looked at as text: the answer is deeper than what it holds.
            let request = house.request("GET", &format!("{list}?limit=200"), "", b"");
            let reply = line.send(&request).await.expect("an answer");
            let text = String::from_utf8(reply.body).expect("UTF-8");
            let n_deep = text.matches("\"a\":1}").count();
            assert!(reply.status == 200 && n_deep > 10, "{list}: {n_deep}");
        }
        house.close_unharmed().await;
    }
}
