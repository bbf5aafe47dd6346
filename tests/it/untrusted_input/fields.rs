//! Sends every column of every table as an additional field of every body, and checks that only the
//! fields that an endpoint documents can be set.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::HttpClient;
use crate::support::poll;
use crate::untrusted_input::attacks::{Attack, send};
use crate::untrusted_input::endpoint_fields::{documented, of_all_endpoints};
use crate::untrusted_input::http_connection::HttpConnection;
use crate::untrusted_input::installation::{Installation, all_endpoints, columns};

/// Columns that decide a user's identity or rights, and the endpoints that may set them.
const GUARDED: &[(&str, &[&str])] = &[
    (
        "role",
        &[
            "POST /api/spaces/{space_id}/memberships",
            "PATCH /api/memberships/{membership_id}",
            "POST /api/spaces/{space_id}/invites",
            "PATCH /api/admin/users/{user_id}",
        ],
    ),
    (
        "status",
        &[
            // Known there only to be refused.
            "POST /api/spaces",
            "PATCH /api/spaces/{space_id}",
            "PATCH /api/admin/users/{user_id}",
        ],
    ),
    ("user_id", &["POST /api/spaces/{space_id}/memberships"]),
    ("seq", &["POST /api/conversations/{conversation_id}/read"]),
    (
        "token_limit",
        &["POST /api/spaces", "PATCH /api/spaces/{space_id}"],
    ),
    (
        "parent_conversation_id",
        &["POST /api/spaces/{space_id}/conversations"],
    ),
    (
        "is_default",
        &["POST /api/providers", "PATCH /api/providers/{provider_id}"],
    ),
    (
        "disabled",
        &["POST /api/providers", "PATCH /api/providers/{provider_id}"],
    ),
    ("max_uses", &["POST /api/spaces/{space_id}/invites"]),
    (
        "id",
        // The number of the file it came from, not that of the row.
        &[
            "POST /api/lorebooks/{lorebook_id}/entries",
            "PATCH /api/lorebooks/{lorebook_id}/entries/{lorebook_entry_id}",
        ],
    ),
    ("lorebook_id", &[]),
    ("character_id", &["POST /api/spaces/{space_id}/memberships"]),
    ("owner_id", &[]),
    ("created_by", &[]),
    ("space_id", &[]),
    ("conversation_id", &[]),
    ("space_membership_id", &[]),
    ("conversation_run_id", &[]),
    ("origin_message_id", &[]),
    ("forked_from_message_id", &[]),
    ("last_seq", &[]),
    ("last_read_seq", &[]),
    ("rev", &[]),
    ("tokens_used", &[]),
    ("token_count", &[]),
    ("uses", &[]),
    ("active_swipe", &[]),
    ("cached_display_name", &[]),
    ("spec_version", &[]),
    ("origin", &[]),
    ("avatar_id", &[]),
    ("asset_id", &[]),
    ("prefix", &[]),
    ("worker_id", &[]),
    ("lease", &[]),
    ("auto_mode_turns", &[]),
    ("attempt", &[]),
    ("cutoff_seq", &[]),
    ("reason", &[]),
    ("debug", &[]),
    ("usage", &[]),
    ("error", &[]),
    ("cursor", &[]),
    ("seed", &[]),
    ("variables", &[]),
    ("metadata", &[]),
];

/// Fields that the update of a space accepts, and that its creation rejects by name.
const KNOWN_TO_BE_REFUSED: (&str, [&str; 2]) = ("POST /api/spaces", ["settings_version", "status"]);

/// Columns that contain an instant, a hash or a normalized name: no endpoint accepts one.
fn is_our_own(column: &str) -> bool {
    ["_at", "_hash", "_key"]
        .iter()
        .any(|it| column.ends_with(it))
        && column != "api_key"
}

/// A value that would do harm if it were taken.
fn harmful(column: &str) -> Value {
    match column {
        "role" => json!("admin"),
        "status" => json!("active"),
        "metadata" | "settings" | "variables" | "debug" => json!({"pwned": true}),
        _ if column.ends_with("_id") || column == "id" => json!(1),
        _ if column.ends_with("_hash") || column.ends_with("_key") => json!("pwned"),
        _ => json!(0),
    }
}

async fn column_names(facts: &mut DatabaseFacts) -> BTreeSet<String> {
    columns(facts).await.into_values().flatten().collect()
}

on_sqlite! {
    async fn a_column_that_an_endpoint_does_not_accept_is_an_unknown_field(backend) {
        let house = Installation::open(backend).await;
        let mut facts = house.facts().await;
        let names = column_names(&mut facts).await;
        let doors = of_all_endpoints(&house).await;
        let mut line = HttpConnection::connect(&house.app.base);
        let hello = house.request("GET", "/api/session", "", b"");
        assert_eq!(line.send(&hello).await.expect("an answer").status, 200);
        poll::until("the key is seen to be used", async || {
            let unused = "SELECT CAST(count(*) AS TEXT) FROM api_keys WHERE name = 'key' AND last_used_at IS NULL";
            (facts.number(unused).await == 0).then_some(())
        })
        .await;
        let before = facts.everything().await;
        let mut attacks = Vec::new();
        for door in doors.iter().filter(|it| it.reads) {
            let known: BTreeSet<_> = door.fields.iter().map(|it| &it.name).collect();
            for column in names.iter().filter(|it| !known.contains(it)) {
                let body = door.body_with(column, harmful(column));
                let what = format!("{} {column}: {body}", door.call());
                let bytes = house.request_with(&door.method, &door.address, &body);
                attacks.push(Attack { what, bytes });
            }
        }
        assert!(attacks.len() > 2_000, "{} attacks", attacks.len());
        let one = line.send(&attacks[0].bytes).await.expect("an answer");

        let tally = send(&house.app.base, attacks).await;

        assert_eq!(one.error().0, "unknown_field");
        assert_eq!(tally.by_status.keys().collect::<Vec<_>>(), [&400]);
        tally.finish("columns as fields");
        assert_eq!(facts.everything().await, before, "something was written");
        drop(facts);
        house.close_unharmed().await;
    }

    async fn permission_fields_are_accepted_by_no_other_endpoint(backend) {
        let house = Installation::open(backend).await;
        let names = column_names(&mut house.facts().await).await;
        let mut taken = Vec::new();
        for door in of_all_endpoints(&house).await {
            for field in door.fields.iter().filter(|it| names.contains(&it.name)) {
                let guarded = GUARDED.iter().find(|(column, _)| *column == field.name);
                let may = guarded.map(|(_, calls)| calls.contains(&door.call().as_str()));
                if is_our_own(&field.name) || may == Some(false) {
                    taken.push(format!("{} takes {}", door.call(), field.name));
                }
            }
        }

        assert!(taken.is_empty(), "no door is meant to take these:\n{}", taken.join("\n"));
        let real = GUARDED.iter().filter(|(column, _)| names.contains(*column)).count();
        assert!(real > 35, "only {real} of the guarded columns are there");
        house.close_unharmed().await;
    }

    async fn setup_accepts_no_permission_fields(backend) {
        let app = TestApp::start(backend).await;
        let visitor = HttpClient::new(&app.base);
        let names = column_names(&mut DatabaseFacts::open(&app.database).await).await;

        for column in names.iter().filter(|it| !["username", "display_name"].contains(&it.as_str())) {
            let mut body = json!({"username": "admin", "password": "correct horse", "display_name": "A"});
            body[column] = harmful(column);
            let (status, answer) = visitor.post("/api/setup", body).await;
            let error = &answer["error"];
            assert_eq!((status, &error["code"], &error["param"]), (400, &json!("unknown_field"), &json!(column)));
        }

        assert_eq!(visitor.get("/api/setup").await.1, json!({"needed": true}));
        app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_accepts_exactly_its_documented_fields() {
    let house = Installation::open(TestBackend::Sqlite).await;
    let documents = all_endpoints().into_iter().map(|it| documented(&it));
    let mut wrong = Vec::new();
    let mut n_fields = 0;
    for (door, told) in of_all_endpoints(&house).await.iter().zip(documents) {
        let mut taken: BTreeSet<String> = door.fields.iter().map(|it| it.name.clone()).collect();
        if door.call() == KNOWN_TO_BE_REFUSED.0 {
            taken.retain(|it| !KNOWN_TO_BE_REFUSED.1.contains(&it.as_str()));
        }
        n_fields += taken.len();
        // Endpoints without a probe: they read no body, or refuse before they read it.
        if door.reads && taken != told {
            let only_taken: Vec<_> = taken.difference(&told).collect();
            let only_told: Vec<_> = told.difference(&taken).collect();
            wrong.push(format!(
                "{}: takes {only_taken:?}, tells of {only_told:?}",
                door.call()
            ));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n_fields > 120, "{n_fields}");
    house.close_unharmed().await;
}
