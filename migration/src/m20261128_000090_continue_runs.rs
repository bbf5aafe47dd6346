//! Adds the kind `continue` to the CHECK of `conversation_runs.kind`: a run that extends a message.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

use crate::columns::word;

const TABLE: &str = "conversation_runs";
const COLUMN: &str = "kind";
/// Holds the kinds of the runs on SQLite, until it replaces the column.
const NEW_COLUMN: &str = "new_kind";
const BEFORE: &[&str] = &["user_turn", "auto_mode", "regenerate", "force_talk"];
const AFTER: &[&str] = &[
    "user_turn",
    "auto_mode",
    "regenerate",
    "force_talk",
    "continue",
];

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        set_kinds(manager, AFTER).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // The closest kind: it adds a version to a message, too.
        let replace = "UPDATE conversation_runs SET kind = 'regenerate' WHERE kind = 'continue'";
        manager.get_connection().execute_unprepared(replace).await?;
        set_kinds(manager, BEFORE).await
    }
}

/// Replaces the CHECK of the column.
async fn set_kinds(manager: &SchemaManager<'_>, kinds: &[&'static str]) -> Result<(), DbErr> {
    let connection = manager.get_connection();
    if manager.get_database_backend() == DbBackend::Postgres {
        let words: Vec<String> = kinds.iter().map(|it| format!("'{it}'")).collect();
        let replace = format!(
            "ALTER TABLE {TABLE} DROP CONSTRAINT {TABLE}_kind_check, \
            ADD CONSTRAINT {TABLE}_kind_check CHECK ({COLUMN} IN ({}))",
            words.join(", ")
        );
        return connection.execute_unprepared(&replace).await.map(|_| ());
    }
    // SQLite cannot change a CHECK, but it drops that of a column together with the column.
    let column = word(NEW_COLUMN, "user_turn", kinds);
    let add = Table::alter().table(TABLE).add_column(column).to_owned();
    manager.alter_table(add).await?;
    let copy = format!("UPDATE {TABLE} SET {NEW_COLUMN} = {COLUMN}");
    connection.execute_unprepared(&copy).await?;
    let drop = Table::alter().table(TABLE).drop_column(COLUMN).to_owned();
    manager.alter_table(drop).await?;
    let rename = Table::alter()
        .table(TABLE)
        .rename_column(NEW_COLUMN, COLUMN)
        .to_owned();
    manager.alter_table(rename).await
}
