//! Replaces SQLite's search index by one without stored texts and without automatic merges, so that
//! each message changes only a small part of it; the server merges its segments in separate
//! transactions. Does nothing on PostgreSQL.

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
        run(manager, &UP).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        run(manager, &DOWN).await
    }
}

async fn run(manager: &SchemaManager<'_>, steps: &[&str]) -> Result<(), DbErr> {
    if manager.get_database_backend() != DatabaseBackend::Sqlite {
        return Ok(());
    }
    for sql in DROP.iter().chain(steps) {
        manager.get_connection().execute_unprepared(sql).await?;
    }
    Ok(())
}

const DROP: [&str; 4] = [
    "DROP TRIGGER message_search_update",
    "DROP TRIGGER message_search_delete",
    "DROP TRIGGER message_search_insert",
    "DROP TABLE message_search",
];

const UP: [&str; 8] = [
    // https://sqlite.org/fts5.html#contentless_delete_tables
    "CREATE VIRTUAL TABLE message_search USING fts5( \
        content, content='', contentless_delete=1, tokenize='trigram')",
    "INSERT INTO message_search(rowid, content) SELECT id, content FROM messages",
    "CREATE TRIGGER message_search_insert AFTER INSERT ON messages BEGIN \
        INSERT INTO message_search(rowid, content) VALUES (new.id, new.content); END",
    "CREATE TRIGGER message_search_delete AFTER DELETE ON messages BEGIN \
        DELETE FROM message_search WHERE rowid = old.id; END",
    // Most updates leave the text as it is, and cost nothing here.
    "CREATE TRIGGER message_search_update AFTER UPDATE OF content ON messages \
        WHEN old.content IS NOT new.content BEGIN \
        UPDATE message_search SET content = new.content WHERE rowid = new.id; END",
    "INSERT INTO message_search(message_search, rank) VALUES ('automerge', 0)",
    // So many segments of one level are merged into one of the next: an entry is rewritten less often.
    "INSERT INTO message_search(message_search, rank) VALUES ('usermerge', 8)",
    // A level with more segments is merged by the transaction that adds one, whatever that takes.
    "INSERT INTO message_search(message_search, rank) VALUES ('crisismerge', 1500)",
];

const DOWN: [&str; 5] = [
    "CREATE VIRTUAL TABLE message_search USING fts5( \
        content, content='messages', content_rowid='id', tokenize='trigram')",
    "CREATE TRIGGER message_search_insert AFTER INSERT ON messages BEGIN \
        INSERT INTO message_search(rowid, content) VALUES (new.id, new.content); END",
    "CREATE TRIGGER message_search_delete AFTER DELETE ON messages BEGIN \
        INSERT INTO message_search(message_search, rowid, content) \
        VALUES ('delete', old.id, old.content); END",
    "CREATE TRIGGER message_search_update AFTER UPDATE OF content ON messages \
        WHEN old.content IS NOT new.content BEGIN \
        INSERT INTO message_search(message_search, rowid, content) \
        VALUES ('delete', old.id, old.content); \
        INSERT INTO message_search(rowid, content) VALUES (new.id, new.content); END",
    "INSERT INTO message_search(message_search) VALUES ('rebuild')",
];
