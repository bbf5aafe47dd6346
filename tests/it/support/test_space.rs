//! Starts a server process with a model, a user, a space, and characters as members.

use serde_json::Value;

use crate::support::backends::{TestBackend, TestDatabase, migrated_database};
use crate::support::database_facts::{DatabaseFacts, RunFact};
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, inspect_every_response, root_of};
use crate::support::process::Server;
use crate::support::{api_contract, invariants, poll, transitions};

/// Short leases: a heartbeat every 200 ms, stale after 1.5 s, recovery every 300 ms.
pub const SHORT_LEASES: &[(&str, &str)] = &[
    ("RUN_HEARTBEAT_MS", "200"),
    ("RUN_STALE_AFTER_MS", "1500"),
    ("REAPER_INTERVAL_MS", "300"),
];

/// A conversation with its server and model. The server is dropped first, the database last.
pub struct TestSpace {
    pub server: Server,
    pub person: HttpClient,
    pub upstream: FakeProvider,
    pub space: Value,
    pub conversation: i64,
    pub database: TestDatabase,
}

impl TestSpace {
    /// Creates a space with these settings and characters.
    pub async fn open(backend: TestBackend, settings: Value, characters: &[&str]) -> TestSpace {
        TestSpace::open_with(backend, settings, characters, &[]).await
    }

    /// The same with server settings in addition to the short leases.
    pub async fn open_with(
        backend: TestBackend,
        settings: Value,
        characters: &[&str],
        env: &[(&str, &str)],
    ) -> TestSpace {
        let database = migrated_database(&backend).await;
        TestSpace::open_on(database, settings, characters, env).await
    }

    /// The same on an existing database.
    pub async fn open_on(
        database: TestDatabase,
        settings: Value,
        characters: &[&str],
        env: &[(&str, &str)],
    ) -> TestSpace {
        inspect_every_response(api_contract::check_response);
        let upstream = FakeProvider::start().await;
        let mut n = 0;
        upstream.answer_with(move |_| {
            n += 1;
            ResponseScript::say(&reply(n))
        });
        let base_url = upstream.base_url();
        let env = [SHORT_LEASES, env, &model_env(&base_url)].concat();
        let server = Server::start(&database, &env).await;
        transitions::record(&mut DatabaseFacts::open(&database).await).await;
        let person = HttpClient::set_up(&server.url(), "ann").await;
        let space = person.create_space("The stage", settings).await;
        for name in characters {
            let character = person.create_character(name, None).await;
            person.add_character(&space, &character).await;
        }
        let conversation = root_of(&space);
        TestSpace {
            server,
            person,
            upstream,
            space,
            conversation,
            database,
        }
    }

    /// Starts a second server on the same database and the same model.
    pub async fn second_server(&self) -> Server {
        self.second_server_with(&[]).await
    }

    /// The same with server settings in addition to the short leases.
    pub async fn second_server_with(&self, env: &[(&str, &str)]) -> Server {
        let base_url = self.upstream.base_url();
        let env = [SHORT_LEASES, env, &model_env(&base_url)].concat();
        Server::start(&self.database, &env).await
    }

    /// Makes the next reply stop after its first word, until the gate opens.
    pub fn hold_next_reply(&self) -> HoldPoint {
        let gate = HoldPoint::closed();
        gate.step();
        self.upstream
            .next(ResponseScript::say(&reply(0)).held_at(&gate));
        gate
    }

    /// Posts a message and asserts success; returns `{message, run}`.
    pub async fn post(&self, content: &str) -> Value {
        let (status, answer) = self
            .person
            .post_message(self.conversation, content, None)
            .await;
        assert_eq!(status, 201, "{answer}");
        answer
    }

    /// Opens a separate connection to the database.
    pub async fn facts(&self) -> DatabaseFacts {
        DatabaseFacts::open(&self.database).await
    }

    /// Waits until no run is queued or running; checks all invariants and transitions of the
    /// database.
    pub async fn settle(&self) -> DatabaseFacts {
        let mut facts = self.facts().await;
        let unfinished = format!(
            "SELECT CAST(count(*) AS TEXT) FROM conversation_runs WHERE conversation_id = {} AND status IN ('queued', 'running')",
            self.conversation
        );
        poll::until("no run is queued or running", async || {
            (facts.number(&unfinished).await == 0).then_some(())
        })
        .await;
        let mut violations = invariants::at_rest(&mut facts).await;
        violations.extend(transitions::illegal(&mut facts).await);
        assert!(violations.is_empty(), "{}", violations.join("\n"));
        facts
    }

    /// Returns the statuses of all runs, oldest first.
    pub async fn run_statuses(&self) -> Vec<String> {
        self.runs()
            .await
            .into_iter()
            .map(|run| run.status)
            .collect()
    }

    /// Returns all runs, oldest first.
    pub async fn runs(&self) -> Vec<RunFact> {
        self.facts().await.runs(self.conversation).await
    }

    /// Returns the roles of the timeline, in order.
    pub async fn roles(&self) -> Vec<String> {
        let timeline = self.facts().await.timeline(self.conversation).await;
        timeline.into_iter().map(|(_, role, _)| role).collect()
    }
}

/// Returns the settings that make this model the default.
pub fn model_env(base_url: &str) -> [(&str, &str); 4] {
    [
        ("TROUPE_LLM_BASE_URL", base_url),
        ("TROUPE_LLM_API_KEY", "sk-test"),
        ("TROUPE_LLM_MODEL", "scripted"),
        ("TROUPE_ALLOW_PRIVATE_PROVIDERS", "true"),
    ]
}

/// Returns the n-th reply of the model; all are different.
fn reply(n: usize) -> String {
    format!("This is reply {n}, said slowly, and said to the end. 🎭")
}
