//! Checks whether a user may read a preset because one of the user's spaces, or a member of one,
//! uses it.

use base::ids::{PresetId, UserId};
use sea_orm::sea_query::{Expr, ExprTrait, SimpleExpr};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect,
    QueryTrait,
};

use crate::db::backend::Backend;
use crate::spaces::{lifecycle, membership, space};

/// Returns whether a space of this user, or one of its members, uses this preset.
pub async fn is_visible_to(
    db: &impl ConnectionTrait,
    backend: Backend,
    user: UserId,
    preset: PresetId,
) -> Result<bool, DbErr> {
    let memberships = membership::Entity::find()
        .select_only()
        .column(membership::Column::SpaceId)
        .filter(membership::Column::PresetId.eq(preset))
        .filter(membership::Column::Status.eq(membership::MembershipStatus::Active));
    let used = Condition::any()
        .add(space::Column::Id.in_subquery(memberships.into_query()))
        .add(preset_id_in_settings(backend).eq(preset.to_string()));
    let met = lifecycle::select_for_user(user)
        .filter(used)
        .one(db)
        .await?;
    Ok(met.is_some())
}

/// Extracts `settings.preset.preset_id` of a space as text, because old settings may contain any
/// value.
fn preset_id_in_settings(backend: Backend) -> SimpleExpr {
    let column = Expr::col((space::Entity, space::Column::Settings));
    match backend {
        Backend::Sqlite => {
            let path = Expr::value("$.preset.preset_id");
            Expr::cust_with_exprs("CAST(json_extract(?, ?) AS TEXT)", [column, path])
        }
        Backend::Postgres => Expr::cust_with_exprs("($1 #>> '{preset,preset_id}')", [column]),
    }
}
