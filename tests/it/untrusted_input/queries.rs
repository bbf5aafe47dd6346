//! Tests query strings: known and unknown parameters, pages of any size, and cursors to nonexistent
//! items.

use serde_json::Value;
use tokio::sync::OnceCell;

use crate::support::backends::on_both;
use crate::untrusted_input::attacks::{Attack, send};
use crate::untrusted_input::encodings::{BROKEN_PERCENTS, percent_encoded, share};
use crate::untrusted_input::http_connection::HttpConnection;
use crate::untrusted_input::installation::{Installation, all_endpoints};
use crate::untrusted_input::strings;

/// Existing parameters of endpoints, and those that strangers try.
const NAMES: [&str; 21] = [
    "limit",
    "after",
    "before",
    "all",
    "status",
    "format",
    "speaker_id",
    "q",
    "space_id",
    "kind",
    "role",
    "user_id",
    "order",
    "sort",
    "filter",
    "offset",
    "cursor",
    "select",
    "$where",
    "a[b]",
    "no_such",
];

/// An endpoint, its path, and the parameters that change its response.
struct Asked {
    method: String,
    address: String,
    knows: Vec<&'static str>,
}

/// The parameters of every endpoint, found out once for all tests, with the paths on this server.
async fn asked(house: &Installation) -> Vec<Asked> {
    static KNOWN: OnceCell<Vec<Vec<&'static str>>> = OnceCell::const_new();
    let known = KNOWN.get_or_init(|| ask_all(house)).await;
    let mut all = Vec::new();
    for (door, knows) in all_endpoints().iter().zip(known) {
        all.push(Asked {
            method: door.method().to_string(),
            address: house.address(door).await,
            knows: knows.clone(),
        });
    }
    all
}

async fn ask_all(house: &Installation) -> Vec<Vec<&'static str>> {
    let mut all = Vec::new();
    let mut line = HttpConnection::connect(&house.app.base);
    for door in all_endpoints() {
        let method = door.method().to_string();
        let address = house.address(&door).await;
        let mut answer = async |query: &str| {
            let target = format!("{address}{query}");
            let request = house.request_with(&method, &target, "{}");
            let reply = line.send(&request).await.expect("the server answers");
            (reply.status, reply.error())
        };
        let plain = answer("").await;
        // An endpoint that rejects every unknown name reveals nothing by rejecting one.
        let refuses_others = answer("?no_such=%27x").await != plain;
        let mut knows = Vec::new();
        for name in NAMES {
            let encoded = percent_encoded(name);
            if !refuses_others && answer(&format!("?{encoded}=%27x")).await != plain {
                knows.push(name);
            }
        }
        all.push(knows);
    }
    all
}

/// Endpoints that return a list in pages.
async fn lists(house: &Installation) -> Vec<String> {
    let all = asked(house).await.into_iter();
    let lists = all.filter(|it| it.method == "GET" && it.knows.contains(&"limit"));
    let lists: Vec<String> = lists.map(|it| it.address).collect();
    assert!(lists.len() > 7, "only {lists:?} were found");
    lists
}

async fn get(
    line: &mut HttpConnection,
    house: &Installation,
    target: &str,
) -> (u16, (String, String), Value) {
    let request = house.request("GET", target, "", b"");
    let reply = line.send(&request).await;
    let reply = reply.unwrap_or_else(|error| panic!("GET {target}: {error}"));
    (reply.status, reply.error(), reply.json())
}

on_both! {
    async fn no_string_in_a_query_is_more_than_a_wrong_value(backend) {
        let house = Installation::open(backend).await;
        let strings = strings::all().into_iter().filter(|it| it.len() < 10_000);
        let mut pieces: Vec<String> = strings.map(|it| percent_encoded(&it)).collect();
        pieces.extend(BROKEN_PERCENTS.iter().map(|it| (*it).to_owned()));
        let mut attacks = Vec::new();
        for (place, door) in asked(&house).await.into_iter().enumerate() {
            for (at, name) in NAMES.iter().enumerate() {
                let number = place * NAMES.len() + at;
                let tried: Vec<_> = match door.knows.contains(name) {
                    true => share(&pieces, number).collect(),
                    // One string for what it does not know, and one in five as a name.
                    false => vec![&pieces[number % pieces.len()]],
                };
                let queries = tried.iter().map(|it| format!("{}={it}", percent_encoded(name)));
                let as_name = tried.first().filter(|_| number.is_multiple_of(5));
                let as_name = as_name.map(|it| format!("{it}={}", percent_encoded(name)));
                for query in queries.chain(as_name) {
                    let target = format!("{}?{query}", door.address);
                    let bytes = house.request_with(&door.method, &target, "{}");
                    let what: String = format!("{} {target}", door.method).chars().take(120).collect();
                    attacks.push(Attack { what, bytes });
                }
            }
        }

        let tally = send(&house.app.base, attacks).await;

        tally.finish("strings in queries");
        house.close_unharmed().await;
    }

    async fn a_page_of_any_size_is_refused_or_small(backend) {
        let house = Installation::open(backend).await;
        let mut line = HttpConnection::connect(&house.app.base);
        let mut n_requests = 0;
        let refused = [
            "", "1000000000", "0", "-1", "201", "1e3", "0x10", "1.0", "%20", "%2B", "99999999999999999999", "NaN", "all",
        ];
        for list in lists(&house).await {
            for limit in refused {
                let (status, (code, param), _) = get(&mut line, &house, &format!("{list}?limit={limit}")).await;
                let found = (status, code.as_str(), param.as_str());
                assert_eq!(found, (400, "invalid_value", "limit"), "{list}?limit={limit}");
                n_requests += 1;
            }
            for query in ["limit=200", "limit=1", "limit=5&limit=1000000000", "LIMIT=1000000000"] {
                let (status, _, page) = get(&mut line, &house, &format!("{list}?{query}")).await;
                let n = page["data"].as_array().map_or(usize::MAX, Vec::len);
                assert!(status == 200 && n <= 200, "{list}?{query}: {status} {page}");
                n_requests += 1;
            }
        }
        eprintln!("pages: {n_requests} requests");
        house.close_unharmed().await;
    }

    async fn a_cursor_that_points_nowhere_gives_an_empty_page_or_is_refused(backend) {
        let house = Installation::open(backend).await;
        let mut line = HttpConnection::connect(&house.app.base);
        let mut n_requests = 0;
        for list in lists(&house).await {
            for cursor in [
                "0", "-1", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
                "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "x", "1.5", "1,2",
            ] {
                for query in [
                    format!("after={cursor}"),
                    format!("before={cursor}"),
                    format!("after={cursor}&before={cursor}"),
                    format!("after={cursor}&before=1"),
                    format!("before={cursor}&limit=1"),
                ] {
                    let (status, (code, _), page) = get(&mut line, &house, &format!("{list}?{query}")).await;
                    let is_page = status == 200 && page["data"].is_array() && page["has_more"].is_boolean();
                    let is_refused = status == 400 && code == "invalid_value";
                    assert!(is_page || is_refused, "{list}?{query}: {status} {page}");
                    n_requests += 1;
                }
            }
            let many: String = (0..2_000).map(|n| format!("a{n}=1&")).collect();
            let (status, _, page) = get(&mut line, &house, &format!("{list}?{many}limit=1")).await;
            assert_eq!(status, 200, "{list}: {page}");
        }
        eprintln!("cursors: {n_requests} requests");
        house.close_unharmed().await;
    }
}
