//! Counts the steps of copilots, and turns copilots off.

use base::ids::{ConversationId, MembershipId};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect, UpdateMany,
};

use crate::spaces::membership::{Column, CopilotMode, Entity, Model, find};

/// Uses one copilot step; the copilot is turned off after the last one. Returns `None` if it was
/// turned off in the meantime.
pub async fn spend_copilot_step(
    db: &impl ConnectionTrait,
    id: MembershipId,
) -> Result<Option<Model>, DbErr> {
    let on = || {
        Entity::update_many()
            .filter(Column::Id.eq(id))
            .filter(Column::CopilotMode.eq(CopilotMode::Full))
    };
    let left = Expr::col(Column::CopilotRemainingSteps);
    let one_less = on()
        .col_expr(Column::CopilotRemainingSteps, left.sub(1))
        .filter(Column::CopilotRemainingSteps.gt(1))
        .exec(db)
        .await?;
    if one_less.rows_affected == 0 {
        let off = disable_copilot(on()).exec(db).await?;
        if off.rows_affected == 0 {
            return Ok(None);
        }
    }
    find(db, id).await
}

/// Turns off all copilots bound to a conversation. Returns their memberships.
pub async fn disable_copilots_in(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
) -> Result<Vec<Model>, DbErr> {
    let bound = Column::CopilotConversationId.eq(conversation);
    let ids: Vec<MembershipId> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(bound)
        .into_tuple()
        .all(db)
        .await?;
    let memberships = || Column::Id.is_in(ids.iter().copied());
    disable_copilot(Entity::update_many())
        .filter(memberships())
        .exec(db)
        .await?;
    Entity::find().filter(memberships()).all(db).await
}

fn disable_copilot(update: UpdateMany<Entity>) -> UpdateMany<Entity> {
    update
        .col_expr(Column::CopilotMode, Expr::value(CopilotMode::None))
        .col_expr(Column::CopilotRemainingSteps, Expr::value(None::<i64>))
        .col_expr(Column::CopilotConversationId, Expr::value(None::<i64>))
}
