//! Saves the state that the prompts of a conversation share: variables, and where their histories
//! begin.

use base::ids::ConversationId;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::Expr;

use crate::conversations::conversation::{Column, Entity};

/// Saves the variables of macros and lorebooks. The row is locked.
pub async fn set_variables(
    tx: &impl ConnectionTrait,
    id: ConversationId,
    variables: Json,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Variables, Expr::value(variables))
        .filter(Column::Id.eq(id))
        .exec(tx)
        .await?;
    Ok(())
}

/// Saves where the histories of prompts begin. The row is locked.
pub async fn set_prompt_starts(
    tx: &impl ConnectionTrait,
    id: ConversationId,
    starts: Json,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::PromptStarts, Expr::value(starts))
        .filter(Column::Id.eq(id))
        .exec(tx)
        .await?;
    Ok(())
}
