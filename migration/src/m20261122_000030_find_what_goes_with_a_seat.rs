//! Adds indexes on the membership of messages, runs and slots, and on the conversation of rounds
//! and read marks: without them, deleting a membership or a conversation would read these tables
//! completely.

use crate::columns::*;
use sea_orm_migration::prelude::*;

/// Name, table, column.
const INDEXES: [(&str, &str, &str); 5] = [
    ("messages_of_a_seat", "messages", "space_membership_id"),
    (
        "runs_of_a_seat",
        "conversation_runs",
        "speaker_space_membership_id",
    ),
    ("slots_of_a_seat", "round_slots", "space_membership_id"),
    (
        "rounds_of_a_conversation",
        "conversation_rounds",
        "conversation_id",
    ),
    ("marks_of_a_conversation", "read_marks", "conversation_id"),
];

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, table, column) in INDEXES {
            let index = index(name, table, &[column]).take();
            manager.create_index(index).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, table, _) in INDEXES {
            let index = Index::drop().name(name).table(table).to_owned();
            manager.drop_index(index).await?;
        }
        Ok(())
    }
}
