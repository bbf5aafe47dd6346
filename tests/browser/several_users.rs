//! A server with several users: Ann's space and its other members.

use serde_json::{Value, json};

use crate::page::{Page, Viewport};
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, id};
use crate::test_server::{SpaceFixture, TestServer, manual};

/// Ann's room with Mina and Rook in it, and Bob, who has a seat there too.
pub struct SeveralUsers {
    pub test_server: TestServer,
    pub room: SpaceFixture,
    pub bob: HttpClient,
    pub space: i64,
    /// Bob's membership.
    pub seat: i64,
}

impl SeveralUsers {
    /// Bob sits there in this role.
    pub async fn with(role: &str) -> SeveralUsers {
        let upstream = FakeProvider::start().await;
        let url = upstream.base_url();
        let env = [
            ("TROUPE_LLM_BASE_URL", url.as_str()),
            ("TROUPE_LLM_MODEL", "scripted"),
            ("TROUPE_OPEN_REGISTRATION", "true"),
        ];
        SeveralUsers::of(TestServer::with(upstream, &env).await, role).await
    }

    /// The same on a server with these settings and open registration.
    pub async fn of(test_server: TestServer, role: &str) -> SeveralUsers {
        let room = test_server.room(manual(), &["Mina", "Rook"]).await;
        let space = room.cast[0]["space_id"].as_i64().expect("a number");
        let (bob, seat) = add_member(&room, space, "bob", role).await;
        SeveralUsers {
            test_server,
            room,
            bob,
            space,
            seat,
        }
    }

    /// One more person, who sits there as a guest.
    pub async fn guest(&self, name: &str) -> HttpClient {
        add_member(&self.room, self.space, name, "guest").await.0
    }

    /// Bob's browser, in the conversation.
    pub async fn bobs_page(&self) -> Page {
        page_of(&self.bob, &self.room.path()).await
    }

    /// Ann changes Bob's seat.
    pub async fn change_bob(&self, change: Value) {
        let path = format!("/api/memberships/{}", self.seat);
        expect(200, self.room.ann.patch(&path, change).await);
    }

    /// One more conversation of the space.
    pub async fn conversation(&self, title: &str) -> i64 {
        let path = format!("/api/spaces/{}/conversations", self.space);
        let body = json!({"title": title});
        id(&expect(201, self.room.ann.post(&path, body).await))
    }
}

/// A person's browser at an address.
pub async fn page_of(person: &HttpClient, path: &str) -> Page {
    let page = Page::open(person.base(), Viewport::Desktop).await;
    page.set_cookie(person.cookie()).await;
    page.go(path).await;
    page.see("#sidebar").await;
    page
}

/// Adds a user with an account as a member of Ann's space; returns the client and the membership
/// id.
async fn add_member(room: &SpaceFixture, space: i64, name: &str, role: &str) -> (HttpClient, i64) {
    let person = HttpClient::register(room.ann.base(), name).await;
    let seat = id(&room.ann.add_member(space, &person, role).await);
    (person, seat)
}
