//! Adds to runs why they were canceled and which message superseded them, and to slots whether a
//! user forced them, so that a later message does not remove a forced turn.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

/// What is added, as table and column.
const COLUMNS: [(&str, &str); 3] = [
    ("conversation_runs", "canceled_because"),
    ("conversation_runs", "superseded_by_message_id"),
    ("round_slots", "forced"),
];

const REASONS: [&str; 12] = [
    "stopped",
    "paused",
    "skipped",
    "superseded",
    "superseded_by_message",
    "speaker_unavailable",
    "auto_mode_off",
    "reply_order_manual",
    "copilot_off",
    "message_hidden",
    "archived",
    "deleted",
];

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let reason = string_len_null("canceled_because", 32)
            .check(Expr::col("canceled_because").is_in(REASONS))
            .take();
        let definitions = [
            reason,
            big_integer_null("superseded_by_message_id"),
            boolean("forced").default(false).take(),
        ];
        for ((table, _), definition) in COLUMNS.into_iter().zip(definitions) {
            let add = Table::alter()
                .table(table)
                .add_column(definition)
                .to_owned();
            manager.alter_table(add).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in COLUMNS {
            let drop = Table::alter().table(table).drop_column(column).to_owned();
            manager.alter_table(drop).await?;
        }
        Ok(())
    }
}
