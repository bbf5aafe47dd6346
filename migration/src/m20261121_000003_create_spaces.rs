//! Creates the tables `spaces` (with their settings), `space_memberships` (each user and character
//! at most once in a space) and `invites` (invite links).

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
        manager.create_table(spaces()).await?;
        manager.create_table(memberships()).await?;
        manager.create_table(invites()).await?;
        manager
            .create_index(unique(
                "one_seat_per_user",
                "space_memberships",
                &["space_id", "user_id"],
            ))
            .await?;
        manager
            .create_index(unique(
                "one_seat_per_character",
                "space_memberships",
                &["space_id", "character_id"],
            ))
            .await?;
        manager
            .create_index(index("seats_of_a_user", "space_memberships", &["user_id"]))
            .await?;
        manager
            .create_index(index(
                "seats_of_a_character",
                "space_memberships",
                &["character_id"],
            ))
            .await?;
        manager
            .create_index(unique("one_invite_per_token", "invites", &["token_hash"]))
            .await?;
        manager
            .create_index(index("invites_of_a_space", "invites", &["space_id"]))
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &["invites", "space_memberships", "spaces"]).await
    }
}

fn spaces() -> TableCreateStatement {
    Table::create()
        .table("spaces")
        .col(id())
        .col(text("name"))
        .col(text("description").default(""))
        .col(big_integer_null("owner_id"))
        .col(word("status", "active", &["active", "archived"]))
        .col(word(
            "reply_order",
            "natural",
            &["manual", "natural", "list", "pooled"],
        ))
        .col(word("replies_per_turn", "one", &["one", "activated"]))
        .col(word(
            "card_handling_mode",
            "swap",
            &["swap", "append", "append_disabled"],
        ))
        .col(boolean("allow_self_responses").default(false))
        .col(boolean("auto_mode_enabled").default(false))
        .col(between("auto_mode_delay_ms", 5_000, 0, 600_000))
        .col(between("auto_mode_max_turns", 8, 1, 100))
        .col(word(
            "during_generation_user_input_policy",
            "queue",
            &["reject", "queue", "restart"],
        ))
        .col(between("user_turn_debounce_ms", 0, 0, 60_000))
        .col(word(
            "group_regenerate_mode",
            "single_message",
            &["single_message", "last_turn"],
        ))
        .col(document("settings"))
        .col(big_integer("settings_version").default(0))
        .col(big_integer("tokens_used").default(0))
        .col(big_integer("token_limit").default(0))
        .col(instant("created_at"))
        .foreign_key(&mut refers(
            "spaces",
            "owner_id",
            "users",
            ForeignKeyAction::SetNull,
        ))
        .take()
}

fn memberships() -> TableCreateStatement {
    Table::create()
        .table("space_memberships")
        .col(id())
        .col(big_integer("space_id"))
        .col(word("kind", "human", &["human", "character"]))
        .col(big_integer_null("user_id"))
        .col(big_integer_null("character_id"))
        .col(word(
            "role",
            "member",
            &["owner", "moderator", "member", "guest"],
        ))
        .col(big_integer("position").default(0))
        .col(word("status", "active", &["active", "removed"]))
        .col(word(
            "participation",
            "active",
            &["active", "muted", "observer"],
        ))
        .col(text("cached_display_name"))
        .col(json_binary("aliases").default("[]"))
        .col(text_null("persona"))
        .col(double_null("talkativeness").check(Expr::col("talkativeness").between(0.0, 1.0)))
        .col(word("copilot_mode", "none", &["none", "full"]))
        .col(
            big_integer_null("copilot_remaining_steps")
                .check(Expr::col("copilot_remaining_steps").between(1, 10)),
        )
        .col(big_integer_null("copilot_conversation_id"))
        .col(big_integer_null("llm_provider_id"))
        .col(big_integer_null("preset_id"))
        .col(document("settings"))
        .col(big_integer("settings_version").default(0))
        .col(instant("created_at"))
        // Both become null only by deletion of the user or the card.
        .check((
            "at_most_one_identity",
            Expr::col("user_id")
                .is_null()
                .or(Expr::col("character_id").is_null()),
        ))
        .foreign_key(&mut refers(
            "space_memberships",
            "space_id",
            "spaces",
            ForeignKeyAction::Cascade,
        ))
        .foreign_key(&mut refers(
            "space_memberships",
            "user_id",
            "users",
            ForeignKeyAction::SetNull,
        ))
        .foreign_key(&mut refers(
            "space_memberships",
            "character_id",
            "characters",
            ForeignKeyAction::SetNull,
        ))
        .foreign_key(&mut refers(
            "space_memberships",
            "llm_provider_id",
            "llm_providers",
            ForeignKeyAction::SetNull,
        ))
        .take()
}

fn invites() -> TableCreateStatement {
    Table::create()
        .table("invites")
        .col(id())
        .col(big_integer("space_id"))
        .col(string_len("token_hash", 64))
        .col(word("role", "member", &["moderator", "member", "guest"]))
        .col(big_integer_null("max_uses").check(Expr::col("max_uses").gte(1)))
        .col(big_integer("uses").default(0))
        .col(instant_null("expires_at"))
        .col(instant_null("revoked_at"))
        .col(big_integer_null("created_by"))
        .col(instant("created_at"))
        .foreign_key(&mut refers(
            "invites",
            "space_id",
            "spaces",
            ForeignKeyAction::Cascade,
        ))
        .foreign_key(&mut refers(
            "invites",
            "created_by",
            "users",
            ForeignKeyAction::SetNull,
        ))
        .take()
}
