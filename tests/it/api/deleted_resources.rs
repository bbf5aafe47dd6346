//! Deleting a resource while other requests use it: a late request is answered that the resource is
//! gone, never with a server error.

use futures::future::{join, join_all};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::on_sqlite;
use crate::support::http_client::{HttpClient, expect, id, root_of};

/// How often each resource is deleted while it is used.
const ROUNDS: usize = 12;

/// A resource to delete and the requests that use it at that moment.
struct Deletion {
    goes: String,
    uses: Vec<(Method, String, Value)>,
}

/// Creates a space, and a lorebook, a preset, a provider and a character that are in use there.
async fn scenes(admin: &HttpClient, round: usize) -> Vec<Deletion> {
    let space = admin
        .create_space(&format!("Harbor {round}"), json!({}))
        .await;
    let (at, root) = (
        format!("/api/spaces/{}", id(&space)),
        format!("/api/conversations/{}", root_of(&space)),
    );
    let character = admin.create_character("Mina", None).await;
    let fiona = admin.create_character("Fiona", None).await;
    let seat = admin.add_character(&space, &fiona).await;
    let side = format!("{at}/conversations");
    let side = expect(201, admin.post(&side, json!({"title": "Aside"})).await);
    let said = expect(
        201,
        admin
            .post(&format!("{root}/messages"), json!({"content": "Hello"}))
            .await,
    );
    let said = said.get("message").unwrap_or(&said);
    let book = json!({"name": "Harbor", "entries": [{"keys": ["quay"], "content": "Stone."}]});
    let book = expect(201, admin.post("/api/lorebooks", book.clone()).await);
    let other = json!({"name": "Town", "entries": [{"keys": ["mill"], "content": "Wood."}]});
    let other = expect(201, admin.post("/api/lorebooks", other).await);
    let preset = expect(
        201,
        admin.post("/api/presets", json!({"name": "Calm"})).await,
    );
    let provider = json!({"name": format!("Model {round}"), "kind": "demo", "model": "demo"});
    let provider = expect(201, admin.post("/api/providers", provider).await);
    let (book, other) = (
        format!("/api/lorebooks/{}", id(&book)),
        format!("/api/lorebooks/{}", id(&other)),
    );
    let entry = expect(200, admin.get(&other).await)["entries"][0].clone();
    let entry = format!("{other}/entries/{}", id(&entry));
    let number = |path: &str| -> i64 { path.rsplit('/').next().unwrap().parse().unwrap() };
    let member = format!("/api/memberships/{}", id(&seat));
    let post = |path: String, body: Value| (Method::POST, path, body);
    let patch = |path: &str, body: Value| (Method::PATCH, path.to_owned(), body);
    vec![
        Deletion {
            uses: vec![
                post(format!("{book}/entries"), json!({"keys": ["fog"]})),
                patch(&book, json!({"name": "Port"})),
                post(
                    format!("{at}/lorebooks"),
                    json!({"lorebook_id": number(&book)}),
                ),
            ],
            goes: book,
        },
        Deletion {
            uses: vec![patch(&entry, json!({"content": "Grey."}))],
            goes: entry,
        },
        Deletion {
            uses: vec![
                post(
                    format!("{at}/memberships"),
                    json!({"character_id": id(&character)}),
                ),
                patch(
                    &format!("/api/characters/{}", id(&character)),
                    json!({"name": "Min"}),
                ),
            ],
            goes: format!("/api/characters/{}", id(&character)),
        },
        Deletion {
            uses: vec![patch(&member, json!({"preset_id": id(&preset)}))],
            goes: format!("/api/presets/{}", id(&preset)),
        },
        Deletion {
            uses: vec![patch(&member, json!({"provider_id": id(&provider)}))],
            goes: format!("/api/providers/{}", id(&provider)),
        },
        Deletion {
            uses: vec![
                patch(
                    &format!("/api/messages/{}", id(said)),
                    json!({"content": "Hi"}),
                ),
                post(format!("{root}/branch"), json!({"message_id": id(said)})),
            ],
            goes: format!("/api/messages/{}", id(said)),
        },
        Deletion {
            uses: vec![
                post(
                    format!("/api/conversations/{}/messages", id(&side)),
                    json!({"content": "Hm"}),
                ),
                patch(
                    &format!("/api/conversations/{}", id(&side)),
                    json!({"title": "Here"}),
                ),
                post(
                    format!("/api/conversations/{}/generate", id(&side)),
                    json!({}),
                ),
            ],
            goes: format!("/api/conversations/{}", id(&side)),
        },
        Deletion {
            uses: vec![
                post(format!("{at}/invites"), json!({"role": "member"})),
                post(format!("{at}/conversations"), json!({"title": "Late"})),
                post(
                    format!("{root}/messages"),
                    json!({"content": "Still here?"}),
                ),
                patch(&at, json!({"name": "Port"})),
            ],
            goes: at,
        },
    ]
}

on_sqlite! {
    async fn using_a_resource_while_it_is_deleted_reports_that_it_is_gone(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let mut wrong = Vec::new();
        for round in 0..ROUNDS {
            for Deletion { goes, uses } in scenes(&admin, round).await {
                let used = uses.iter().map(|(method, path, body)| {
                    admin.attempt(method.clone(), path, Some(body))
                });
                let (gone, answers) = join(admin.delete(&goes), join_all(used)).await;
                assert!(gone.0 < 300 || gone.0 == 409, "DELETE {goes}: {gone:?}");
                for ((method, path, _), answer) in uses.iter().zip(answers) {
                    let (status, body) = answer.unwrap();
                    if status >= 500 {
                        wrong.push(format!("DELETE {goes}, {method} {path}: {status} {body}"));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
        app.close().await;
    }
}
