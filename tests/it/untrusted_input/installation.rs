//! The server that the tests attack: a resource for every path, an API key with access to every
//! endpoint, and resources of another user that must be unchanged at the end.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use troupe::app::App;
use troupe::server::endpoints;
use troupe::web::openapi::endpoint::ApiEndpoint;

use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::database_facts::{DatabaseFacts, TextRow, word};
use crate::support::http_client::{HttpClient, expect, root_of};

/// Without workers and without rate limits: a refusal depends only on the request.
pub const SETTINGS: &[(&str, &str)] = &[
    ("TROUPE_OPEN_REGISTRATION", "true"),
    ("TROUPE_WORKERS", "0"),
    ("SQLITE_SYNCHRONOUS", "normal"),
    ("LIMIT_LOGIN_FAILURES", "0"),
    ("LIMIT_POSTS_PER_MINUTE", "0"),
    ("LIMIT_REGISTRATIONS_PER_HOUR", "0"),
    ("LIMIT_SOCKETS_PER_USER", "0"),
];

/// The resources of a user who is no member of the space.
const CANARIES: [&str; 9] = [
    "SELECT username, display_name, password_hash, role, status FROM users WHERE username = 'canary'",
    "SELECT name, description, status, CAST(owner_id AS TEXT) FROM spaces WHERE name = 'Canary room'",
    "SELECT cached_display_name, role, persona FROM space_memberships WHERE cached_display_name = 'canary'",
    "SELECT name, CAST(card AS TEXT), content_hash FROM characters WHERE name = 'Canary bird'",
    "SELECT content, visibility, CAST(seq AS TEXT) FROM messages WHERE content = 'The canary sings.'",
    "SELECT name, key_hash, prefix FROM api_keys WHERE name = 'canary key'",
    "SELECT name, CAST(document AS TEXT), status FROM presets WHERE name = 'Canary preset'",
    "SELECT name, CAST(document AS TEXT), CAST(owner_id AS TEXT) FROM lorebooks WHERE name = 'Canary lore'",
    "SELECT CAST(document AS TEXT), CAST(position AS TEXT) FROM lorebook_entries WHERE CAST(document AS TEXT) LIKE '%canary%'",
];

/// A server with the resources that the attacks need.
pub struct Installation {
    pub app: TestApp,
    /// The attacker: the admin, who has every permission.
    pub admin: HttpClient,
    /// The admin's API key, which no change of the account revokes, unlike a session.
    pub key: String,
    before: State,
}

/// The part of the database that an attack must not change.
struct State {
    rows_of: BTreeMap<String, i64>,
    canaries: Vec<Vec<TextRow>>,
}

impl Installation {
    /// Starts the server and creates the resources.
    pub async fn open(backend: TestBackend) -> Installation {
        Installation::open_changed(backend, |_| {}).await
    }

    /// Like `open`, with a change of the app before the server listens.
    pub async fn open_changed(backend: TestBackend, change: impl FnOnce(&mut App)) -> Installation {
        let app = TestApp::start_changed(backend, SETTINGS, change).await;
        let admin = app.admin().await;
        let key = expect(
            201,
            admin.post("/api/api_keys", json!({"name": "key"})).await,
        );
        plant_canaries(&app).await;
        // Created last, because paths contain the newest ids, which must be the attacker's.
        app.register("mark").await;
        let space = admin.create_space("Arena", json!({})).await;
        let fighter = admin.create_character("Fighter", Some("Hello.")).await;
        admin.add_character(&space, &fighter).await;
        let preset = json!({"name": "Fierce"});
        expect(201, admin.post("/api/presets", preset).await);
        expect(201, admin.post("/api/lorebooks", lorebook()).await);
        let posted = admin.post_message(root_of(&space), "En garde!", None).await;
        assert_eq!(posted.0, 201, "{}", posted.1);
        let key = key["key"]
            .as_str()
            .expect("the response has no key")
            .to_owned();
        let before = State::of(&mut DatabaseFacts::open(&app.database).await).await;
        Installation {
            app,
            admin,
            key,
            before,
        }
    }

    /// The path of an endpoint, with the ids of existing resources; for an endpoint that deletes,
    /// with an id that does not exist.
    pub async fn address(&self, endpoint: &ApiEndpoint) -> String {
        let mut facts = self.facts().await;
        let is_deletion = endpoint.method() == "DELETE";
        let mut parts = Vec::new();
        for part in endpoint.path().split('/') {
            parts.push(match parameter(part) {
                None => part.to_owned(),
                Some(_) if is_deletion => "7777777".to_owned(),
                Some(name) => newest(&mut facts, name).await,
            });
        }
        parts.join("/")
    }

    /// Opens a new connection to the database.
    pub async fn facts(&self) -> DatabaseFacts {
        DatabaseFacts::open(&self.app.database).await
    }

    /// The bytes of a request of the attacker.
    pub fn request(&self, method: &str, target: &str, headers: &str, body: &[u8]) -> Vec<u8> {
        let host = self.app.base.trim_start_matches("http://");
        let mut request = format!(
            "{method} {target} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\n{headers}",
            self.key
        )
        .into_bytes();
        if !body.is_empty() {
            request.extend(format!("content-length: {}\r\n", body.len()).bytes());
        }
        request.extend(b"\r\n");
        request.extend(body);
        request
    }

    /// Like `request`, with a JSON body.
    pub fn request_with(&self, method: &str, target: &str, body: &str) -> Vec<u8> {
        let headers = "content-type: application/json\r\n";
        self.request(method, target, headers, body.as_bytes())
    }

    /// Checks that nothing is lost and the other user's resources are unchanged, then closes the
    /// server.
    pub async fn close_unharmed(self) {
        let mut facts = self.facts().await;
        let now = State::of(&mut facts).await;
        let before = &self.before;
        let tables: Vec<_> = now.rows_of.keys().collect();
        assert_eq!(tables, before.rows_of.keys().collect::<Vec<_>>());
        for (table, n_rows) in &before.rows_of {
            let n_now = now.rows_of[table];
            assert!(
                n_now >= *n_rows,
                "{table} had {n_rows} rows and now has {n_now}"
            );
        }
        assert_eq!(now.canaries, before.canaries);
        drop(facts);
        self.app.close().await;
    }
}

impl State {
    async fn of(facts: &mut DatabaseFacts) -> State {
        let mut rows_of = BTreeMap::new();
        for (table, _) in columns(facts).await {
            let sql = format!("SELECT CAST(count(*) AS TEXT) FROM {table}");
            rows_of.insert(table, facts.number(&sql).await);
        }
        let mut canaries = Vec::new();
        for sql in CANARIES {
            let rows = facts.rows(sql).await;
            assert_eq!(rows.len(), 1, "{sql}");
            canaries.push(rows);
        }
        State { rows_of, canaries }
    }
}

/// A lorebook with one entry.
pub fn lorebook() -> Value {
    json!({"name": "Ruins", "entries": [{"keys": ["arena"], "content": "Sand."}]})
}

async fn plant_canaries(app: &TestApp) {
    let canary = app.register("canary").await;
    let space = canary.create_space("Canary room", json!({})).await;
    canary.create_character("Canary bird", None).await;
    let posted = canary.post_message(root_of(&space), "The canary sings.", None);
    assert_eq!(posted.await.0, 201);
    let preset = json!({"name": "Canary preset", "document": {"temperature": 0.5}});
    expect(201, canary.post("/api/presets", preset).await);
    let lorebook =
        json!({"name": "Canary lore", "entries": [{"keys": ["canary"], "content": "It sings."}]});
    expect(201, canary.post("/api/lorebooks", lorebook).await);
    let key = json!({"name": "canary key"});
    expect(201, canary.post("/api/api_keys", key).await);
}

pub fn all_endpoints() -> Vec<ApiEndpoint> {
    let all = endpoints::all();
    [all.api, all.open].concat()
}

/// Every table with its columns, from the schema of the database. The tables of SQLite's search
/// index are left out, because SQLite merges their rows at any time.
pub async fn columns(facts: &mut DatabaseFacts) -> BTreeMap<String, Vec<String>> {
    let sql = match facts {
        DatabaseFacts::Sqlite(_) => {
            "SELECT t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name) c \
             WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite%'"
        }
        DatabaseFacts::Postgres(_) => {
            "SELECT CAST(table_name AS TEXT), CAST(column_name AS TEXT) \
             FROM information_schema.columns WHERE table_schema = 'public'"
        }
    };
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in facts.rows(sql).await {
        tables.entry(word(&row[0])).or_default().push(word(&row[1]));
    }
    tables
}

/// The parameter name of a path segment, if the segment is a parameter.
pub fn parameter(part: &str) -> Option<&str> {
    let inside = part.strip_prefix('{')?.strip_suffix('}')?;
    Some(inside.split(':').next().unwrap_or(inside))
}

/// The newest id for a path parameter: `membership_id` is an id of the table whose name ends with
/// `memberships`. A parameter without a table gets any word.
async fn newest(facts: &mut DatabaseFacts, parameter: &str) -> String {
    let kind = parameter.trim_end_matches("_id");
    let plural = match kind.strip_suffix('y') {
        Some(stem) if !kind.ends_with("ey") => format!("{stem}ies"),
        _ => format!("{kind}s"),
    };
    let tables = columns(facts).await;
    let is_of_kind = |it: &&String| **it == plural || it.ends_with(&format!("_{plural}"));
    let Some(table) = tables.keys().find(is_of_kind) else {
        return "corpus".to_owned();
    };
    let id = match facts {
        DatabaseFacts::Sqlite(_) => {
            "CASE typeof(id) WHEN 'blob' THEN lower(hex(id)) ELSE CAST(id AS TEXT) END"
        }
        DatabaseFacts::Postgres(_) => "CAST(id AS TEXT)",
    };
    // The oldest provider is the one that needs no network.
    let order = if plural == "providers" { "ASC" } else { "DESC" };
    let sql = format!("SELECT {id} FROM {table} ORDER BY {table}.id {order} LIMIT 1");
    let rows = facts.rows(&sql).await;
    rows.first().map_or("1".to_owned(), |row| word(&row[0]))
}
