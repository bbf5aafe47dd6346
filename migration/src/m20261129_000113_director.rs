//! Adds the reply order `director` to the CHECK of `spaces.reply_order`, and `director_provider_id`: the
//! provider whose model chooses the speakers.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::big_integer_null;
use sea_orm_migration::sea_orm::DbBackend;

use crate::columns::word;

const TABLE: &str = "spaces";
const ORDER: &str = "reply_order";
/// Holds the orders on SQLite, until it replaces the column.
const NEW_ORDER: &str = "new_reply_order";
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
        set_orders(manager, AFTER).await?;
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
        set_orders(manager, BEFORE).await
    }
}

/// Replaces the CHECK of the column.
async fn set_orders(manager: &SchemaManager<'_>, orders: &[&'static str]) -> Result<(), DbErr> {
    let connection = manager.get_connection();
    if manager.get_database_backend() == DbBackend::Postgres {
        let words: Vec<String> = orders.iter().map(|it| format!("'{it}'")).collect();
        let replace = format!(
            "ALTER TABLE {TABLE} DROP CONSTRAINT {TABLE}_{ORDER}_check, \
            ADD CONSTRAINT {TABLE}_{ORDER}_check CHECK ({ORDER} IN ({}))",
            words.join(", ")
        );
        return connection.execute_unprepared(&replace).await.map(|_| ());
    }
    // SQLite cannot change a CHECK, but it drops that of a column together with the column.
    let column = word(NEW_ORDER, "natural", orders);
    let add = Table::alter().table(TABLE).add_column(column).to_owned();
    manager.alter_table(add).await?;
    let copy = format!("UPDATE {TABLE} SET {NEW_ORDER} = {ORDER}");
    connection.execute_unprepared(&copy).await?;
    let drop = Table::alter().table(TABLE).drop_column(ORDER).to_owned();
    manager.alter_table(drop).await?;
    let rename = Table::alter()
        .table(TABLE)
        .rename_column(NEW_ORDER, ORDER)
        .to_owned();
    manager.alter_table(rename).await
}
