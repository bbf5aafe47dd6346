//! Adds the columns `talkativeness` to characters (filled from their cards), `kind` to rounds
//! (whether a user's message or auto mode started them) and `auto_mode_turns` to conversations
//! (turns of auto mode since a user's last message).

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;
use sea_orm_migration::sea_orm::DbBackend;

/// What is added, as table and column.
const COLUMNS: [(&str, &str); 3] = [
    ("characters", "talkativeness"),
    ("conversation_rounds", "kind"),
    ("conversations", "auto_mode_turns"),
];

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let definitions = [
            double_null("talkativeness"),
            word("kind", "user_turn", &["user_turn", "auto_mode"]),
            big_integer("auto_mode_turns").default(0).take(),
        ];
        for ((table, _), definition) in COLUMNS.into_iter().zip(definitions) {
            let add = Table::alter()
                .table(table)
                .add_column(definition)
                .to_owned();
            manager.alter_table(add).await?;
        }
        fill_talkativeness(manager).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in COLUMNS {
            let drop = Table::alter().table(table).drop_column(column).to_owned();
            manager.alter_table(drop).await?;
        }
        Ok(())
    }
}

/// From the cards that are there; what is stored there is a number since its import.
async fn fill_talkativeness(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let (stated, is_number) = match manager.get_database_backend() {
        DbBackend::Sqlite => (
            "json_extract(card, '$.data.extensions.talkativeness')",
            "json_type(card, '$.data.extensions.talkativeness') IN ('integer', 'real')",
        ),
        _ => (
            "CAST(card #>> '{data,extensions,talkativeness}' AS DOUBLE PRECISION)",
            "jsonb_typeof(card #> '{data,extensions,talkativeness}') = 'number'",
        ),
    };
    let fill = format!(
        "UPDATE characters SET talkativeness = CASE WHEN {stated} < 0 THEN 0 \
         WHEN {stated} > 1 THEN 1 ELSE {stated} END WHERE {is_number}"
    );
    manager.get_connection().execute_unprepared(&fill).await?;
    Ok(())
}
