//! A server with several users: Ann's space and its other members.

use serde_json::{Value, json};

use crate::page::{Page, Viewport};
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, id};
use crate::test_server::{SpaceFixture, TestServer, manual};

/// Ann's space with the characters Mina and Rook, and Bob as a member.
pub struct SeveralUsers {
    pub test_server: TestServer,
    pub test_space: SpaceFixture,
    pub bob: HttpClient,
    pub space: i64,
    /// Bob's membership.
    pub membership: i64,
}

impl SeveralUsers {
    /// Starts a server whose member Bob has this role.
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
        let test_space = test_server.create_space(manual(), &["Mina", "Rook"]).await;
        let space = test_space.memberships[0]["space_id"]
            .as_i64()
            .expect("the id is a number");
        let (bob, membership) = add_member(&test_space, space, "bob", role).await;
        SeveralUsers {
            test_server,
            test_space,
            bob,
            space,
            membership,
        }
    }

    /// Adds another user as a guest.
    pub async fn guest(&self, name: &str) -> HttpClient {
        add_member(&self.test_space, self.space, name, "guest")
            .await
            .0
    }

    /// Bob's browser, in the conversation.
    pub async fn bobs_page(&self) -> Page {
        page_of(&self.bob, &self.test_space.path()).await
    }

    /// Ann changes Bob's membership.
    pub async fn change_bob(&self, change: Value) {
        let path = format!("/api/memberships/{}", self.membership);
        expect(200, self.test_space.ann.patch(&path, change).await);
    }

    /// Creates another conversation of the space.
    pub async fn conversation(&self, title: &str) -> i64 {
        let path = format!("/api/spaces/{}/conversations", self.space);
        let body = json!({"title": title});
        id(&expect(201, self.test_space.ann.post(&path, body).await))
    }
}

/// Opens a browser of this user at a path.
pub async fn page_of(person: &HttpClient, path: &str) -> Page {
    let page = Page::open(person.base(), Viewport::Desktop).await;
    page.set_cookie(person.cookie()).await;
    page.go(path).await;
    page.see("#sidebar").await;
    page
}

/// Adds a user with an account as a member of Ann's space; returns the client and the membership
/// id.
async fn add_member(
    test_space: &SpaceFixture,
    space: i64,
    name: &str,
    role: &str,
) -> (HttpClient, i64) {
    let person = HttpClient::register(test_space.ann.base(), name).await;
    let membership = id(&test_space.ann.add_member(space, &person, role).await);
    (person, membership)
}
