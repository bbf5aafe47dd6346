//! The rows of the grid: the status that each endpoint returns to each role.
//!
//! The columns are those of [`Role::ALL`]. To add an endpoint, write one row for each case in which
//! other roles are allowed; the statuses are those of a call that is otherwise valid.

use serde_json::{Value, json};

use crate::rights::fixture::Ids;
use crate::rights::roles::Role;
use crate::rights::{table_library, table_lore, table_memories, table_spaces};

/// One endpoint in one case.
pub struct Row {
    /// Method and path, as in the API document.
    pub call: &'static str,
    /// The name of the case; empty when there is only one.
    pub case: &'static str,
    /// The status for each of [`Role::ALL`].
    pub expected: [u16; 9],
    /// The request body; `Null` for none.
    pub body: fn(&Ids, Role) -> Value,
    /// The name of the id for a path parameter, if it differs from the parameter's.
    pub stand_in: Option<(&'static str, &'static str)>,
    pub before: Setup,
    /// Whether each role needs its own space, because a second call in the same space would fail or
    /// change nothing.
    needs_space_per_role: bool,
}

/// What the caller does before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setup {
    Nothing,
    /// Posts a message, so that the tail is the caller's.
    Speaks,
    /// Creates an API key and a second session.
    CreatesKeyAndSession,
    /// Opens a session for this call only, because the call ends it.
    OpensSession,
}

/// The status for a user who may not see the resource.
const HIDDEN: u16 = 404;

/// All roles, signed in or not.
pub const fn open(status: u16) -> [u16; 9] {
    [status; 9]
}

/// All roles that are signed in.
pub const fn signed_in(status: u16) -> [u16; 9] {
    let s = status;
    [401, s, s, s, s, s, s, s, s]
}

/// All roles that see the space.
pub const fn inside(status: u16) -> [u16; 9] {
    let s = status;
    [401, HIDDEN, s, s, s, s, s, HIDDEN, HIDDEN]
}

/// All roles with a membership.
pub const fn with_membership(status: u16) -> [u16; 9] {
    let s = status;
    [401, HIDDEN, s, s, s, s, 403, HIDDEN, HIDDEN]
}

/// Only the user who did it, which is the owner of the space.
pub const fn one_owner(status: u16) -> [u16; 9] {
    [401, 404, 404, 404, 404, status, 404, 404, 404]
}

/// Members and higher roles, and the admin.
pub const fn members(status: u16) -> [u16; 9] {
    let s = status;
    [401, HIDDEN, 403, s, s, s, s, HIDDEN, HIDDEN]
}

/// Moderators, the owner and the admin.
pub const fn managers(status: u16) -> [u16; 9] {
    let s = status;
    [401, HIDDEN, 403, 403, s, s, s, HIDDEN, HIDDEN]
}

/// The owner and the admin.
pub const fn owners(status: u16) -> [u16; 9] {
    let s = status;
    [401, HIDDEN, 403, 403, 403, s, s, HIDDEN, HIDDEN]
}

/// The admin alone; others get 403, because the resource is not secret.
pub const fn admins(status: u16) -> [u16; 9] {
    [401, 403, 403, 403, 403, 403, status, 403, 403]
}

impl Row {
    pub const fn of(call: &'static str, expected: [u16; 9]) -> Row {
        Row {
            call,
            case: "",
            expected,
            body: |_, _| Value::Null,
            stand_in: None,
            before: Setup::Nothing,
            needs_space_per_role: false,
        }
    }

    pub const fn case(mut self, case: &'static str) -> Row {
        self.case = case;
        self
    }

    pub const fn body(mut self, body: fn(&Ids, Role) -> Value) -> Row {
        self.body = body;
        self
    }

    pub const fn with(mut self, parameter: &'static str, id: &'static str) -> Row {
        self.stand_in = Some((parameter, id));
        self
    }

    pub const fn before(mut self, before: Setup) -> Row {
        self.before = before;
        self
    }

    pub const fn with_space_per_role(mut self) -> Row {
        self.needs_space_per_role = true;
        self
    }

    /// Returns whether each role needs a new space.
    pub fn needs_space_per_role(&self) -> bool {
        self.needs_space_per_role || self.method() == "DELETE"
    }

    pub fn method(&self) -> &'static str {
        self.call.split(' ').next().unwrap_or_default()
    }

    fn path(&self) -> &'static str {
        self.call.split(' ').nth(1).unwrap_or_default()
    }

    /// Returns the names of the path parameters.
    pub fn parameters(&self) -> Vec<&'static str> {
        let parts = self.path().split('/');
        let names = parts.filter_map(|it| it.strip_prefix('{')?.strip_suffix('}'));
        names.collect()
    }

    /// Returns the name of the id for a path parameter.
    pub fn id_for(&self, parameter: &'static str) -> &'static str {
        match self.stand_in {
            Some((name, id)) if name == parameter => id,
            _ => parameter,
        }
    }

    /// Returns the path with every parameter replaced.
    pub fn filled(&self, value: impl Fn(&'static str) -> String) -> String {
        self.parameters()
            .into_iter()
            .fold(self.path().to_owned(), |path, name| {
                path.replace(&format!("{{{name}}}"), &value(name))
            })
    }

    pub fn expects(&self, who: Role) -> u16 {
        self.expected[who as usize]
    }

    /// Returns whether this status means that the role may not call the endpoint.
    pub fn is_refusal(status: u16) -> bool {
        matches!(status, 401 | 403 | 404)
    }
}

/// Returns every row.
pub fn rows() -> Vec<Row> {
    let mut rows = people();
    rows.extend(server());
    rows.extend(table_spaces::spaces());
    rows.extend(table_spaces::memberships());
    rows.extend(table_spaces::invites());
    rows.extend(table_library::characters());
    rows.extend(table_library::personas());
    rows.extend(table_library::presets());
    rows.extend(table_lore::lorebooks());
    rows.extend(table_lore::links());
    rows.extend(table_memories::memories());
    rows.extend(table_spaces::conversations());
    rows.extend(table_spaces::messages());
    rows
}

/// Returns an unused username.
fn new_name() -> String {
    let id = uuid::Uuid::new_v4().simple().to_string();
    format!("new-{}", &id[..20])
}

fn people() -> Vec<Row> {
    vec![
        Row::of("GET /api/setup", open(200)),
        Row::of("POST /api/setup", open(409)).body(
            |_, _| json!({"username": "late", "password": "12345678", "display_name": "Late"}),
        ),
        Row::of("POST /api/session", open(401))
            .body(|_, _| json!({"username": "owner", "password": "a guess"})),
        Row::of("GET /api/session", signed_in(200)),
        Row::of("DELETE /api/session", signed_in(204)).before(Setup::OpensSession),
        Row::of("GET /api/sessions", signed_in(200)),
        Row::of("DELETE /api/sessions/{session_id}", signed_in(204))
            .with("session_id", "session_id:own")
            .before(Setup::CreatesKeyAndSession),
        Row::of("POST /api/users", open(201)).body(
            |_, _| json!({"username": new_name(), "password": "12345678", "display_name": "New"}),
        ),
        Row::of("PATCH /api/users/me", signed_in(200)).body(|_, _| json!({"locale": "en"})),
        Row::of("GET /api/api_keys", signed_in(200)),
        Row::of("POST /api/api_keys", signed_in(201)).body(|_, _| json!({"name": "k"})),
        Row::of("DELETE /api/api_keys/{api_key_id}", signed_in(204))
            .with("api_key_id", "api_key_id:own")
            .before(Setup::CreatesKeyAndSession),
    ]
}

fn server() -> Vec<Row> {
    vec![
        Row::of("GET /healthz", open(200)),
        Row::of("GET /readyz", open(200)),
        Row::of("GET /api/providers", signed_in(200)),
        Row::of("POST /api/providers", admins(201))
            .body(|_, _| json!({"name": "New", "kind": "demo", "model": "demo"})),
        Row::of("PATCH /api/providers/{provider_id}", admins(200))
            .body(|_, _| json!({"name": "Renamed"})),
        Row::of("DELETE /api/providers/{provider_id}", admins(204)),
        Row::of("POST /api/providers/{provider_id}/test", admins(200)),
        Row::of("GET /api/providers/{provider_id}/models", admins(200)),
        Row::of("POST /api/providers/discover", admins(200)),
        Row::of("POST /api/admin/reap", admins(200)),
        Row::of("GET /api/admin/runs", admins(200)),
        Row::of("GET /api/admin/stats", admins(200)),
        Row::of("GET /api/admin/users", admins(200)),
        Row::of("GET /api/admin/users/{user_id}", admins(200)),
        Row::of("PATCH /api/admin/users/{user_id}", admins(200))
            .body(|_, _| json!({"display_name": "Renamed"})),
        // Metrics are readable from this machine, because they name no user.
        Row::of("GET /metrics", open(200)),
        Row::of("GET /openapi.json", open(200)),
    ]
}
