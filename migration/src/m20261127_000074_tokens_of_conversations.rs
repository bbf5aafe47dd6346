//! Counts the tokens of a run in its conversation instead of its space, because the row of a space
//! would be locked by the ends of all its runs. The space keeps the tokens that belong to no
//! conversation.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::big_integer;

const SPACES: &str = "spaces";
const CONVERSATIONS: &str = "conversations";
const TOKENS_USED: &str = "tokens_used";
const UNATTRIBUTED: &str = "unattributed_tokens";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    /// The tokens of earlier runs remain in the space.
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let rename = Table::alter()
            .table(SPACES)
            .rename_column(TOKENS_USED, UNATTRIBUTED)
            .to_owned();
        manager.alter_table(rename).await?;
        let column = big_integer(TOKENS_USED).default(0).take();
        let add = Table::alter()
            .table(CONVERSATIONS)
            .add_column(column)
            .to_owned();
        manager.alter_table(add).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let connection = manager.get_connection();
        connection.execute_unprepared(MOVE_TO_SPACES).await?;
        let drop = Table::alter()
            .table(CONVERSATIONS)
            .drop_column(TOKENS_USED)
            .to_owned();
        manager.alter_table(drop).await?;
        let rename = Table::alter()
            .table(SPACES)
            .rename_column(UNATTRIBUTED, TOKENS_USED)
            .to_owned();
        manager.alter_table(rename).await
    }
}

const MOVE_TO_SPACES: &str = "UPDATE spaces SET unattributed_tokens = unattributed_tokens + \
    (SELECT CAST(COALESCE(SUM(tokens_used), 0) AS bigint) FROM conversations \
     WHERE conversations.space_id = spaces.id)";
