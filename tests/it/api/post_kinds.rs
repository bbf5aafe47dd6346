//! Tests of narration, texts in the name of characters, dice and quick replies over HTTP.

use serde_json::{Value, json};

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::file_uploads::{fetch, import};
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::role_fixture::RoleFixture;

async fn post(user: &HttpClient, conversation: i64, body: Value) -> (u16, Value) {
    let path = format!("/api/conversations/{conversation}/messages");
    user.post(&path, body).await
}

/// The users, the root conversation, and the membership of Ada.
async fn users(backend: TestBackend) -> (RoleFixture, i64, i64) {
    let (users, _) = RoleFixture::create(backend).await;
    let root = root_of(&users.document);
    let ada = users.owner.create_character("Ada", None).await;
    let ada = users.owner.add_character(&users.document, &ada).await;
    (users, root, id(&ada))
}

on_sqlite! {
    async fn the_kind_decides_role_author_and_metadata(backend) {
        let (users, root, ada) = users(backend).await;

        let narrated = json!({"content": "The rain stops.", "kind": "narrator"});
        let narrated = expect(201, post(&users.member, root, narrated).await);
        let spoken = json!({"content": "Welcome.", "kind": "character", "speaker_id": ada});
        let spoken = expect(201, post(&users.moderator, root, spoken).await);
        let rolled = expect(201, post(&users.guest, root, json!({"content": "3d1 - 1", "kind": "roll"})).await);

        assert_eq!((&narrated["message"]["role"], &narrated["run"]), (&json!("system"), &Value::Null));
        assert_eq!(narrated["message"]["author_name"], "member");
        assert_eq!((&spoken["message"]["role"], &spoken["run"]), (&json!("assistant"), &Value::Null));
        assert_eq!(spoken["message"]["author_name"], "Ada");
        assert_eq!(spoken["message"]["metadata"], json!({"posted_by": "moderator"}));
        assert_eq!(rolled["message"]["content"], "guest rolls 3d1-1: 1 + 1 + 1 - 1 = 2");
        let roll = json!({"notation": "3d1-1", "dice": [1, 1, 1], "added": -1, "total": 2});
        assert_eq!((&rolled["message"]["role"], &rolled["message"]["metadata"]["roll"]), (&json!("system"), &roll));
        users.app.close().await;
    }

    async fn what_a_kind_does_not_allow_is_named(backend) {
        let (users, root, ada) = users(backend).await;
        let owner = &users.owner;
        let own = expect(200, owner.get(&users.path("/memberships")).await)["data"][0]["id"].clone();
        let persona = expect(201, owner.post("/api/personas", json!({"name": "Vera"})).await)["id"].clone();
        let cases = [
            (json!({"kind": "roll", "content": "banana"}), "content"),
            (json!({"kind": "roll", "content": "101d6"}), "content"),
            (json!({"kind": "character", "content": "Hi."}), "speaker_id"),
            (json!({"kind": "character", "content": "Hi.", "speaker_id": own}), "speaker_id"),
            (json!({"kind": "character", "content": "Hi.", "speaker_id": 999_999}), "speaker_id"),
            (json!({"content": "Hi.", "speaker_id": ada}), "speaker_id"),
            (json!({"kind": "narrator", "content": "Hi.", "is_ooc": true}), "is_ooc"),
            (json!({"kind": "narrator", "content": "Hi.", "persona_id": persona}), "persona_id"),
            (json!({"kind": "narrator", "content": "Hi.", "attachment_ids": [1]}), "attachment_ids"),
            (json!({"kind": "oracle", "content": "Hi."}), "kind"),
        ];

        for (body, param) in cases {
            let refused = post(owner, root, body.clone()).await;
            assert_eq!(refusal(&refused), (422, "invalid_value".to_owned()), "{body}");
            assert_eq!(refused.1["error"]["param"], param, "{body}");
        }
        let path = format!("/api/conversations/{root}/messages");
        assert_eq!(expect(200, owner.get(&path).await)["data"], json!([]));
        users.app.close().await;
    }

    async fn slow_mode_and_an_archived_space_hold_for_every_kind(backend) {
        let (users, root, _) = users(backend).await;
        let space = format!("/api/spaces/{}", users.space);
        expect(200, users.moderator.patch(&space, json!({"slow_mode_s": 600})).await);
        expect(201, post(&users.member, root, json!({"content": "d6", "kind": "roll"})).await);

        let early = post(&users.member, root, json!({"content": "d6", "kind": "roll"})).await;
        expect(200, users.owner.patch(&space, json!({"status": "archived"})).await);
        let late = post(&users.owner, root, json!({"content": "It rains.", "kind": "narrator"})).await;

        assert_eq!(refusal(&early), (429, "slow_mode".to_owned()));
        assert_eq!(refusal(&late), (403, "space_archived".to_owned()));
        users.app.close().await;
    }

    async fn a_character_that_joins_after_a_spoken_text_does_not_greet(backend) {
        let (users, root, ada) = users(backend).await;
        let spoken = json!({"content": "Welcome.", "kind": "character", "speaker_id": ada});
        expect(201, post(&users.owner, root, spoken).await);

        let bob = users.owner.create_character("Bob", Some("I am Bob.")).await;
        users.owner.add_character(&users.document, &bob).await;

        assert_eq!(users.owner.messages(root).await.len(), 1);
        users.app.close().await;
    }

    async fn chat_files_and_space_files_keep_kinds_and_quick_replies(backend) {
        let (users, root, ada) = users(backend).await;
        let replies = json!([{"label": "Roll", "text": "/roll d20"}]);
        let space = format!("/api/spaces/{}", users.space);
        expect(200, users.owner.patch(&space, json!({"settings": {"quick_replies": replies}})).await);
        expect(201, post(&users.owner, root, json!({"content": "It rains.", "kind": "narrator"})).await);
        let spoken = json!({"content": "Welcome.", "kind": "character", "speaker_id": ada});
        expect(201, post(&users.owner, root, spoken).await);

        let chat = fetch(&users.owner, &format!("/api/conversations/{root}/export?format=jsonl")).await;
        let lines: Vec<Value> = chat
            .split(|it| *it == b'\n')
            .filter_map(|it| serde_json::from_slice(it).ok())
            .collect();
        assert_eq!((&lines[1]["extra"]["type"], &lines[1]["is_system"]), (&json!("narrator"), &json!(false)));
        assert_eq!((&lines[2]["name"], &lines[2]["is_user"]), (&json!("Ada"), &json!(false)));

        let file = fetch(&users.owner, &format!("/api/spaces/{}/export", users.space)).await;
        let done = import(&users.owner, "/api/spaces/import", "room.troupe.zip", &file).await;
        let copy = expect(200, users.owner.get(&format!("/api/spaces/{}", done["space_id"])).await);
        assert_eq!(copy["settings"]["quick_replies"], replies);
        let roles: Vec<Value> = users.owner.messages(root_of(&copy)).await.iter().map(|it| it["role"].clone()).collect();
        assert_eq!(roles, ["system", "assistant"]);
        users.app.close().await;
    }

    async fn members_read_the_quick_replies_that_moderators_change(backend) {
        let (users, _, _) = users(backend).await;
        let space = format!("/api/spaces/{}", users.space);
        let change = json!({"settings": {"quick_replies": [{"label": "Look", "text": "I look around."}]}});

        let refused = users.member.patch(&space, change.clone()).await;
        expect(200, users.moderator.patch(&space, change.clone()).await);
        let blank = json!({"settings": {"quick_replies": [{"label": " ", "text": "x"}]}});
        let invalid = users.moderator.patch(&space, blank).await;

        assert_eq!(refused.0, 403);
        let read = expect(200, users.guest.get(&space).await);
        assert_eq!(read["settings"], change["settings"]);
        assert_eq!(refusal(&invalid), (422, "invalid_value".to_owned()));
        assert_eq!(invalid.1["error"]["param"], "settings.quick_replies.0.label");
        users.app.close().await;
    }
}
