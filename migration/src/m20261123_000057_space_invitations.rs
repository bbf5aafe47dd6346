//! Creates the table `space_invitations`, with at most one pending invitation per space and user.
//! `user_id` has no foreign key, so that the response to the inviter does not reveal which ids
//! exist.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const TABLE: &str = "space_invitations";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(space_invitations()).await?;
        let pending = unique(
            "one_pending_invitation_per_space_and_user",
            TABLE,
            &["space_id", "user_id"],
        )
        .and_where(Expr::col("status").eq("pending"))
        .take();
        manager.create_index(pending).await?;
        for (name, columns) in [
            ("invitations_of_a_space", ["space_id", "status"]),
            ("invitations_of_a_user", ["user_id", "status"]),
            ("invitations_by_a_user", ["invited_by", "status"]),
        ] {
            manager.create_index(index(name, TABLE, &columns)).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &[TABLE]).await
    }
}

fn space_invitations() -> TableCreateStatement {
    let roles = ["moderator", "member", "guest"];
    let words = ["pending", "accepted", "declined", "revoked"];
    let cascade = ForeignKeyAction::Cascade;
    Table::create()
        .table(TABLE)
        .col(id())
        .col(big_integer("space_id"))
        .col(big_integer("user_id"))
        .col(word("role", "member", &roles))
        .col(big_integer("invited_by"))
        .col(word("status", "pending", &words))
        .col(instant("created_at"))
        .col(instant("expires_at"))
        .foreign_key(&mut refers(TABLE, "space_id", "spaces", cascade))
        .foreign_key(&mut refers(TABLE, "invited_by", "users", cascade))
        .take()
}
