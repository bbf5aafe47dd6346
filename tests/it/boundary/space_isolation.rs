//! Fixture with an existing resource for every endpoint, and the lists of endpoints and client
//! files.

use reqwest::{Method, RequestBuilder};
use serde_json::json;
use troupe::server::endpoints;
use troupe::web::openapi::endpoint::ApiEndpoint;

use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, http_client, root_of};
use crate::support::poll;

/// A server without running work, and a row for most of its endpoints.
pub struct EndpointFixture {
    pub app: TestApp,
    pub admin: HttpClient,
    /// A run that succeeded.
    run: String,
    _upstream: FakeProvider,
}

impl EndpointFixture {
    /// Creates the fixture: a provider, a space with a character, a message and its reply.
    pub async fn create(backend: TestBackend, env: &[(&str, &str)]) -> EndpointFixture {
        let upstream = FakeProvider::start().await;
        let app = TestApp::start_with(backend, env).await;
        let admin = app.admin().await;
        let body = json!({"name": "Near", "base_url": upstream.base_url(), "model": "m", "is_default": true});
        expect(201, admin.post("/api/providers", body).await);
        let space = admin
            .create_space("Room", json!({"user_turn_debounce_ms": 0}))
            .await;
        let mina = admin.create_character("Mina", None).await;
        admin.add_character(&space, &mina).await;
        expect(201, admin.post("/api/api_keys", json!({"name": "k"})).await);
        let posted = admin.post_message(root_of(&space), "Hi.", None).await;
        let run = expect(201, posted)["run"]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let path = format!("/api/runs/{run}");
        poll::until("the reply of the character", async || {
            let run = expect(200, admin.get(&path).await);
            (run["status"] == "succeeded").then_some(())
        })
        .await;
        EndpointFixture {
            app,
            admin,
            run,
            _upstream: upstream,
        }
    }

    /// Returns the path of an endpoint, with the ids of existing resources.
    pub fn address(&self, endpoint: &ApiEndpoint) -> String {
        let parts = endpoint.path().split('/').map(|part| match part {
            "{run_id}" => self.run.as_str(),
            _ if part.starts_with('{') => "1",
            _ => part,
        });
        parts.collect::<Vec<_>>().join("/")
    }

    /// Returns a request to an address, with the admin's cookie.
    pub fn request(&self, method: Method, address: &str) -> RequestBuilder {
        http_client()
            .request(method, format!("{}{address}", self.app.base))
            .header("cookie", self.admin.cookie())
    }
}

/// Returns every endpoint.
pub fn all_endpoints() -> Vec<ApiEndpoint> {
    let all = endpoints::all();
    [all.api, all.open].concat()
}
