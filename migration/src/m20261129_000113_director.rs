//! Adds the reply order `director` to the CHECK of `spaces.reply_order`, and `director_provider_id`: the
//! provider whose model chooses the speakers.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::big_integer_null;

use crate::columns::WordColumn;

const TABLE: &str = "spaces";
const ORDERS: WordColumn = WordColumn {
    table: TABLE,
    name: "reply_order",
    new_name: "new_reply_order",
    default: "natural",
};
const PROVIDER: &str = "director_provider_id";
const BEFORE: &[&str] = &["manual", "natural", "list", "pooled"];
const AFTER: &[&str] = &["manual", "natural", "list", "pooled", "director"];

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        ORDERS.set_words(manager, AFTER).await?;
        // Without a foreign key, which SQLite cannot add.
        let column = big_integer_null(PROVIDER);
        let add = Table::alter().table(TABLE).add_column(column).to_owned();
        manager.alter_table(add).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Table::alter().table(TABLE).drop_column(PROVIDER).to_owned();
        manager.alter_table(drop).await?;
        // The rule by which speakers are chosen without a director.
        let replace = "UPDATE spaces SET reply_order = 'natural' WHERE reply_order = 'director'";
        manager.get_connection().execute_unprepared(replace).await?;
        ORDERS.set_words(manager, BEFORE).await
    }
}
