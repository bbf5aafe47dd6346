//! Creates the table `imports`: imports of chats and spaces, with their progress, their result, and
//! the hidden space that an import fills before its content becomes visible.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const TABLE: &str = "imports";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(imports()).await?;
        let of_a_user = index("imports_of_a_user", TABLE, &["user_id"]);
        manager.create_index(of_a_user).await?;
        let staged = unique("one_import_per_hidden_space", TABLE, &["hidden_space_id"]);
        manager.create_index(staged).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &[TABLE]).await
    }
}

fn imports() -> TableCreateStatement {
    Table::create()
        .table(TABLE)
        .col(id())
        .col(big_integer("user_id"))
        .col(word("kind", "chat", &["chat", "space"]))
        .col(word(
            "status",
            "running",
            &["running", "succeeded", "failed", "canceled"],
        ))
        // Null once it has ended: what was hidden is shown, or gone.
        .col(big_integer_null("hidden_space_id"))
        // What it made.
        .col(big_integer_null("space_id"))
        .col(big_integer_null("conversation_id"))
        .col(big_integer("n_messages").default(0))
        .col(big_integer("bytes_read").default(0))
        .col(big_integer("bytes_total").default(0))
        .col(document("report"))
        .col(instant("heartbeat_at"))
        .col(instant("created_at"))
        .col(instant_null("finished_at"))
        .foreign_key(&mut refers(
            TABLE,
            "user_id",
            "users",
            ForeignKeyAction::Cascade,
        ))
        .foreign_key(&mut refers(
            TABLE,
            "hidden_space_id",
            "spaces",
            ForeignKeyAction::SetNull,
        ))
        .take()
}
