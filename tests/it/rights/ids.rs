//! Tests invalid ids in paths: an id consists of digits, and the id of a run is a UUID.

use reqwest::Method;
use serde_json::Value;

use crate::rights::fixture;
use crate::rights::fixture::Ids;
use crate::rights::roles::{Role, RoleClients};
use crate::rights::table::{Row, rows};
use crate::support::app::TestApp;
use crate::support::backends::on_sqlite;
use crate::support::database_facts::DatabaseFacts;

/// Without workers, and without limits that would end the test early.
const SETTINGS: &[(&str, &str)] = &[
    ("TROUPE_OPEN_REGISTRATION", "true"),
    ("TROUPE_WORKERS", "0"),
    ("LIMIT_LOGIN_FAILURES", "0"),
    ("LIMIT_REGISTRATIONS_PER_HOUR", "0"),
];

/// Returns other spellings of an existing id.
fn spellings(id: &str) -> Vec<String> {
    let odd = [
        format!("+{id}"),
        format!("%2B{id}"),
        format!("-{id}"),
        format!("%20{id}"),
        format!("{id}%20"),
        format!("{id}.0"),
        format!("0x{id}"),
        format!("{id:0>20}"),
        format!("{id}%00"),
        format!("%EF%BC%8B{id}"),
        // The same number in full-width digits.
        id.bytes()
            .map(|it| format!("%EF%BC%{:02X}", 0x90 + (it & 15)))
            .collect(),
        "99999999999999999999".to_owned(),
        "9223372036854775808".to_owned(),
        String::new(),
    ];
    let of_a_run = [
        id.replace('-', ""),
        format!("urn:uuid:{id}"),
        format!("%7B{id}%7D"),
        format!("+{id}"),
        format!("%20{id}"),
        String::new(),
    ];
    match id.contains('-') {
        true => of_a_run.to_vec(),
        false => odd.to_vec(),
    }
}

fn text(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

/// Returns a role that may call the endpoint of the row.
fn allowed(row: &Row) -> Role {
    let mut all = [Role::Owner, Role::Admin].into_iter().chain(Role::ALL);
    let found = all.find(|who| *who != Role::SignedOut && !Row::is_refusal(row.expects(*who)));
    found.unwrap_or(Role::Owner)
}

/// Returns the row's path with this id for one parameter and valid ids for the others.
fn path(row: &Row, space_ids: &Ids, who: Role, (name, id): (&str, &str)) -> String {
    row.filled(|it| match it == name {
        true => id.to_owned(),
        false => text(&space_ids.of(row.id_for(it), who)),
    })
}

on_sqlite! {
    async fn an_id_that_does_not_consist_of_digits_is_404_and_changes_nothing(backend) {
        let clients = RoleClients::create(TestApp::start_with(backend, SETTINGS).await).await;
        let mut space_ids = fixture::create(&clients, Role::Owner).await;
        fixture::create_resources_of(&clients, Role::Owner, &mut space_ids).await;
        let mut facts = DatabaseFacts::open(&clients.app.database).await;
        let before = facts.everything().await;
        let (mut n_tried, mut wrong) = (0, Vec::new());

        for row in rows() {
            let who = allowed(&row);
            let method = Method::from_bytes(row.method().as_bytes()).unwrap();
            let body = (row.body)(&space_ids, who);
            let body = (!body.is_null()).then_some(&body);
            for name in row.parameters().into_iter().filter(|it| it.ends_with("_id")) {
                for id in spellings(&text(&space_ids.of(row.id_for(name), who))) {
                    let path = path(&row, &space_ids, who, (name, &id));
                    let (status, answer) = clients.person(who).attempt(method.clone(), &path, body).await.unwrap();
                    n_tried += 1;
                    if (status, &answer["error"]["code"]) != (404, &"not_found".into()) {
                        wrong.push(format!("{} {path}: {status} {answer}", row.method()));
                    }
                }
            }
        }

        eprintln!("{n_tried} paths");
        assert!(wrong.is_empty(), "{} of {n_tried} failed:\n{}", wrong.len(), wrong.join("\n"));
        assert_eq!(facts.everything().await, before);
        clients.app.close().await;
    }
}
