//! Fixture of the admin tests: a server with its admin, open registration and a scripted provider.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::poll;

/// The server of an admin test, with its admin.
pub struct AdminFixture {
    pub app: TestApp,
    pub admin: HttpClient,
    pub upstream: FakeProvider,
}

/// A space with one character in it.
pub struct OwnedSpace {
    pub space: i64,
    pub conversation: i64,
}

impl AdminFixture {
    pub async fn open(backend: TestBackend) -> AdminFixture {
        AdminFixture::open_with(backend, &[]).await
    }

    /// Opens the fixture with additional settings.
    pub async fn open_with(backend: TestBackend, env: &[(&str, &str)]) -> AdminFixture {
        let upstream = FakeProvider::start().await;
        let url = upstream.base_url();
        let model = [
            ("TROUPE_OPEN_REGISTRATION", "true"),
            ("TROUPE_LLM_BASE_URL", url.as_str()),
            ("TROUPE_LLM_MODEL", "scripted"),
        ];
        let app = TestApp::start_with(backend, &[&model, env].concat()).await;
        let admin = app.admin().await;
        AdminFixture {
            app,
            admin,
            upstream,
        }
    }

    /// Creates a space of `owner` in which Ada replies.
    pub async fn create_space(&self, owner: &HttpClient, name: &str) -> OwnedSpace {
        let space = owner
            .create_space(name, json!({"reply_order": "list"}))
            .await;
        let ada = owner.create_character("Ada", None).await;
        owner.add_character(&space, &ada).await;
        OwnedSpace {
            space: id(&space),
            conversation: root_of(&space),
        }
    }

    /// Posts a message and waits until no run is queued or running.
    pub async fn post(&self, person: &HttpClient, conversation: i64, text: &str) {
        expect(201, person.post_message(conversation, text, None).await);
        self.settle(person, conversation).await;
    }

    /// Waits until the conversation has no queued or running run.
    pub async fn settle(&self, person: &HttpClient, conversation: i64) {
        poll::until("nothing is queued or running", async || {
            let document = person.conversation(conversation).await;
            (document["queued_run"].is_null() && document["running_run"].is_null()).then_some(())
        })
        .await;
    }

    /// Returns the document at `path`, fetched by the admin.
    pub async fn get(&self, path: &str) -> Value {
        expect(200, self.admin.get(path).await)
    }

    pub async fn close(self) {
        self.app.close().await;
    }
}
