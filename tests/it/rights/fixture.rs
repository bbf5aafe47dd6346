//! Creates a space with a resource for every id that a path can contain, and returns the ids.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::rights::roles::{Role, RoleClients};
use crate::support::database_facts::DatabaseFacts;
use crate::support::file_uploads;
use crate::support::http_client::{HttpClient, expect, token_of};

/// The ids of one stage, by the names that the document has for path parameters. A name may be
/// made more exact: `membership_id:own`, `message_id:ai`.
#[derive(Clone, Debug, Default)]
pub struct Ids(HashMap<String, Value>);

impl Ids {
    /// The id under a name. `:own` is the caller's, or the member's for who has none; what a stage
    /// does not have so exactly, it has by the first half of the name.
    pub fn of(&self, name: &str, caller: Role) -> Value {
        let general = name.split(':').next().unwrap_or_default();
        let exact = match name.ends_with(":own") {
            true => [caller.name(), Role::Member.name()].map(|it| format!("{general}:{it}")),
            false => [name.to_owned(), general.to_owned()],
        };
        let found = exact.iter().find_map(|it| self.0.get(it));
        found
            .or_else(|| self.0.get(general))
            .cloned()
            .unwrap_or_else(|| panic!("a stage has no {name}"))
    }

    pub fn insert(&mut self, name: impl Into<String>, id: &Value) {
        assert!(!id.is_null(), "a document without an id");
        self.0.insert(name.into(), id.clone());
    }
}

/// Sets a stage that `owner` owns, with a guest, a member and a moderator, one who was removed, two
/// characters, a conversation in which everybody has spoken, and one that only holds a greeting.
pub async fn create(cast: &RoleClients, owner: Role) -> Ids {
    let host = cast.person(owner);
    let mut ids = Ids::default();
    let space = host
        .create_space("Stage", json!({"reply_order": "list"}))
        .await;
    ids.insert("space_id", &space["id"]);
    ids.insert("conversation_id", &space["root_conversation_id"]);
    create_memberships(cast, owner, &mut ids).await;
    characters(host, &space, &mut ids).await;
    create_messages(cast, owner, &mut ids).await;
    ids.insert("invitation_id", &invitation(cast, owner, &space).await);
    let path = format!("/api/spaces/{}/invites", space["id"]);
    let invite = expect(201, host.post(&path, json!({"role": "guest"})).await);
    ids.insert("invite_id", &invite["id"]);
    ids.insert("token", &invite["token"]);
    let door = format!("/api/spaces/{}/import", space["id"]);
    let line = br#"{"name":"Ada","is_user":false,"mes":"Brought along."}"#;
    let brought = file_uploads::import(host, &door, "evening.jsonl", line).await;
    ids.insert("import_id", &brought["id"]);
    ids.insert("job_id", &brought["id"]);
    let provider = json!({"name": "P", "kind": "demo", "model": "demo"});
    let provider = cast.person(Role::Admin).post("/api/providers", provider);
    ids.insert("provider_id", &expect(201, provider.await)["id"]);
    ids
}

async fn create_memberships(cast: &RoleClients, owner: Role, ids: &mut Ids) {
    let host = cast.person(owner);
    let path = format!("/api/spaces/{}/memberships", ids.of("space_id", owner));
    let roster = expect(200, host.get(&path).await);
    let host_seat = &roster["data"][0]["id"];
    ids.insert(format!("membership_id:{}", owner.name()), host_seat);
    ids.insert("membership_id", host_seat);
    ids.insert("user_id", &cast.user_id(Role::Outsider));
    if owner != Role::Owner {
        // A space of a stranger, without other members.
        return;
    }
    for (who, role) in [
        (Role::Guest, "guest"),
        (Role::Member, "member"),
        (Role::Moderator, "moderator"),
        (Role::Removed, "member"),
    ] {
        let space = ids.of("space_id", owner).as_i64().expect("a numeric id");
        let person = cast.person(who);
        let seat = match who {
            // They share no space with the owner, so each stage would cost an invitation.
            Role::Removed => {
                let invite = host.invite(space, json!({"role": role})).await;
                let joined = person.join(token_of(&invite)).await;
                expect(201, joined)["membership"].clone()
            }
            _ => host.add_member(space, person, role).await,
        };
        ids.insert(format!("membership_id:{}", who.name()), &seat["id"]);
    }
    let removed = ids.of("membership_id:own", Role::Removed);
    expect(
        204,
        host.delete(&format!("/api/memberships/{removed}")).await,
    );
}

async fn characters(host: &HttpClient, space: &Value, ids: &mut Ids) {
    let seated = host.create_character("Ada", None).await;
    ids.insert("character_id", &seated["id"]);
    let seat = host.add_character(space, &seated).await;
    ids.insert("membership_id:character", &seat["id"]);
    let preset = expect(
        201,
        host.post("/api/presets", json!({"name": "Calm"})).await,
    );
    ids.insert("preset_id", &preset["id"]);
    let path = format!("/api/memberships/{}", seat["id"]);
    let goes_by_it = json!({"preset_id": preset["id"]});
    expect(200, host.patch(&path, goes_by_it).await);
    let book = json!({"name": "Lore", "entries": [{"keys": ["rain"], "content": "It rains."}]});
    let book = expect(201, host.post("/api/lorebooks", book).await);
    ids.insert("lorebook_id", &book["id"]);
    ids.insert("lorebook_entry_id", &book["entries"][0]["id"]);
    let spare = host.create_character("Spare", None).await;
    ids.insert("character_id:spare", &spare["id"]);
}

async fn create_messages(cast: &RoleClients, owner: Role, ids: &mut Ids) {
    let conversation = ids.of("conversation_id", owner);
    let speakers = Role::ALL
        .into_iter()
        .filter(|it| *it == owner || (owner == Role::Owner && it.is_seated()));
    for who in speakers {
        let message = post(cast, who, &conversation).await;
        ids.insert(format!("message_id:{}", who.name()), &message["id"]);
        ids.insert("message_id", &message["id"]);
    }
    let host = cast.person(owner);
    let runs = host
        .runs(conversation.as_i64().expect("a numeric id"))
        .await;
    ids.insert("run_id", &runs[0]["id"]);
    ids.insert("round_id", &runs[0]["round_id"]);
    ids.insert(
        "tool_approval_id",
        &create_tool_approval(cast, &conversation).await,
    );
    // A character's greeting is the only AI message that needs no worker.
    let greeter = host.create_character("Greta", Some("Welcome.")).await;
    let space = json!({"id": ids.of("space_id", owner)});
    host.add_character(&space, &greeter).await;
    let path = format!("/api/spaces/{}/conversations", space["id"]);
    let other = expect(201, host.post(&path, json!({"title": "Second"})).await);
    ids.insert("conversation_id:second", &other["id"]);
    let path = format!("/api/conversations/{}/messages", other["id"]);
    let greeted = expect(200, host.get(&path).await);
    ids.insert("message_id:ai", &greeted["data"][0]["id"]);
}

/// The outsider is invited to the owner's space; to the other one a person who does not exist.
async fn invitation(cast: &RoleClients, owner: Role, space: &Value) -> Value {
    let user = match owner {
        Role::Owner => cast.user_id(Role::Outsider),
        _ => json!(987_654_321),
    };
    let (space, by) = (&space["id"], cast.user_id(owner));
    let mut facts = DatabaseFacts::open(&cast.house.database).await;
    facts
        .execute(&format!(
            "INSERT INTO space_invitations (space_id, user_id, role, invited_by, status, \
             created_at, expires_at) VALUES ({space}, {user}, 'guest', {by}, 'pending', 0, \
             9000000000000)"
        ))
        .await;
    let newest = "SELECT CAST(max(id) AS TEXT) FROM space_invitations";
    facts.number(newest).await.into()
}

/// A run of this conversation asks whether it may roll dice.
async fn create_tool_approval(cast: &RoleClients, conversation: &Value) -> Value {
    let mut facts = DatabaseFacts::open(&cast.house.database).await;
    facts
        .execute(&format!(
            "INSERT INTO tool_approvals (conversation_id, conversation_run_id, lease, \
             space_membership_id, tool, arguments, status, created_at) \
             SELECT conversation_id, id, 1, speaker_space_membership_id, 'dice', '{{}}', 'pending', 0 \
             FROM conversation_runs WHERE conversation_id = {conversation} LIMIT 1"
        ))
        .await;
    let newest = "SELECT CAST(max(id) AS TEXT) FROM tool_approvals";
    facts.number(newest).await.into()
}

/// Posts a message as this user and returns it.
pub async fn post(cast: &RoleClients, who: Role, conversation: &Value) -> Value {
    let path = format!("/api/conversations/{conversation}/messages");
    let body = json!({"content": format!("I am the {}.", who.name())});
    let answer = cast.person(who).post(&path, body).await;
    expect(201, answer)["message"].clone()
}

/// Creates what belongs to one user, an API key and a second session; without a session, the
/// member's ids are used.
pub async fn create_resources_of(cast: &RoleClients, who: Role, ids: &mut Ids) {
    let who = match who {
        Role::Nobody => Role::Member,
        other => other,
    };
    let key = cast.person(who).post("/api/api_keys", json!({"name": "k"}));
    let key = expect(201, key.await);
    ids.insert(format!("api_key_id:{}", who.name()), &key["id"]);
    ids.insert("api_key_id", &key["id"]);
    let second = HttpClient::sign_in(cast.person(who).base(), who.name()).await;
    let sessions = expect(200, second.get("/api/sessions").await);
    let sessions = sessions["data"].as_array().expect("a list");
    let present = sessions.iter().find(|it| it["current"] == true);
    let present = present.expect("the browser that asks is in the list");
    ids.insert(format!("session_id:{}", who.name()), &present["id"]);
    ids.insert("session_id", &present["id"]);
}
