//! The use of personas in spaces: whether a persona's name may be used there, the persona of a copilot,
//! and the deletion of a persona.

use base::clock::Timestamp;
use base::ids::{MembershipId, PersonaId, UserId};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter};

use crate::accounts::confusable_names::NameSkeleton;
use crate::db::connect::Db;
use crate::personas::message_persona::MessagePersona;
use crate::personas::persona_store::PersonaError;
use crate::personas::{persona, persona_store};
use crate::spaces::membership;
use crate::spaces::membership::{Column, MembershipStatus, Model};

/// Returns whether a persona's name can be confused with the name of an active member other than
/// `author`, who plays it.
pub fn is_name_taken(members: &[Model], author: MembershipId, name: &str) -> bool {
    let skeleton = NameSkeleton::from_name(name);
    let others = members
        .iter()
        .filter(|it| it.id != author && it.status == MembershipStatus::Active);
    others
        .map(|it| NameSkeleton::from_name(&it.cached_display_name))
        .any(|it| it.is_confusable_with(&skeleton))
}

/// Returns the persona under which the copilot of a member speaks: that of the membership, else the
/// user's default persona. `None` if there is none, or if its name is taken.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find_for_copilot(
    db: &impl ConnectionTrait,
    members: &[Model],
    author: MembershipId,
) -> Result<Option<MessagePersona>, DbErr> {
    let Some(member) = members.iter().find(|it| it.id == author) else {
        return Ok(None);
    };
    let found = find_for_member(db, member).await?;
    let usable = found.filter(|it| !is_name_taken(members, author, &it.name));
    Ok(usable.map(MessagePersona::from))
}

/// Returns the persona of a member's next post, if no other one is chosen for it.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find_for_member(
    db: &impl ConnectionTrait,
    member: &Model,
) -> Result<Option<persona::Model>, DbErr> {
    match member.user_id {
        Some(user) => persona::find_active_or_default(db, user, member.active_persona_id).await,
        None => Ok(None),
    }
}

/// Deletes a persona of a user; no membership uses it any more. Messages keep what they show.
///
/// # Errors
/// Returns `NotFound`, and `Db` when the database fails.
pub async fn delete(
    db: &Db,
    user: UserId,
    id: PersonaId,
    now: Timestamp,
) -> Result<(), PersonaError> {
    db.write(move |tx| {
        Box::pin(async move {
            persona_store::mark_deleted(tx, user, id, now).await?;
            clear(tx, id).await?;
            Ok(())
        })
    })
    .await
}

/// No membership uses the persona any more.
async fn clear(tx: &impl ConnectionTrait, id: PersonaId) -> Result<(), DbErr> {
    membership::Entity::update_many()
        .col_expr(Column::ActivePersonaId, Expr::value(None::<i64>))
        .filter(Column::ActivePersonaId.eq(id))
        .exec(tx)
        .await
        .map(drop)
}
