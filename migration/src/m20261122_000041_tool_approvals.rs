//! Creates the table `tool_approvals`: the tool calls of runs that a moderator must approve, and
//! the decisions.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const TABLE: &str = "tool_approvals";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(tool_approvals()).await?;
        for (name, column) in [
            ("approvals_of_a_conversation", "conversation_id"),
            ("approvals_of_a_run", "conversation_run_id"),
            ("approvals_of_a_seat", "space_membership_id"),
        ] {
            manager.create_index(index(name, TABLE, &[column])).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &[TABLE]).await
    }
}

fn tool_approvals() -> TableCreateStatement {
    let words = ["pending", "approved", "refused", "expired"];
    let mut table = Table::create();
    table
        .table(TABLE)
        .col(id())
        .col(big_integer("conversation_id"))
        .col(uuid("conversation_run_id"))
        // Under which number the run was executed that asks: another execution asks anew.
        .col(big_integer("lease"))
        .col(big_integer("space_membership_id"))
        .col(text("tool"))
        .col(text("arguments"))
        .col(word("status", "pending", &words))
        .col(text_null("decided_by"))
        .col(instant("created_at"))
        .col(instant_null("decided_at"));
    for (column, of) in [
        ("conversation_id", "conversations"),
        ("conversation_run_id", "conversation_runs"),
        ("space_membership_id", "space_memberships"),
    ] {
        let cascade = ForeignKeyAction::Cascade;
        table.foreign_key(&mut refers(TABLE, column, of, cascade));
    }
    table.take()
}
