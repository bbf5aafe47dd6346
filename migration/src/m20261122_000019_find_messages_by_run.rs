//! Adds an index on the run of messages, copies in branches included: without it, deleting a run
//! would read all messages.

use crate::columns::*;
use sea_orm_migration::prelude::*;

const MESSAGES: &str = "messages";
const BY_RUN: &str = "messages_of_a_run";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let by_run = index(BY_RUN, MESSAGES, &["conversation_run_id"])
            .and_where(Expr::col("conversation_run_id").is_not_null())
            .take();
        manager.create_index(by_run).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let by_run = Index::drop().name(BY_RUN).table(MESSAGES).to_owned();
        manager.drop_index(by_run).await
    }
}
