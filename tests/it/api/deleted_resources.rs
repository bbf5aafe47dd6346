//! Tests of deleting a resource while other requests use it: a late request fails because the
//! resource no longer exists, never with a server error.

use futures::future::{join, join_all};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::on_sqlite;
use crate::support::http_client::{HttpClient, expect, id, root_of};

/// The number of times that each resource is deleted while it is used.
const ROUNDS: usize = 12;

/// A resource to delete and the requests that use it at the same time.
struct Deletion {
    target: String,
    requests: Vec<(Method, String, Value)>,
}

/// Creates a space, and a lorebook, a preset, a provider and a character that are in use there.
async fn create_deletions(admin: &HttpClient, round: usize) -> Vec<Deletion> {
    let space = admin
        .create_space(&format!("Harbor {round}"), json!({}))
        .await;
    let (at, root) = (
        format!("/api/spaces/{}", id(&space)),
        format!("/api/conversations/{}", root_of(&space)),
    );
    let character = admin.create_character("Mina", None).await;
    let fiona = admin.create_character("Fiona", None).await;
    let membership = admin.add_character(&space, &fiona).await;
    let side = format!("{at}/conversations");
    let side = expect(201, admin.post(&side, json!({"title": "Aside"})).await);
    let posted = expect(
        201,
        admin
            .post(&format!("{root}/messages"), json!({"content": "Hello"}))
            .await,
    );
    let posted = posted.get("message").unwrap_or(&posted);
    let lorebook = json!({"name": "Harbor", "entries": [{"keys": ["quay"], "content": "Stone."}]});
    let lorebook = expect(201, admin.post("/api/lorebooks", lorebook.clone()).await);
    let other = json!({"name": "Town", "entries": [{"keys": ["mill"], "content": "Wood."}]});
    let other = expect(201, admin.post("/api/lorebooks", other).await);
    let preset = expect(
        201,
        admin.post("/api/presets", json!({"name": "Calm"})).await,
    );
    let provider = json!({"name": format!("Model {round}"), "kind": "demo", "model": "demo"});
    let provider = expect(201, admin.post("/api/providers", provider).await);
    let (lorebook, other) = (
        format!("/api/lorebooks/{}", id(&lorebook)),
        format!("/api/lorebooks/{}", id(&other)),
    );
    let entry = expect(200, admin.get(&other).await)["entries"][0].clone();
    let entry = format!("{other}/entries/{}", id(&entry));
    let number = |path: &str| -> i64 { path.rsplit('/').next().unwrap().parse().unwrap() };
    let member = format!("/api/memberships/{}", id(&membership));
    let post = |path: String, body: Value| (Method::POST, path, body);
    let patch = |path: &str, body: Value| (Method::PATCH, path.to_owned(), body);
    vec![
        Deletion {
            requests: vec![
                post(format!("{lorebook}/entries"), json!({"keys": ["fog"]})),
                patch(&lorebook, json!({"name": "Port"})),
                post(
                    format!("{at}/lorebooks"),
                    json!({"lorebook_id": number(&lorebook)}),
                ),
            ],
            target: lorebook,
        },
        Deletion {
            requests: vec![patch(&entry, json!({"content": "Grey."}))],
            target: entry,
        },
        Deletion {
            requests: vec![
                post(
                    format!("{at}/memberships"),
                    json!({"character_id": id(&character)}),
                ),
                patch(
                    &format!("/api/characters/{}", id(&character)),
                    json!({"name": "Min"}),
                ),
            ],
            target: format!("/api/characters/{}", id(&character)),
        },
        Deletion {
            requests: vec![patch(&member, json!({"preset_id": id(&preset)}))],
            target: format!("/api/presets/{}", id(&preset)),
        },
        Deletion {
            requests: vec![patch(&member, json!({"provider_id": id(&provider)}))],
            target: format!("/api/providers/{}", id(&provider)),
        },
        Deletion {
            requests: vec![
                patch(
                    &format!("/api/messages/{}", id(posted)),
                    json!({"content": "Hi"}),
                ),
                post(format!("{root}/branch"), json!({"message_id": id(posted)})),
            ],
            target: format!("/api/messages/{}", id(posted)),
        },
        Deletion {
            requests: vec![
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
            target: format!("/api/conversations/{}", id(&side)),
        },
        Deletion {
            requests: vec![
                post(format!("{at}/invites"), json!({"role": "member"})),
                post(format!("{at}/conversations"), json!({"title": "Late"})),
                post(
                    format!("{root}/messages"),
                    json!({"content": "Still here?"}),
                ),
                patch(&at, json!({"name": "Port"})),
            ],
            target: at,
        },
    ]
}

on_sqlite! {
    async fn using_a_resource_while_it_is_deleted_reports_that_it_is_gone(backend) {
        let app = TestApp::start(backend).await;
        let admin = app.admin().await;
        let mut errors = Vec::new();
        for round in 0..ROUNDS {
            for Deletion { target, requests } in create_deletions(&admin, round).await {
                let responses = requests.iter().map(|(method, path, body)| {
                    admin.attempt(method.clone(), path, Some(body))
                });
                let (gone, answers) = join(admin.delete(&target), join_all(responses)).await;
                assert!(gone.0 < 300 || gone.0 == 409, "DELETE {target}: {gone:?}");
                for ((method, path, _), answer) in requests.iter().zip(answers) {
                    let (status, body) = answer.unwrap();
                    if status >= 500 {
                        errors.push(format!("DELETE {target}, {method} {path}: {status} {body}"));
                    }
                }
            }
        }
        assert!(errors.is_empty(), "{} server errors:\n{}", errors.len(), errors.join("\n"));
        app.close().await;
    }
}
