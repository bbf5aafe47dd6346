//! Adds the token count and the time of the last edit to swipes, a unique index that permits one
//! swipe per run and message, and an index that finds the branches of a message.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const SWIPES: &str = "message_swipes";
const ONE_PER_RUN: &str = "one_swipe_per_run_and_message";
const BRANCHES: &str = "branches_of_a_message";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // 0: nobody has counted.
        add(manager, big_integer("token_count").default(0)).await?;
        add(manager, instant_null("edited_at")).await?;
        // A branch's clones keep the run of their origin, each at a message of its own. The run
        // stands first: a run that is deleted is looked up here.
        let one_per_run = unique(ONE_PER_RUN, SWIPES, &["conversation_run_id", "message_id"])
            .and_where(Expr::col("conversation_run_id").is_not_null())
            .take();
        manager.create_index(one_per_run).await?;
        let branches = index(BRANCHES, "conversations", &["forked_from_message_id"])
            .and_where(Expr::col("forked_from_message_id").is_not_null())
            .take();
        manager.create_index(branches).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, table) in [(BRANCHES, "conversations"), (ONE_PER_RUN, SWIPES)] {
            let index = Index::drop().name(name).table(table).to_owned();
            manager.drop_index(index).await?;
        }
        for column in ["edited_at", "token_count"] {
            let table = Table::alter().table(SWIPES).drop_column(column).take();
            manager.alter_table(table).await?;
        }
        Ok(())
    }
}

async fn add(manager: &SchemaManager<'_>, column: impl IntoColumnDef) -> Result<(), DbErr> {
    let table = Table::alter().table(SWIPES).add_column(column).take();
    manager.alter_table(table).await
}
