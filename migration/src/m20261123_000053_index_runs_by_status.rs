//! Adds indexes that lists and periodic tasks use: on the status of finished runs, the expiry of
//! sessions, the heartbeat and end of imports, and the status of tool approvals.

use crate::columns::index;
use sea_orm_migration::prelude::*;

const RUNS_BY_STATUS: &str = "finished_runs_by_status";
const RUNS: &str = "conversation_runs";

/// Name, table and columns of each further index.
const INDEXES: [(&str, &str, &[&str]); 4] = [
    ("sessions_by_expiry", "sessions", &["expires_at"]),
    (
        "imports_by_heartbeat",
        "imports",
        &["status", "heartbeat_at"],
    ),
    ("imports_by_end", "imports", &["finished_at"]),
    (
        "tool_approvals_by_status",
        "tool_approvals",
        &["conversation_id", "status"],
    ),
];

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // Queued and running runs have their own partial indexes, so a claim writes no entry here.
        let finished = Expr::col("finished_at").is_not_null();
        let by_status = index(RUNS_BY_STATUS, RUNS, &["status", "id"])
            .and_where(finished)
            .take();
        manager.create_index(by_status).await?;
        for (name, table, columns) in INDEXES {
            manager.create_index(index(name, table, columns)).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let runs = [(RUNS_BY_STATUS, RUNS)].into_iter();
        let others = INDEXES.into_iter().map(|(name, table, _)| (name, table));
        for (name, table) in runs.chain(others) {
            let drop = Index::drop().name(name).table(table).to_owned();
            manager.drop_index(drop).await?;
        }
        Ok(())
    }
}
