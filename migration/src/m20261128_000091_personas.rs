//! Creates the tables of personas: the roles that a person plays, and every picture of a persona that
//! is shown, by the persona itself or by a message that was posted while it had this picture.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const PERSONAS: &str = "personas";
const PICTURES: &str = "persona_pictures";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let personas = Table::create()
            .table(PERSONAS)
            .col(id())
            .col(big_integer("user_id"))
            .col(string_len("name", 100))
            // Case-folded: each person uses a name once.
            .col(text("name_key"))
            .col(text("description"))
            .col(string_len_null("avatar_hash", 64))
            .col(boolean("is_default").default(false))
            .col(instant("created_at"))
            .col(instant_null("deleted_at"))
            .foreign_key(&mut refers(
                PERSONAS,
                "user_id",
                "users",
                ForeignKeyAction::Cascade,
            ))
            .take();
        manager.create_table(personas).await?;
        let is_kept = || Expr::col("deleted_at").is_null();
        for index in [
            index("personas_of_a_user", PERSONAS, &["user_id"]),
            unique(
                "one_persona_per_user_and_name",
                PERSONAS,
                &["user_id", "name_key"],
            )
            .and_where(is_kept())
            .take(),
            unique("one_default_persona_per_user", PERSONAS, &["user_id"])
                .and_where(Expr::cust("is_default AND deleted_at IS NULL"))
                .take(),
        ] {
            manager.create_index(index).await?;
        }
        let pictures = Table::create()
            .table(PICTURES)
            .col(big_integer("persona_id"))
            .col(string_len("hash", 64))
            .col(big_integer("small_id"))
            .col(big_integer("large_id"))
            .primary_key(Index::create().col("persona_id").col("hash"))
            .foreign_key(&mut refers(
                PICTURES,
                "persona_id",
                PERSONAS,
                ForeignKeyAction::Cascade,
            ))
            .foreign_key(&mut refers(
                PICTURES,
                "small_id",
                "assets",
                ForeignKeyAction::Restrict,
            ))
            .foreign_key(&mut refers(
                PICTURES,
                "large_id",
                "assets",
                ForeignKeyAction::Restrict,
            ))
            .take();
        manager.create_table(pictures).await?;
        for (name, column) in [
            ("persona_pictures_by_small_asset", "small_id"),
            ("persona_pictures_by_large_asset", "large_id"),
        ] {
            manager
                .create_index(index(name, PICTURES, &[column]))
                .await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &[PICTURES, PERSONAS]).await
    }
}
