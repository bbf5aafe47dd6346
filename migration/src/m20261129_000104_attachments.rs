//! Creates the table `attachments`: the pictures that people add to messages. Adds the column
//! `has_attachments` to messages, so that a page without pictures needs no query for them.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const MESSAGES: &str = "messages";
const ATTACHMENTS: &str = "attachments";
const COLUMN: &str = "has_attachments";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = boolean(COLUMN).default(false).take();
        let add = Table::alter().table(MESSAGES).add_column(column).to_owned();
        manager.alter_table(add).await?;
        manager.create_table(attachments()).await?;
        for index in [
            unique(
                "one_attachment_per_position",
                ATTACHMENTS,
                &["message_id", "position"],
            ),
            index("attachments_of_an_owner", ATTACHMENTS, &["owner_id"]),
            // Garbage collection looks for the assets that nothing refers to.
            index("attachments_by_asset", ATTACHMENTS, &["asset_id"]),
            index(
                "attachments_by_thumbnail",
                ATTACHMENTS,
                &["thumbnail_asset_id"],
            ),
            index("unposted_attachments", ATTACHMENTS, &["created_at"])
                .and_where(Expr::col("message_id").is_null())
                .take(),
            index(
                "attachments_of_hidden_messages",
                ATTACHMENTS,
                &["hidden_at"],
            )
            .and_where(Expr::col("hidden_at").is_not_null())
            .take(),
        ] {
            manager.create_index(index).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &[ATTACHMENTS]).await?;
        let drop = Table::alter()
            .table(MESSAGES)
            .drop_column(COLUMN)
            .to_owned();
        manager.alter_table(drop).await
    }
}

fn attachments() -> TableCreateStatement {
    let refer = |column, table, on_delete| refers(ATTACHMENTS, column, table, on_delete);
    Table::create()
        .table(ATTACHMENTS)
        .col(id())
        .col(big_integer("owner_id"))
        // Null until it is posted.
        .col(big_integer_null("message_id"))
        .col(between("position", 0, 0, 3))
        .col(big_integer("asset_id"))
        .col(big_integer("thumbnail_asset_id"))
        .col(string_len_null("file_name", 255))
        .col(text("alt").default(""))
        .col(big_integer("width"))
        .col(big_integer("height"))
        .col(string_len("media_type", 64))
        .col(big_integer("bytes"))
        .col(instant("created_at"))
        // When its message was deleted for everyone.
        .col(instant_null("hidden_at"))
        .foreign_key(&mut refer("owner_id", "users", ForeignKeyAction::Cascade))
        .foreign_key(&mut refer(
            "message_id",
            MESSAGES,
            ForeignKeyAction::Cascade,
        ))
        .foreign_key(&mut refer("asset_id", "assets", ForeignKeyAction::Restrict))
        .foreign_key(&mut refer(
            "thumbnail_asset_id",
            "assets",
            ForeignKeyAction::Restrict,
        ))
        .take()
}
