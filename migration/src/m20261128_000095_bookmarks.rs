//! Creates the table `bookmarks`: the messages that a user has marked for themselves.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const BOOKMARKS: &str = "bookmarks";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(bookmarks()).await?;
        let of_message = index("bookmarks_of_message", BOOKMARKS, &["message_id"]);
        manager.create_index(of_message).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &[BOOKMARKS]).await
    }
}

fn bookmarks() -> TableCreateStatement {
    Table::create()
        .table(BOOKMARKS)
        .col(big_integer("user_id"))
        .col(big_integer("message_id"))
        .col(instant("created_at"))
        .primary_key(
            &mut Index::create()
                .name("one_bookmark_per_reader")
                .col("user_id")
                .col("message_id")
                .take(),
        )
        .foreign_key(&mut refers(
            BOOKMARKS,
            "user_id",
            "users",
            ForeignKeyAction::Cascade,
        ))
        .foreign_key(&mut refers(
            BOOKMARKS,
            "message_id",
            "messages",
            ForeignKeyAction::Cascade,
        ))
        .take()
}
