//! A server in a separate process, so that its memory, its log and its panics can be observed.

use serde_json::json;

use crate::support::backends::{TestBackend, TestDatabase, fresh_database};
use crate::support::http_client::{HttpClient, expect, root_of};
use crate::support::process::Server;
use crate::untrusted_input::installation::SETTINGS;
use crate::untrusted_input::ws_peer::WsPeer;

/// A server in a separate process.
pub struct IsolatedServer {
    pub server: Server,
    pub admin: HttpClient,
    /// The API key of the admin.
    pub key: String,
    /// A conversation in a space of the admin.
    pub conversation: i64,
    /// Dropped after the server, which uses it.
    _database: TestDatabase,
}

impl IsolatedServer {
    /// Starts the server with these additional settings.
    pub async fn start(backend: TestBackend, env: &[(&str, &str)]) -> IsolatedServer {
        let database = fresh_database(&backend).await;
        let server = Server::start(&database, &[SETTINGS, env].concat()).await;
        let admin = HttpClient::set_up(&server.url(), "admin").await;
        let key = expect(201, admin.post("/api/api_keys", json!({"name": "k"})).await);
        let space = admin.create_space("Arena", json!({})).await;
        IsolatedServer {
            server,
            admin,
            key: key["key"]
                .as_str()
                .expect("the response has no key")
                .to_owned(),
            conversation: root_of(&space),
            _database: database,
        }
    }

    /// Opens a socket of the admin.
    pub async fn peer(&self) -> WsPeer {
        let opened = WsPeer::open(&self.server.url(), &self.key).await;
        opened.unwrap_or_else(|status| panic!("rejected with {status}"))
    }

    /// The bytes of a request of the admin.
    pub fn request(&self, method: &str, target: &str, headers: &str, body: &str) -> Vec<u8> {
        let host = self.server.url().replace("http://", "");
        format!(
            "{method} {target} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\n{headers}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.key,
            body.len()
        )
        .into_bytes()
    }

    /// Checks that the process runs, accepts a message, and never panicked.
    pub async fn assert_healthy(&mut self) {
        assert!(self.server.exited().is_none(), "the server has exited");
        self.server.wait_ready().await;
        let posted = self
            .admin
            .post_message(self.conversation, "Still here.", None);
        assert_eq!(posted.await.0, 201);
        let log = self.server.output();
        let panics: Vec<&str> = log
            .lines()
            .filter(|it| it.contains("panicked at"))
            .collect();
        assert!(panics.is_empty(), "{}", panics.join("\n"));
    }
}
