//! One space, and somebody in every role around it.

use serde_json::Value;
use serde_json::json;

use crate::support::app::OPEN;
use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::person::Person;
use crate::support::person::expect;
use crate::support::person::id;

/// Everybody, in the order of the table of rights.
pub struct Cast {
    pub app: TestApp,
    pub outsider: Person,
    pub guest: Person,
    pub member: Person,
    pub moderator: Person,
    pub owner: Person,
    pub admin: Person,
    /// The owner's space; the admin has no seat in it.
    pub space: i64,
    /// The document of the space as it was made.
    pub document: Value,
}

/// A seat by who sits there.
pub struct Seats {
    pub owner: i64,
    pub moderator: i64,
    pub member: i64,
    pub guest: i64,
}

impl Cast {
    /// Opens the space and seats everybody.
    pub async fn meet(backend: TestBackend) -> (Cast, Seats) {
        let app = TestApp::start_with(backend, OPEN).await;
        let admin = app.admin().await;
        let owner = app.person("owner").await;
        let document = owner.create_space("Room", json!({})).await;
        let cast = Cast {
            outsider: app.person("outsider").await,
            guest: app.person("guest").await,
            member: app.person("member").await,
            moderator: app.person("moderator").await,
            space: id(&document),
            app,
            owner,
            admin,
            document,
        };
        let seats = Seats {
            owner: cast.first_seat().await,
            moderator: cast.seat(&cast.moderator, "moderator").await,
            member: cast.seat(&cast.member, "member").await,
            guest: cast.seat(&cast.guest, "guest").await,
        };
        (cast, seats)
    }

    async fn first_seat(&self) -> i64 {
        let seats = expect(200, self.owner.get(&self.path("/memberships")).await);
        id(&seats["data"][0])
    }

    /// Makes a person a member: they accept the owner's invitation.
    pub async fn seat(&self, person: &Person, role: &str) -> i64 {
        id(&self.owner.add_member(self.space, person, role).await)
    }

    /// An address under the space.
    pub fn path(&self, rest: &str) -> String {
        format!("/api/spaces/{}{rest}", self.space)
    }

    /// Everybody with the name of their column in the table of rights.
    pub fn everybody(&self) -> [(&'static str, &Person); 6] {
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

/// Who somebody is.
pub async fn user_id(person: &Person) -> i64 {
    let me = expect(200, person.get("/api/session").await);
    id(&me["user"])
}
