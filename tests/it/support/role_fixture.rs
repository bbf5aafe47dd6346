//! A space with a client for every role.

use serde_json::{Value, json};

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::TestBackend;
use crate::support::http_client::{HttpClient, expect, id};

/// The clients, in the order of the columns of the rights table.
pub struct RoleFixture {
    pub app: TestApp,
    pub outsider: HttpClient,
    pub guest: HttpClient,
    pub member: HttpClient,
    pub moderator: HttpClient,
    pub owner: HttpClient,
    pub admin: HttpClient,
    /// The owner's space; the admin is not a member.
    pub space: i64,
    /// The space as it was returned at its creation.
    pub document: Value,
}

/// The membership id of each role.
pub struct MemberIds {
    pub owner: i64,
    pub moderator: i64,
    pub member: i64,
    pub guest: i64,
}

impl RoleFixture {
    /// Creates the space and its memberships.
    pub async fn create(backend: TestBackend) -> (RoleFixture, MemberIds) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let admin = app.admin().await;
        let owner = app.register("owner").await;
        let document = owner.create_space("Room", json!({})).await;
        let roles = RoleFixture {
            outsider: app.register("outsider").await,
            guest: app.register("guest").await,
            member: app.register("member").await,
            moderator: app.register("moderator").await,
            space: id(&document),
            app,
            owner,
            admin,
            document,
        };
        let memberships = MemberIds {
            owner: roles.owner_membership().await,
            moderator: roles.add_member(&roles.moderator, "moderator").await,
            member: roles.add_member(&roles.member, "member").await,
            guest: roles.add_member(&roles.guest, "guest").await,
        };
        (roles, memberships)
    }

    async fn owner_membership(&self) -> i64 {
        let memberships = expect(200, self.owner.get(&self.path("/memberships")).await);
        id(&memberships["data"][0])
    }

    /// Adds a user as a member by the owner; returns the membership id.
    pub async fn add_member(&self, person: &HttpClient, role: &str) -> i64 {
        id(&self.owner.add_member(self.space, person, role).await)
    }

    /// Returns a path under the space.
    pub fn path(&self, rest: &str) -> String {
        format!("/api/spaces/{}{rest}", self.space)
    }

    /// Returns every client with the name of its column in the rights table.
    pub fn all_roles(&self) -> [(&'static str, &HttpClient); 6] {
        [
            ("outsider", &self.outsider),
            ("guest", &self.guest),
            ("member", &self.member),
            ("moderator", &self.moderator),
            ("owner", &self.owner),
            ("admin", &self.admin),
        ]
    }
}

/// Returns the id of the signed-in user.
pub async fn user_id(person: &HttpClient) -> i64 {
    let me = expect(200, person.get("/api/session").await);
    id(&me["user"])
}
