//! A space, and a client for every role in relation to it.

use serde_json::{Value, json};

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::TestBackend;
use crate::support::http_client::{HttpClient, expect, id};

/// Everybody, in the order of the table of rights.
pub struct RoleFixture {
    pub app: TestApp,
    pub outsider: HttpClient,
    pub guest: HttpClient,
    pub member: HttpClient,
    pub moderator: HttpClient,
    pub owner: HttpClient,
    pub admin: HttpClient,
    /// The owner's space; the admin has no seat in it.
    pub space: i64,
    /// The document of the space as it was made.
    pub document: Value,
}

/// A seat by who sits there.
pub struct MemberIds {
    pub owner: i64,
    pub moderator: i64,
    pub member: i64,
    pub guest: i64,
}

impl RoleFixture {
    /// Opens the space and seats everybody.
    pub async fn create(backend: TestBackend) -> (RoleFixture, MemberIds) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let admin = app.admin().await;
        let owner = app.register("owner").await;
        let document = owner.create_space("Room", json!({})).await;
        let cast = RoleFixture {
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
        let seats = MemberIds {
            owner: cast.owner_membership().await,
            moderator: cast.add_member(&cast.moderator, "moderator").await,
            member: cast.add_member(&cast.member, "member").await,
            guest: cast.add_member(&cast.guest, "guest").await,
        };
        (cast, seats)
    }

    async fn owner_membership(&self) -> i64 {
        let seats = expect(200, self.owner.get(&self.path("/memberships")).await);
        id(&seats["data"][0])
    }

    /// Makes a person a member: they accept the owner's invitation.
    pub async fn add_member(&self, person: &HttpClient, role: &str) -> i64 {
        id(&self.owner.add_member(self.space, person, role).await)
    }

    /// An address under the space.
    pub fn path(&self, rest: &str) -> String {
        format!("/api/spaces/{}{rest}", self.space)
    }

    /// Everybody with the name of their column in the table of rights.
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

/// The id of a user.
pub async fn user_id(person: &HttpClient) -> i64 {
    let me = expect(200, person.get("/api/session").await);
    id(&me["user"])
}
