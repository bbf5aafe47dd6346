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
            // The role of a description in a prompt.
            "POST /api/personas",
            r"PATCH /api/personas/{persona_id:\d+}",
        ],
    ),
    (
        "status",
        &[
            // Accepted there only to be rejected by name.
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
        &[
            "POST /api/providers",
            "PATCH /api/providers/{provider_id}",
            "POST /api/personas",
            r"PATCH /api/personas/{persona_id:\d+}",
        ],
    ),
    (
        "disabled",
        &["POST /api/providers", "PATCH /api/providers/{provider_id}"],
    ),
    ("max_uses", &["POST /api/spaces/{space_id}/invites"]),
    (
        "id",
        // The id in the imported file, not that of the row.
        &[
            "POST /api/lorebooks/{lorebook_id}/entries",
            "PATCH /api/lorebooks/{lorebook_id}/entries/{lorebook_entry_id}",
        ],
    ),
    (
        "regex_allowed",
        &[
            r"PATCH /api/characters/{character_id:\d+}",
            r"PATCH /api/presets/{preset_id:\d+}",
        ],
    ),
    ("scripts_rev", &[]),
    ("lorebook_id", &[]),
    ("character_id", &["POST /api/spaces/{space_id}/memberships"]),
    ("owner_id", &[]),
    ("created_by", &[]),
    ("space_id", &[]),
    (
        "conversation_id",
        &[
            "POST /api/lorebooks/{lorebook_id}/test",
            "POST /api/presets/{preset_id}/expand",
            "POST /api/spaces/{space_id}/memories/forget",
            "POST /api/spaces/{space_id}/memories/learn",
        ],
    ),
    ("space_membership_id", &[]),
    ("conversation_run_id", &[]),
    ("origin_message_id", &[]),
    ("forked_from_message_id", &[]),
    ("last_seq", &[]),
    ("last_read_seq", &[]),
    ("rev", &[]),
    ("tokens_used", &[]),
    ("unattributed_tokens", &[]),
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

/// Columns that contain an instant, a hash or a normalized name: no endpoint accepts reply.
fn is_our_own(column: &str) -> bool {
    ["_at", "_hash", "_key"]
        .iter()
        .any(|it| column.ends_with(it))
        && column != "api_key"
}

/// A value that would do harm if it were accepted.
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
        let server = Installation::open(backend).await;
        let mut facts = server.facts().await;
        let names = column_names(&mut facts).await;
        let endpoints = of_all_endpoints(&server).await;
        let mut connection = HttpConnection::connect(&server.app.base);
        let check_session = server.request("GET", "/api/session", "", b"");
        assert_eq!(connection.send(&check_session).await.expect("the request got no response").status, 200);
        poll::until("`last_used_at` of the key is set", async || {
            let unused = "SELECT CAST(count(*) AS TEXT) FROM api_keys WHERE name = 'key' AND last_used_at IS NULL";
            (facts.number(unused).await == 0).then_some(())
        })
        .await;
        let before = facts.everything().await;
        let mut attacks = Vec::new();
        for endpoint in endpoints.iter().filter(|it| it.reads) {
            let known: BTreeSet<_> = endpoint.fields.iter().map(|it| &it.name).collect();
            for column in names.iter().filter(|it| !known.contains(it)) {
                let body = endpoint.body_with(column, harmful(column));
                let what = format!("{} {column}: {body}", endpoint.call());
                let bytes = server.request_with(&endpoint.method, &endpoint.address, &body);
                attacks.push(Attack { what, bytes });
            }
        }
        assert!(attacks.len() > 2_000, "{} attacks", attacks.len());
        let reply = connection.send(&attacks[0].bytes).await.expect("the request got no response");

        let tally = send(&server.app.base, attacks).await;

        assert_eq!(reply.error().0, "unknown_field");
        assert_eq!(tally.by_status.keys().collect::<Vec<_>>(), [&400]);
        tally.finish("columns as fields");
        assert_eq!(facts.everything().await, before, "the database has changed");
        drop(facts);
        server.close_unharmed().await;
    }

    async fn permission_fields_are_accepted_by_no_other_endpoint(backend) {
        let server = Installation::open(backend).await;
        let names = column_names(&mut server.facts().await).await;
        let mut accepted = Vec::new();
        for endpoint in of_all_endpoints(&server).await {
            for field in endpoint.fields.iter().filter(|it| names.contains(&it.name)) {
                let guarded = GUARDED.iter().find(|(column, _)| *column == field.name);
                let may = guarded.map(|(_, calls)| calls.contains(&endpoint.call().as_str()));
                if is_our_own(&field.name) || may == Some(false) {
                    accepted.push(format!("{} accepts {}", endpoint.call(), field.name));
                }
            }
        }

        assert!(accepted.is_empty(), "no endpoint may accept these:\n{}", accepted.join("\n"));
        let n_existing = GUARDED.iter().filter(|(column, _)| names.contains(*column)).count();
        assert!(n_existing > 35, "only {n_existing} of the guarded columns exist");
        server.close_unharmed().await;
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
    let server = Installation::open(TestBackend::Sqlite).await;
    let documents = all_endpoints().into_iter().map(|it| documented(&it));
    let mut wrong = Vec::new();
    let mut n_fields = 0;
    for (endpoint, documented_fields) in of_all_endpoints(&server).await.iter().zip(documents) {
        let mut accepted: BTreeSet<String> =
            endpoint.fields.iter().map(|it| it.name.clone()).collect();
        if endpoint.call() == KNOWN_TO_BE_REFUSED.0 {
            accepted.retain(|it| !KNOWN_TO_BE_REFUSED.1.contains(&it.as_str()));
        }
        n_fields += accepted.len();
        // Endpoints that read no body, or reject the request before they read it, are not probed.
        if endpoint.reads && accepted != documented_fields {
            let only_accepted: Vec<_> = accepted.difference(&documented_fields).collect();
            let only_documented: Vec<_> = documented_fields.difference(&accepted).collect();
            wrong.push(format!(
                "{}: accepts {only_accepted:?}, documents {only_documented:?}",
                endpoint.call()
            ));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n_fields > 120, "{n_fields}");
    server.close_unharmed().await;
}
