//! Adds `needs_step` to conversations, the mark that a change of the space has not been applied to
//! them yet, and an index on the marked ones.

use crate::columns::index;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::boolean;

const TABLE: &str = "conversations";
const COLUMN: &str = "needs_step";
const NAME: &str = "conversations_that_need_a_step";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = boolean(COLUMN).default(false).take();
        let add = Table::alter().table(TABLE).add_column(column).to_owned();
        manager.alter_table(add).await?;
        // Only marked conversations are in it, and there are few at any time.
        let marked = index(NAME, TABLE, &["space_id"])
            .and_where(Expr::col(COLUMN))
            .take();
        manager.create_index(marked).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Index::drop().name(NAME).table(TABLE).to_owned();
        manager.drop_index(drop).await?;
        let drop = Table::alter().table(TABLE).drop_column(COLUMN).to_owned();
        manager.alter_table(drop).await
    }
}
