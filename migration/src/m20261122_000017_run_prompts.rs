//! Creates the tables `run_prompts` (the prompt that a run sent, deleted with the run) and
//! `space_variables` (the values of macro variables in a space).

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(run_prompts()).await?;
        let of_conversation = index(
            "prompts_of_a_conversation",
            "run_prompts",
            &["conversation_id", "run_id"],
        );
        manager.create_index(of_conversation).await?;
        manager.create_table(space_variables()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &["space_variables", "run_prompts"]).await
    }
}

fn run_prompts() -> TableCreateStatement {
    Table::create()
        .table("run_prompts")
        .col(uuid("run_id").primary_key())
        .col(big_integer("conversation_id"))
        .col(json_binary("record"))
        .col(instant("created_at"))
        .foreign_key(&mut refers(
            "run_prompts",
            "run_id",
            "conversation_runs",
            ForeignKeyAction::Cascade,
        ))
        .foreign_key(&mut refers(
            "run_prompts",
            "conversation_id",
            "conversations",
            ForeignKeyAction::Cascade,
        ))
        .take()
}

fn space_variables() -> TableCreateStatement {
    let key = Index::create().col("space_id").col("name").take();
    Table::create()
        .table("space_variables")
        .col(big_integer("space_id"))
        .col(text("name"))
        .col(text("value"))
        .primary_key(&mut key.clone())
        .foreign_key(&mut refers(
            "space_variables",
            "space_id",
            "spaces",
            ForeignKeyAction::Cascade,
        ))
        .take()
}
