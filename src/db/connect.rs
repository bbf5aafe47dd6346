//! Defines `Db`: opens the connection pools of the database (SQLite or PostgreSQL), and returns
//! those for reading and for heartbeats. Transactions are in `write.rs`, migrations in
//! `migrate.rs`.
//!
//! **Invariant:** on SQLite exactly one connection writes, and it is opened first; readers are
//! opened read-only, so a write on them fails instead of waiting for a lock. A separate connection
//! moves committed pages from the write-ahead log into the file.

use std::str::FromStr;
use std::time::Duration;

use anyhow::Context;
use prometheus_client::registry::Registry;
use sea_orm::{ConnectOptions, Database, DatabaseConnection, DbErr};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use tokio::runtime::Handle;

use crate::db::backend::Backend;
use crate::db::connection_checks;
use crate::db::connection_checks::TransactionEnds;
use crate::db::health::WriteHealth;
use crate::db::metrics::DbMetrics;
use crate::db::reading::read_pool::ReadPool;
use crate::db::sqlite::checkpoint;
use crate::db::sqlite::checkpoint::Checkpoints;
use crate::db::sqlite::segments::SegmentMerges;

/// Options for opening the database.
#[derive(Clone, Debug)]
pub struct DbOptions {
    /// `sqlite://path?mode=rwc` or `postgres://…`.
    pub url: String,
    /// SQLite only: an acknowledged write survives loss of power (`full`) or a crash (`normal`).
    pub synchronous_full: bool,
}

/// The connection pools. Cheap to clone; clones share the pools.
#[derive(Clone)]
pub struct Db {
    reader: ReadPool,
    pub(super) writer: DatabaseConnection,
    heartbeat_connection: DatabaseConnection,
    /// SQLite only.
    pub(super) checkpoints: Option<Checkpoints>,
    pub(super) merges: SegmentMerges,
    backend: Backend,
    pub(super) main: Handle,
    pub(super) metrics: DbMetrics,
    health: WriteHealth,
    /// SQLite only: a PostgreSQL connection itself records how its last transaction ended.
    pub(super) transaction_ends: TransactionEnds,
}

impl Db {
    /// Opens the pools on the current runtime, which must be the main one.
    ///
    /// # Errors
    /// Returns an error if the server does not answer or the file cannot be opened.
    pub async fn connect(options: &DbOptions) -> anyhow::Result<Self> {
        if options.url.starts_with("sqlite:") {
            Self::connect_sqlite(options).await
        } else {
            Self::connect_postgres(options).await
        }
    }

    /// Returns the pool for reading, usable from any runtime. On PostgreSQL the writer's pool.
    pub fn reader(&self) -> &ReadPool {
        &self.reader
    }

    /// Returns the heartbeat's own connection: an exhausted pool must not make live runs look dead.
    /// Only for tasks of the main runtime.
    pub fn heartbeat_connection(&self) -> &DatabaseConnection {
        &self.heartbeat_connection
    }

    /// Returns the kind of database.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Returns the write health.
    pub fn health(&self) -> &WriteHealth {
        &self.health
    }

    /// Runs a write outside [`Db::write`] (a heartbeat) and records storage failures in its error.
    ///
    /// # Errors
    /// Returns the error of `write`; `Conn` while the file is damaged.
    pub async fn run_observed<T>(
        &self,
        write: impl Future<Output = Result<T, DbErr>>,
    ) -> Result<T, DbErr> {
        self.health.require_writable()?;
        let written = write.await;
        if let Err(error) = &written {
            self.health.observe_write(error);
        }
        written
    }

    /// Registers the metrics of the pools.
    pub fn register_metrics(&self, registry: &mut Registry) {
        let pools = match self.backend {
            Backend::Sqlite => vec![
                ("read", self.reader.pool.clone()),
                ("write", self.writer.clone()),
            ],
            Backend::Postgres => vec![
                ("all", self.writer.clone()),
                ("heartbeat", self.heartbeat_connection.clone()),
            ],
        };
        self.metrics.register(registry, self.backend, pools);
    }

    /// Closes every connection.
    pub async fn close(self) {
        let checkpoints = self.checkpoints.map(Checkpoints::into_pool);
        let pools = [self.reader.pool, self.writer, self.heartbeat_connection];
        for pool in checkpoints.into_iter().chain(pools) {
            // A pool that is already closed does not matter.
            let _ = pool.close().await;
        }
    }

    async fn connect_sqlite(options: &DbOptions) -> anyhow::Result<Self> {
        let base = SqliteConnectOptions::from_str(&options.url)
            .context("DATABASE_URL is not an SQLite address")?
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(if options.synchronous_full {
                SqliteSynchronous::Full
            } else {
                SqliteSynchronous::Normal
            })
            .busy_timeout(Duration::from_secs(10))
            .foreign_keys(true)
            .pragma("cache_size", "-16000")
            .pragma("temp_store", "MEMORY")
            .statement_cache_capacity(256);
        let pool = |size| {
            SqlitePoolOptions::new()
                .max_connections(size)
                .min_connections(1)
                .idle_timeout(None)
                .max_lifetime(None)
                .test_before_acquire(false)
                .acquire_timeout(Duration::from_secs(30))
        };
        let (health, transaction_ends) = (WriteHealth::default(), TransactionEnds::default());
        let writer = connection_checks::check_sqlite_writer(pool(1), &transaction_ends);
        let writer_options = checkpoint::writer_options(base.clone());
        let writer: DatabaseConnection = writer.connect_with(writer_options).await?.into();
        let checkpoints = Checkpoints::new(pool(1).min_connections(0), base.clone());
        let reader = connection_checks::check_sqlite_readers(pool(4));
        let reader = reader.connect_with(base.read_only(true)).await?.into();
        Ok(Self {
            reader: ReadPool::new(reader, health.clone()),
            heartbeat_connection: writer.clone(),
            writer,
            checkpoints: Some(checkpoints),
            merges: SegmentMerges::default(),
            backend: Backend::Sqlite,
            main: Handle::current(),
            metrics: DbMetrics::default(),
            health,
            transaction_ends,
        })
    }

    async fn connect_postgres(options: &DbOptions) -> anyhow::Result<Self> {
        let hint = "cannot connect to PostgreSQL: check that it runs and that address and password are right";
        let pool = Database::connect(postgres_options(&options.url, 20))
            .await
            .context(hint)?;
        let heartbeat_connection = Database::connect(postgres_options(&options.url, 1))
            .await
            .context(hint)?;
        let (main, health) = (Handle::current(), WriteHealth::default());
        Ok(Self {
            reader: ReadPool::on_runtime(main.clone(), pool.clone(), health.clone()),
            writer: pool,
            heartbeat_connection,
            checkpoints: None,
            merges: SegmentMerges::default(),
            backend: Backend::Postgres,
            main,
            metrics: DbMetrics::default(),
            health,
            transaction_ends: TransactionEnds::default(),
        })
    }
}

fn postgres_options(url: &str, size: u32) -> ConnectOptions {
    let mut options = ConnectOptions::new(url);
    options
        .max_connections(size)
        .min_connections(1)
        // When every connection is in use, callers get an error instead of hanging.
        .acquire_timeout(Duration::from_secs(3))
        .sqlx_logging(false)
        .map_sqlx_postgres_opts(|it| {
            it.options([
                ("idle_in_transaction_session_timeout", "30s"),
                ("lock_timeout", "10s"),
                ("statement_timeout", "30s"),
                // PostgreSQL keeps the plan of a prepared statement. A plan made while a table is small
                // must also suit it when it has grown, so it must use an index from the beginning.
                ("enable_seqscan", "off"),
                // Compiling a statement takes longer than executing it, and it would be chosen for
                // each statement that has no index.
                ("jit", "off"),
            ])
        })
        .map_sqlx_postgres_pool_opts(connection_checks::check_postgres);
    options
}
