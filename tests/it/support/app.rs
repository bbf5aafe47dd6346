//! Starts a server inside the test, with its own port, its own database, and a clock that the test
//! advances.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use base::clock::Clock;
use outbound_http::client::{Resolver, SystemResolver};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use troupe::app::App;
use troupe::config::Config;
use troupe::server::serve;

use crate::support::api_contract;
use crate::support::backends::{TestBackend, TestDatabase, migrated_database};
use crate::support::http_client::{CHEAP_HASH_KIB, HttpClient, inspect_every_response};

/// A running server. A test must close it, which checks that it shuts down cleanly.
pub struct TestApp {
    /// The components of the server, for state that no endpoint returns.
    pub app: App,
    pub base: String,
    stop: oneshot::Sender<()>,
    served: JoinHandle<anyhow::Result<()>>,
    /// The data directory; removed on drop.
    _folder: TempDir,
    /// Dropped last, after the server has closed it.
    pub database: Arc<TestDatabase>,
}

impl TestApp {
    /// Starts a server with the defaults.
    pub async fn start(backend: TestBackend) -> TestApp {
        TestApp::start_with(backend, &[]).await
    }

    /// Starts a server with these settings.
    pub async fn start_with(backend: TestBackend, env: &[(&str, &str)]) -> TestApp {
        TestApp::start_changed(backend, env, |_| {}).await
    }

    /// Starts a server and changes its components before it listens.
    pub async fn start_changed(
        backend: TestBackend,
        env: &[(&str, &str)],
        change: impl FnOnce(&mut App),
    ) -> TestApp {
        TestApp::start_all(backend, env, Arc::new(SystemResolver), change).await
    }

    /// Starts a server that resolves host names as the test states.
    pub async fn start_with_resolver(
        backend: TestBackend,
        env: &[(&str, &str)],
        names: Arc<dyn Resolver>,
    ) -> TestApp {
        TestApp::start_all(backend, env, names, |_| {}).await
    }

    async fn start_all(
        backend: TestBackend,
        env: &[(&str, &str)],
        names: Arc<dyn Resolver>,
        change: impl FnOnce(&mut App),
    ) -> TestApp {
        let database = Arc::new(migrated_database(&backend).await);
        Self::start_on(database, Clock::manual(), env, names, change).await
    }

    /// Starts another node of the same installation: the same database and the same clock.
    pub async fn start_second_node(&self, env: &[(&str, &str)]) -> TestApp {
        let (database, clock) = (self.database.clone(), self.app.clock.clone());
        let names = Arc::new(SystemResolver);
        TestApp::start_on(database, clock, env, names, |_| {}).await
    }

    async fn start_on(
        database: Arc<TestDatabase>,
        clock: Clock,
        env: &[(&str, &str)],
        names: Arc<dyn Resolver>,
        change: impl FnOnce(&mut App),
    ) -> TestApp {
        inspect_every_response(api_contract::check_response);
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let config = settings(&database, folder.path(), env);
        // Boxed, because the futures are large, and the stack of a test's thread has 2 MiB.
        let built = Box::pin(App::build_with_resolver(config, clock, names)).await;
        let mut app = built.expect("the server can be built");
        change(&mut app);
        let listening = Box::pin(serve::listen(app.clone())).await;
        let listening = listening.expect("there is a free port");
        let base = format!("http://{}", listening.address);
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(listening.run_until(async {
            // A test that panics drops the sender, which also stops the server.
            let _ = stopped.await;
        }));
        TestApp {
            app,
            base,
            stop,
            served,
            _folder: folder,
            database,
        }
    }

    /// Returns the admin of a new server, signed in.
    pub async fn admin(&self) -> HttpClient {
        HttpClient::set_up(&self.base, "admin").await
    }

    /// Registers another account, signed in. Requires a server with open registration.
    pub async fn register(&self, username: &str) -> HttpClient {
        HttpClient::register(&self.base, username).await
    }

    /// Stops the server and asserts a clean shutdown.
    pub async fn close(self) {
        let _ = self.stop.send(());
        self.served
            .await
            .expect("the server does not panic")
            .expect("the server shuts down cleanly");
    }
}

/// Default settings of a test server.
pub fn settings(database: &TestDatabase, folder: &Path, env: &[(&str, &str)]) -> Config {
    let mut all: HashMap<&str, String> = HashMap::from([
        ("TROUPE_BIND", "127.0.0.1:0".to_owned()),
        ("DATABASE_URL", database.url().to_owned()),
        ("TROUPE_DATA_DIR", folder.display().to_string()),
        ("TROUPE_SECRET_KEY", "5e".repeat(32)),
        ("SHUTDOWN_GRACE_MS", "1000".to_owned()),
        ("PASSWORD_HASH_KIB", CHEAP_HASH_KIB.to_owned()),
    ]);
    all.extend(env.iter().map(|(name, value)| (*name, (*value).to_owned())));
    Config::read(|name| all.get(name).cloned()).expect("the settings are valid")
}

/// Settings of a server with open registration.
pub const OPEN_REGISTRATION: &[(&str, &str)] = &[("TROUPE_OPEN_REGISTRATION", "true")];
