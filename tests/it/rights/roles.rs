//! The roles of the rights grid: every relation of a caller to a space.

use serde_json::Value;

use crate::support::app::TestApp;
use crate::support::http_client::HttpClient;

/// A user's relation to the space of the test, in the order of the table's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    SignedOut,
    /// Has an account, and no membership.
    Outsider,
    Guest,
    Member,
    Moderator,
    Owner,
    /// Is an admin of the server, and has no membership.
    Admin,
    /// Was a member until removed.
    Removed,
    /// Owns another space.
    Elsewhere,
}

impl Role {
    pub const ALL: [Role; 9] = [
        Role::SignedOut,
        Role::Outsider,
        Role::Guest,
        Role::Member,
        Role::Moderator,
        Role::Owner,
        Role::Admin,
        Role::Removed,
        Role::Elsewhere,
    ];

    /// The name of the account.
    pub fn name(self) -> &'static str {
        match self {
            Role::SignedOut => "nobody",
            Role::Outsider => "outsider",
            Role::Guest => "guest",
            Role::Member => "member",
            Role::Moderator => "moderator",
            Role::Owner => "owner",
            Role::Admin => "admin",
            Role::Removed => "removed",
            Role::Elsewhere => "elsewhere",
        }
    }

    /// Returns whether the role has an active membership in the space of the test.
    pub fn has_membership(self) -> bool {
        matches!(
            self,
            Role::Guest | Role::Member | Role::Moderator | Role::Owner
        )
    }
}

/// A server, and a client for each role.
pub struct RoleClients {
    pub app: TestApp,
    people: Vec<HttpClient>,
    ids: Vec<i64>,
}

impl RoleClients {
    /// Creates and signs in a user for every role.
    pub async fn create(app: TestApp) -> RoleClients {
        let base = app.base.clone();
        let mut people = Vec::new();
        let mut ids = Vec::new();
        let admin = HttpClient::set_up(&base, Role::Admin.name()).await;
        for who in Role::ALL {
            let person = match who {
                Role::SignedOut => HttpClient::new(&base),
                Role::Admin => admin.clone(),
                other => HttpClient::register(&base, other.name()).await,
            };
            let (_, session) = person.get("/api/session").await;
            ids.push(session["user"]["id"].as_i64().unwrap_or_default());
            people.push(person);
        }
        RoleClients { app, people, ids }
    }

    pub fn person(&self, who: Role) -> &HttpClient {
        &self.people[who as usize]
    }

    pub fn user_id(&self, who: Role) -> Value {
        self.ids[who as usize].into()
    }
}
