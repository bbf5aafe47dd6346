//! Creates a space with a resource for every id that a path can contain, and returns the ids.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::rights::roles::{Role, RoleClients};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, token_of};
use crate::support::{file_uploads, pictures};

/// The ids of one space, by the names of the path parameters in the API document. A name may have a
/// suffix: `membership_id:own`, `message_id:ai`.
#[derive(Clone, Debug, Default)]
pub struct Ids(HashMap<String, Value>);

impl Ids {
    /// Returns the id of a name. `:own` is the caller's, or the member's if the caller has none.
    /// Without an id for the full name, the name without its suffix is used.
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
            .unwrap_or_else(|| panic!("the space has no {name}"))
    }

    pub fn insert(&mut self, name: impl Into<String>, id: &Value) {
        assert!(!id.is_null(), "the document has no id");
        self.0.insert(name.into(), id.clone());
    }
}

/// Creates a space of `owner` with a guest, a member, a moderator, a removed member, two
/// characters, a conversation with a message of every member, and one with only a greeting.
pub async fn create(clients: &RoleClients, owner: Role) -> Ids {
    let client = clients.person(owner);
    let mut ids = Ids::default();
    let space = client
        .create_space("Stage", json!({"reply_order": "list"}))
        .await;
    ids.insert("space_id", &space["id"]);
    ids.insert("conversation_id", &space["root_conversation_id"]);
    ids.insert("emoji", &json!("%F0%9F%91%8D"));
    create_memberships(clients, owner, &mut ids).await;
    characters(client, &space, &mut ids).await;
    create_messages(clients, owner, &mut ids).await;
    ids.insert("invitation_id", &invitation(clients, owner, &space).await);
    let path = format!("/api/spaces/{}/invites", space["id"]);
    let invite = expect(201, client.post(&path, json!({"role": "guest"})).await);
    ids.insert("invite_id", &invite["id"]);
    ids.insert("token", &invite["token"]);
    let path = format!("/api/spaces/{}/memories", space["id"]);
    let memory = json!({"content": "The mill burned down.", "kind": "event"});
    ids.insert(
        "memory_id",
        &expect(201, client.post(&path, memory).await)["id"],
    );
    ids.insert(
        "summary_id",
        &create_summary(clients, &ids.of("conversation_id", owner)).await,
    );
    let path = format!("/api/spaces/{}/import", space["id"]);
    let line = br#"{"name":"Ada","is_user":false,"mes":"Brought along."}"#;
    let imported = file_uploads::import(client, &path, "evening.jsonl", line).await;
    ids.insert("import_id", &imported["id"]);
    ids.insert("job_id", &imported["id"]);
    let provider = json!({"name": "P", "kind": "demo", "model": "demo"});
    let provider = clients.person(Role::Admin).post("/api/providers", provider);
    ids.insert("provider_id", &expect(201, provider.await)["id"]);
    ids
}

async fn create_memberships(clients: &RoleClients, owner: Role, ids: &mut Ids) {
    let client = clients.person(owner);
    let path = format!("/api/spaces/{}/memberships", ids.of("space_id", owner));
    let roster = expect(200, client.get(&path).await);
    let owner_membership = &roster["data"][0]["id"];
    ids.insert(format!("membership_id:{}", owner.name()), owner_membership);
    ids.insert("membership_id", owner_membership);
    ids.insert("user_id", &clients.user_id(Role::Outsider));
    if owner != Role::Owner {
        // The space of another user, without other members.
        return;
    }
    for (who, role) in [
        (Role::Guest, "guest"),
        (Role::Member, "member"),
        (Role::Moderator, "moderator"),
        (Role::Removed, "member"),
    ] {
        let space = ids.of("space_id", owner).as_i64().expect("a numeric id");
        let person = clients.person(who);
        let membership = match who {
            // Shares no space with the owner, so `add_member` would need an invitation.
            Role::Removed => {
                let invite = client.invite(space, json!({"role": role})).await;
                let joined = person.join(token_of(&invite)).await;
                expect(201, joined)["membership"].clone()
            }
            _ => client.add_member(space, person, role).await,
        };
        ids.insert(format!("membership_id:{}", who.name()), &membership["id"]);
    }
    let removed = ids.of("membership_id:own", Role::Removed);
    expect(
        204,
        client.delete(&format!("/api/memberships/{removed}")).await,
    );
}

/// Creates a persona. The grid creates more spaces than a person may have personas, so the oldest one is
/// deleted when there are many, but not the first: most cases share the first space.
async fn persona(client: &HttpClient, space: &Value) -> Value {
    let all = expect(200, client.get("/api/personas?limit=200").await);
    let mut ids: Vec<_> = (all["data"].as_array().expect("a list").iter())
        .filter_map(|it| it["id"].as_i64())
        .collect();
    ids.sort_unstable();
    if ids.len() > 100 {
        let oldest = ids[1];
        let deleted = client.delete(&format!("/api/personas/{oldest}")).await;
        expect(204, deleted);
    }
    let name = format!("Captain of {}", space["id"]);
    expect(
        201,
        client.post("/api/personas", json!({"name": name})).await,
    )
}

async fn characters(client: &HttpClient, space: &Value, ids: &mut Ids) {
    let character = client.create_character("Ada", None).await;
    ids.insert("character_id", &character["id"]);
    let membership = client.add_character(space, &character).await;
    ids.insert("membership_id:character", &membership["id"]);
    let preset = expect(
        201,
        client.post("/api/presets", json!({"name": "Calm"})).await,
    );
    ids.insert("preset_id", &preset["id"]);
    ids.insert("persona_id", &persona(client, space).await["id"]);
    let path = format!("/api/memberships/{}", membership["id"]);
    let change = json!({"preset_id": preset["id"]});
    expect(200, client.patch(&path, change).await);
    let lorebook = json!({"name": "Lore", "entries": [{"keys": ["rain"], "content": "It rains."}]});
    let lorebook = expect(201, client.post("/api/lorebooks", lorebook).await);
    ids.insert("lorebook_id", &lorebook["id"]);
    ids.insert("lorebook_entry_id", &lorebook["entries"][0]["id"]);
    let spare = client.create_character("Spare", None).await;
    ids.insert("character_id:spare", &spare["id"]);
}

async fn create_messages(clients: &RoleClients, owner: Role, ids: &mut Ids) {
    let conversation = ids.of("conversation_id", owner);
    let speakers = Role::ALL
        .into_iter()
        .filter(|it| *it == owner || (owner == Role::Owner && it.has_membership()));
    for who in speakers {
        let message = post(clients, who, &conversation).await;
        ids.insert(format!("message_id:{}", who.name()), &message["id"]);
        ids.insert("message_id", &message["id"]);
    }
    let author = match owner {
        Role::Owner => Role::Member,
        other => other,
    };
    ids.insert(
        "attachment_id",
        &post_picture(clients.person(author), &conversation).await,
    );
    let client = clients.person(owner);
    let runs = client
        .runs(conversation.as_i64().expect("a numeric id"))
        .await;
    ids.insert("run_id", &runs[0]["id"]);
    ids.insert("round_id", &runs[0]["round_id"]);
    ids.insert(
        "tool_approval_id",
        &create_tool_approval(clients, &conversation).await,
    );
    // A character's greeting is the only AI message that needs no worker.
    let greeter = client.create_character("Greta", Some("Welcome.")).await;
    let space = json!({"id": ids.of("space_id", owner)});
    client.add_character(&space, &greeter).await;
    let path = format!("/api/spaces/{}/conversations", space["id"]);
    let other = expect(201, client.post(&path, json!({"title": "Second"})).await);
    ids.insert("conversation_id:second", &other["id"]);
    let path = format!("/api/conversations/{}/messages", other["id"]);
    let messages = expect(200, client.get(&path).await);
    ids.insert("message_id:ai", &messages["data"][0]["id"]);
    let path = format!("/api/spaces/{}/conversations", space["id"]);
    let third = expect(201, client.post(&path, json!({"title": "Third"})).await);
    let translated = post(clients, owner, &third["id"]).await;
    create_translation(clients, &translated["id"]).await;
    ids.insert("message_id:translated", &translated["id"]);
}

/// Inserts a translation into the language of all accounts, which otherwise a model makes.
async fn create_translation(clients: &RoleClients, message: &Value) {
    let mut facts = DatabaseFacts::open(&clients.app.database).await;
    facts
        .execute(&format!(
            "INSERT INTO message_translations (message_id, version, language, text, heartbeat_at, \
             created_at) VALUES ({message}, 1, 'en', 'Hello.', 0, 0)"
        ))
        .await;
}

/// Posts a message with a picture, and returns the id of the picture.
async fn post_picture(author: &HttpClient, conversation: &Value) -> Value {
    let picture = pictures::uploaded(author, 1, "").await;
    let conversation = conversation.as_i64().expect("a numeric id");
    let posted = pictures::post(author, conversation, "Look.", &[&picture]).await;
    expect(201, posted)["message"]["attachments"][0]["id"].clone()
}

/// Inserts a summary, which otherwise a model writes in the background.
async fn create_summary(clients: &RoleClients, conversation: &Value) -> Value {
    let mut facts = DatabaseFacts::open(&clients.app.database).await;
    facts
        .execute(&format!(
            "INSERT INTO conversation_summaries (conversation_id, level, version, from_seq, to_seq, \
             content, token_count, created_at) VALUES ({conversation}, 1, 1, 1, 2, 'They met.', 3, 0)"
        ))
        .await;
    let newest = "SELECT CAST(max(id) AS TEXT) FROM conversation_summaries";
    facts.number(newest).await.into()
}

/// Invites the outsider to the owner's space, and a user that does not exist to another space.
async fn invitation(clients: &RoleClients, owner: Role, space: &Value) -> Value {
    let user = match owner {
        Role::Owner => clients.user_id(Role::Outsider),
        _ => json!(987_654_321),
    };
    let (space, by) = (&space["id"], clients.user_id(owner));
    let mut facts = DatabaseFacts::open(&clients.app.database).await;
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

/// Creates a pending approval for a tool call of a run of this conversation.
async fn create_tool_approval(clients: &RoleClients, conversation: &Value) -> Value {
    let mut facts = DatabaseFacts::open(&clients.app.database).await;
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
pub async fn post(clients: &RoleClients, who: Role, conversation: &Value) -> Value {
    let path = format!("/api/conversations/{conversation}/messages");
    let body = json!({"content": format!("I am the {}.", who.name())});
    let answer = clients.person(who).post(&path, body).await;
    expect(201, answer)["message"].clone()
}

/// Creates an API key and a second session of this user, or of the member if the role is not signed
/// in.
pub async fn create_resources_of(clients: &RoleClients, who: Role, ids: &mut Ids) {
    let who = match who {
        Role::SignedOut => Role::Member,
        other => other,
    };
    let key = clients
        .person(who)
        .post("/api/api_keys", json!({"name": "k"}));
    let key = expect(201, key.await);
    ids.insert(format!("api_key_id:{}", who.name()), &key["id"]);
    ids.insert("api_key_id", &key["id"]);
    let second = HttpClient::sign_in(clients.person(who).base(), who.name()).await;
    let sessions = expect(200, second.get("/api/sessions").await);
    let sessions = sessions["data"].as_array().expect("a list");
    let present = sessions.iter().find(|it| it["current"] == true);
    let present = present.expect("the current session is in the list");
    ids.insert(format!("session_id:{}", who.name()), &present["id"]);
    ids.insert("session_id", &present["id"]);
}
