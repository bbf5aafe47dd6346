//! Adds the column `space_id` to runs, filled from their conversations, and an index on the space
//! and due time of queued runs, so that the dispatcher can serve each space in turn without reading
//! all queued runs.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::big_integer;

const TABLE: &str = "conversation_runs";
const COLUMN: &str = "space_id";
const NAME: &str = "queued_runs_by_space";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = big_integer(COLUMN).default(0).take();
        let table = Table::alter().table(TABLE).add_column(column).to_owned();
        manager.alter_table(table).await?;
        let of_its_conversation = "UPDATE conversation_runs SET space_id = \
            (SELECT space_id FROM conversations WHERE conversations.id = conversation_id)";
        let connection = manager.get_connection();
        connection.execute_unprepared(of_its_conversation).await?;
        // What has ended is not in it: a claim costs the same however many that are.
        let index = index(NAME, TABLE, &[COLUMN, "run_after"])
            .and_where(Expr::col("status").eq("queued"))
            .take();
        manager.create_index(index).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let index = Index::drop().name(NAME).table(TABLE).to_owned();
        manager.drop_index(index).await?;
        let table = Table::alter().table(TABLE).drop_column(COLUMN).to_owned();
        manager.alter_table(table).await
    }
}
