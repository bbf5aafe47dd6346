//! Starts a server and its fake provider, and opens browsers.

use serde_json::{Value, json};

use crate::page::{Page, Viewport};
use crate::support::backends::{TestBackend, TestDatabase, migrated_database};
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, root_of};
use crate::support::process::Server;

/// The server of one test, with its database and fake provider.
pub struct TestServer {
    pub server: Server,
    /// The fake provider, if this server has one.
    pub upstream: FakeProvider,
    database: TestDatabase,
}

/// A space with its characters, and its owner.
pub struct SpaceFixture {
    pub ann: HttpClient,
    pub conversation: i64,
    /// The memberships of the characters, in order.
    pub memberships: Vec<Value>,
}

impl TestServer {
    /// Starts a server that uses the fake provider of the test.
    pub async fn open() -> TestServer {
        let upstream = FakeProvider::start().await;
        let url = upstream.base_url();
        TestServer::with(
            upstream,
            &[
                ("TROUPE_LLM_BASE_URL", url.as_str()),
                ("TROUPE_LLM_MODEL", "scripted"),
            ],
        )
        .await
    }

    /// Starts a server that uses only the built-in demo model.
    pub async fn demo() -> TestServer {
        TestServer::with(FakeProvider::start().await, &[]).await
    }

    /// Starts a server with these settings.
    pub async fn with(upstream: FakeProvider, env: &[(&str, &str)]) -> TestServer {
        TestServer::on(TestBackend::Sqlite, upstream, env).await
    }

    /// Starts a server with these settings on this kind of database.
    pub async fn on(
        backend: TestBackend,
        upstream: FakeProvider,
        env: &[(&str, &str)],
    ) -> TestServer {
        let database = migrated_database(&backend).await;
        let server = Server::start(&database, env).await;
        TestServer {
            server,
            upstream,
            database,
        }
    }

    /// One more server on the same database.
    pub async fn another_node(&self, env: &[(&str, &str)]) -> Server {
        Server::start(&self.database, env).await
    }

    /// Opens a connection to the database of the server.
    pub async fn facts(&self) -> DatabaseFacts {
        DatabaseFacts::open(&self.database).await
    }

    /// Opens a browser that is not signed in.
    pub async fn visitor(&self) -> Page {
        Page::open(&self.server.url(), Viewport::Desktop).await
    }

    /// Creates a space of Ann with these columns and, in order, these characters.
    pub async fn create_space(&self, columns: Value, names: &[&str]) -> SpaceFixture {
        let ann = HttpClient::set_up(&self.server.url(), "ann").await;
        let space = ann.create_space("Harbor Lights", columns).await;
        let mut memberships = Vec::new();
        for name in names {
            let character = ann.create_character(name, None).await;
            memberships.push(ann.add_character(&space, &character).await);
        }
        let conversation = root_of(&space);
        SpaceFixture {
            ann,
            conversation,
            memberships,
        }
    }
}

impl SpaceFixture {
    /// Ann's browser, in the conversation.
    pub async fn page(&self) -> Page {
        self.page_on(Viewport::Desktop).await
    }

    /// Ann's browser on a screen of another size.
    pub async fn page_on(&self, screen: Viewport) -> Page {
        let page = Page::open(self.ann.base(), screen).await;
        page.set_cookie(self.ann.cookie()).await;
        page.go(&self.path()).await;
        page.see(".composer__field").await;
        page.truth(
            "the conversation is shown",
            "document.querySelector('.intro') !== null || document.querySelector('.message') !== null",
        )
        .await;
        page
    }

    /// The address of the conversation in the client.
    pub fn path(&self) -> String {
        format!("/c/{}", self.conversation)
    }

    /// Returns the texts of the stored messages.
    pub async fn texts(&self) -> Vec<String> {
        let messages = self.ann.messages(self.conversation).await;
        messages
            .iter()
            .map(|it| it["content"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Posts a message of Ann without a browser.
    pub async fn post(&self, text: &str) {
        let answer = self.ann.post_message(self.conversation, text, None).await;
        expect(201, answer);
    }
}

/// Sets the reply order to manual, so that no member answers by itself.
pub fn manual() -> Value {
    json!({"reply_order": "manual"})
}

/// Sets the reply order to list: all characters answer in order.
pub fn list() -> Value {
    json!({"reply_order": "list"})
}
