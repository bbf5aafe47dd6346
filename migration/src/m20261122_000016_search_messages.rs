//! Adds the full-text index of messages, by trigrams: on SQLite the FTS5 table `message_search` and
//! the triggers that update it, on PostgreSQL a `pg_trgm` index if the extension can be created.
//!
//! Trigrams find words of any script and parts of words. Without the extension, a search on
//! PostgreSQL reads the messages themselves: slower, with the same result.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DatabaseBackend;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let steps: &[&str] = match manager.get_database_backend() {
            DatabaseBackend::Postgres => &POSTGRES_UP,
            _ => &SQLITE_UP,
        };
        run(manager, steps).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let steps: &[&str] = match manager.get_database_backend() {
            // The extension stays: others may use it by now.
            DatabaseBackend::Postgres => &["DROP INDEX IF EXISTS messages_by_trigrams"],
            _ => &SQLITE_DOWN,
        };
        run(manager, steps).await
    }
}

async fn run(manager: &SchemaManager<'_>, steps: &[&str]) -> Result<(), DbErr> {
    for sql in steps {
        manager.get_connection().execute_unprepared(sql).await?;
    }
    Ok(())
}

const SQLITE_UP: [&str; 5] = [
    "CREATE VIRTUAL TABLE message_search USING fts5( \
        content, content='messages', content_rowid='id', tokenize='trigram')",
    "CREATE TRIGGER message_search_insert AFTER INSERT ON messages BEGIN \
        INSERT INTO message_search(rowid, content) VALUES (new.id, new.content); END",
    "CREATE TRIGGER message_search_delete AFTER DELETE ON messages BEGIN \
        INSERT INTO message_search(message_search, rowid, content) \
        VALUES ('delete', old.id, old.content); END",
    // Most updates leave the text as it is, and cost nothing here.
    "CREATE TRIGGER message_search_update AFTER UPDATE OF content ON messages \
        WHEN old.content IS NOT new.content BEGIN \
        INSERT INTO message_search(message_search, rowid, content) \
        VALUES ('delete', old.id, old.content); \
        INSERT INTO message_search(rowid, content) VALUES (new.id, new.content); END",
    "INSERT INTO message_search(message_search) VALUES ('rebuild')",
];

const SQLITE_DOWN: [&str; 4] = [
    "DROP TRIGGER message_search_update",
    "DROP TRIGGER message_search_delete",
    "DROP TRIGGER message_search_insert",
    "DROP TABLE message_search",
];

const POSTGRES_UP: [&str; 2] = [
    // Whatever the reason for which it cannot be had, the server starts without it.
    "DO $$ BEGIN CREATE EXTENSION IF NOT EXISTS pg_trgm; \
        EXCEPTION WHEN OTHERS THEN \
        RAISE NOTICE 'pg_trgm is not there: searches read every message they may'; END $$",
    "DO $$ BEGIN IF EXISTS (SELECT 1 FROM pg_opclass WHERE opcname = 'gin_trgm_ops') THEN \
        CREATE INDEX messages_by_trigrams ON messages USING gin (content gin_trgm_ops); \
        END IF; END $$",
];
