//! Adds an index on the end time of finished runs, so that the token usage per day is computed
//! without reading all runs.

use crate::columns::*;
use sea_orm_migration::prelude::*;

const NAME: &str = "finished_runs_by_time";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // What is queued or running is not in it: a claim costs nothing more.
        let finished = Expr::col("finished_at").is_not_null();
        let index = index(NAME, "conversation_runs", &["finished_at"])
            .and_where(finished)
            .take();
        manager.create_index(index).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let index = Index::drop()
            .name(NAME)
            .table("conversation_runs")
            .to_owned();
        manager.drop_index(index).await
    }
}
