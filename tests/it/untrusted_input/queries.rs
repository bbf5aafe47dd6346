//! Tests query strings: known and unknown parameters, pages of any size, and cursors to nonexistent
//! items.

use serde_json::Value;
use tokio::sync::OnceCell;

use crate::support::backends::{on_both, on_sqlite};
use crate::untrusted_input::attacks::{Attack, send};
use crate::untrusted_input::encodings::{BROKEN_PERCENTS, percent_encoded, share};
use crate::untrusted_input::http_connection::HttpConnection;
use crate::untrusted_input::installation::{Installation, all_endpoints};
use crate::untrusted_input::strings;

/// Existing parameters of endpoints, and those that attackers try.
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
struct QueryEndpoint {
    method: String,
    address: String,
    parameters: Vec<&'static str>,
}

/// The parameters of every endpoint, probed once for all tests, with the paths on this server.
async fn query_endpoints(server: &Installation) -> Vec<QueryEndpoint> {
    static KNOWN: OnceCell<Vec<Vec<&'static str>>> = OnceCell::const_new();
    let known = KNOWN.get_or_init(|| probe_parameters(server)).await;
    let mut all = Vec::new();
    for (endpoint, parameters) in all_endpoints().iter().zip(known) {
        all.push(QueryEndpoint {
            method: endpoint.method().to_string(),
            address: server.address(endpoint).await,
            parameters: parameters.clone(),
        });
    }
    all
}

async fn probe_parameters(server: &Installation) -> Vec<Vec<&'static str>> {
    let mut all = Vec::new();
    let mut connection = HttpConnection::connect(&server.app.base);
    for endpoint in all_endpoints() {
        let method = endpoint.method().to_string();
        let address = server.address(&endpoint).await;
        let mut answer = async |query: &str| {
            let target = format!("{address}{query}");
            let request = server.request_with(&method, &target, "{}");
            let reply = connection
                .send(&request)
                .await
                .expect("the request got no response");
            (reply.status, reply.error())
        };
        let plain = answer("").await;
        // An endpoint that rejects every unknown name reveals nothing by rejecting one.
        let rejects_unknown = answer("?no_such=%27x").await != plain;
        let mut parameters = Vec::new();
        for name in NAMES {
            let encoded = percent_encoded(name);
            if !rejects_unknown && answer(&format!("?{encoded}=%27x")).await != plain {
                parameters.push(name);
            }
        }
        all.push(parameters);
    }
    all
}

/// Endpoints that return a list in pages.
async fn lists(server: &Installation) -> Vec<String> {
    let all = query_endpoints(server).await.into_iter();
    let lists = all.filter(|it| it.method == "GET" && it.parameters.contains(&"limit"));
    let lists: Vec<String> = lists.map(|it| it.address).collect();
    assert!(lists.len() > 7, "only {lists:?} were found");
    lists
}

async fn get(
    connection: &mut HttpConnection,
    server: &Installation,
    target: &str,
) -> (u16, (String, String), Value) {
    let request = server.request("GET", target, "", b"");
    let reply = connection.send(&request).await;
    let reply = reply.unwrap_or_else(|error| panic!("GET {target}: {error}"));
    (reply.status, reply.error(), reply.json())
}

on_both! {
    async fn no_string_in_a_query_causes_a_server_error(backend) {
        let server = Installation::open(backend).await;
        let strings = strings::all().into_iter().filter(|it| it.len() < 10_000);
        let mut values: Vec<String> = strings.map(|it| percent_encoded(&it)).collect();
        values.extend(BROKEN_PERCENTS.iter().map(|it| (*it).to_owned()));
        let mut attacks = Vec::new();
        for (index, endpoint) in query_endpoints(&server).await.into_iter().enumerate() {
            for (at, name) in NAMES.iter().enumerate() {
                let number = index * NAMES.len() + at;
                let tried: Vec<_> = match endpoint.parameters.contains(name) {
                    true => share(&values, number).collect(),
                    // An unknown parameter gets one string; one in five also as its name.
                    false => vec![&values[number % values.len()]],
                };
                let queries = tried.iter().map(|it| format!("{}={it}", percent_encoded(name)));
                let as_name = tried.first().filter(|_| number.is_multiple_of(5));
                let as_name = as_name.map(|it| format!("{it}={}", percent_encoded(name)));
                for query in queries.chain(as_name) {
                    let target = format!("{}?{query}", endpoint.address);
                    let bytes = server.request_with(&endpoint.method, &target, "{}");
                    let what: String = format!("{} {target}", endpoint.method).chars().take(120).collect();
                    attacks.push(Attack { what, bytes });
                }
            }
        }

        let tally = send(&server.app.base, attacks).await;

        tally.finish("strings in queries");
        server.close_unharmed().await;
    }

    async fn a_cursor_to_a_nonexistent_item_returns_a_page_or_is_rejected(backend) {
        let server = Installation::open(backend).await;
        let mut connection = HttpConnection::connect(&server.app.base);
        let mut n_requests = 0;
        for list in lists(&server).await {
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
                    let (status, (code, _), page) = get(&mut connection, &server, &format!("{list}?{query}")).await;
                    let is_page = status == 200 && page["data"].is_array() && page["has_more"].is_boolean();
                    let is_refused = status == 400 && code == "invalid_value";
                    assert!(is_page || is_refused, "{list}?{query}: {status} {page}");
                    n_requests += 1;
                }
            }
            let many: String = (0..2_000).map(|n| format!("a{n}=1&")).collect();
            let (status, _, page) = get(&mut connection, &server, &format!("{list}?{many}limit=1")).await;
            assert_eq!(status, 200, "{list}: {page}");
        }
        eprintln!("cursors: {n_requests} requests");
        server.close_unharmed().await;
    }
}

on_sqlite! {
    async fn an_invalid_page_size_is_rejected_and_no_page_exceeds_the_limit(backend) {
        let server = Installation::open(backend).await;
        let mut connection = HttpConnection::connect(&server.app.base);
        let mut n_requests = 0;
        let refused = [
            "", "1000000000", "0", "-1", "201", "1e3", "0x10", "1.0", "%20", "%2B", "99999999999999999999", "NaN", "all",
        ];
        for list in lists(&server).await {
            for limit in refused {
                let (status, (code, param), _) = get(&mut connection, &server, &format!("{list}?limit={limit}")).await;
                let found = (status, code.as_str(), param.as_str());
                assert_eq!(found, (400, "invalid_value", "limit"), "{list}?limit={limit}");
                n_requests += 1;
            }
            for query in ["limit=200", "limit=1", "limit=5&limit=1000000000", "LIMIT=1000000000"] {
                let (status, _, page) = get(&mut connection, &server, &format!("{list}?{query}")).await;
                let n = page["data"].as_array().map_or(usize::MAX, Vec::len);
                assert!(status == 200 && n <= 200, "{list}?{query}: {status} {page}");
                n_requests += 1;
            }
        }
        eprintln!("pages: {n_requests} requests");
        server.close_unharmed().await;
    }
}
