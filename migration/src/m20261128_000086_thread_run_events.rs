//! Creates the event logs of runs of threads, and adds to runs how long they may still work.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const RUNS: &str = "thread_runs";
const EVENTS: &str = "thread_run_events";

/// How many milliseconds a run may still work; ten minutes at its start.
const COLUMN: &str = "work_left_ms";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = big_integer(COLUMN).default(600_000).take();
        let add = Table::alter().table(RUNS).add_column(column).to_owned();
        manager.alter_table(add).await?;
        manager.create_table(events()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &[EVENTS]).await?;
        let drop = Table::alter().table(RUNS).drop_column(COLUMN).to_owned();
        manager.alter_table(drop).await
    }
}

fn events() -> TableCreateStatement {
    Table::create()
        .table(EVENTS)
        .col(string_len("run_id", 64))
        .col(big_integer("seq"))
        .col(string_len("kind", 64))
        .col(text("payload"))
        .primary_key(Index::create().col("run_id").col("seq"))
        .foreign_key(&mut refers(
            EVENTS,
            "run_id",
            RUNS,
            ForeignKeyAction::Cascade,
        ))
        .take()
}
