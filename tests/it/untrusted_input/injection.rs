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

/// Every string as a piece of an address; the head of a request has no room for the longest.
fn pieces() -> Vec<String> {
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
    async fn no_string_in_a_path_is_more_than_an_unknown_id(backend) {
        let house = Installation::open(backend).await;
        let mut attacks = Vec::new();
        let pieces = pieces();
        let mut place = 0;
        for door in all_endpoints() {
            let address = house.address(&door).await;
            let parts: Vec<&str> = address.split('/').collect();
            let holes = door.path().split('/').enumerate();
            for (at, _) in holes.filter(|(_, it)| parameter(it).is_some()) {
                // A deletion must not find it: a number may be an id.
                let takes_away = door.method() == "DELETE";
                let pieces: Vec<_> = pieces.iter().filter(|it| !takes_away || it.trim_start_matches("%2B").parse::<i64>().is_err()).collect();
                place += 1;
                for piece in share(&pieces, place) {
                    let mut parts = parts.clone();
                    parts[at] = piece.as_str();
                    let target = parts.join("/");
                    let method = door.method().as_str();
                    let what = format!("{method} {}: {}", door.path(), shown(piece));
                    let bytes = house.request_with(method, &target, "{}");
                    attacks.push(Attack { what, bytes });
                }
            }
        }

        let tally = send(&house.app.base, attacks).await;

        tally.finish("strings in paths");
        house.close_unharmed().await;
    }

    async fn no_string_in_a_body_is_more_than_a_text(backend) {
        let house = Installation::open(backend).await;
        let strings = strings::all();
        let mut attacks = Vec::new();
        let mut n_fields = 0;
        for manners in of_all_endpoints(&house).await {
            for field in &manners.fields {
                n_fields += 1;
                attacks.extend(in_field(&house, &manners, field, &strings, n_fields));
            }
        }
        // The longest last: what is stored is read again by those that come after it.
        attacks.sort_by_key(|it| it.bytes.len() > 4_000);
        assert!(n_fields > 80, "only {n_fields} fields were found");

        let tally = send(&house.app.base, attacks).await;

        tally.finish(&format!("strings in {n_fields} fields of bodies"));
        house.close_unharmed().await;
    }
}

on_sqlite! {
    async fn no_string_sets_a_server_up_but_a_whole_account(backend) {
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
        tally.finish("strings at the first visit");
        let needed = HttpClient::new(&app.base).get("/api/setup").await;
        assert_eq!(needed, (200, json!({"needed": true})));
        app.close().await;
    }
}

fn in_field(
    house: &Installation,
    manners: &EndpointFields,
    field: &Field,
    strings: &[String],
    place: usize,
) -> Vec<Attack> {
    // A sign-in attempt costs some 20 ms of hashing, as it should.
    let step = if manners.base.contains_key("password") {
        4
    } else {
        1
    };
    let strings = share(strings, place).step_by(step);
    let bodies: Vec<String> = match field.shape {
        Shape::None => Vec::new(),
        shape => strings
            .map(|it| manners.body_with(&field.name, shape.around(it)))
            .collect(),
    };
    let broken = share(BROKEN_TOKENS, place).map(|it| format!("{{\"{}\":{it}}}", field.name));
    bodies
        .into_iter()
        .chain(broken)
        .map(|body| Attack {
            what: format!("{} {}: {}", manners.call(), field.name, shown(&body)),
            bytes: house.request_with(&manners.method, &manners.address, &body),
        })
        .collect()
}
