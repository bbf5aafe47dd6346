//! Table `invites`: the invite links of spaces, with their maximum uses and expiry. Only the link
//! contains the token; the table stores its SHA-256.
//!
//! **Invariant:** a use is counted by one conditional statement, in the transaction that creates
//! the membership. Two users cannot both get the last use, and a failed join counts no use.

use base::clock::Timestamp;
use base::ids::{InviteId, SpaceId, UserId};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::entity::prelude::*;
use sea_orm::{Condition, ExprTrait};
use serde::Serialize;
use utoipa::ToSchema;

use crate::accounts::secret_token;
use crate::db::connect::Db;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::spaces::membership::MembershipRole;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "invites")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: InviteId,
    pub space_id: SpaceId,
    pub token_hash: String,
    /// The role of new members; never owner.
    pub role: MembershipRole,
    /// `None`: unlimited.
    pub max_uses: Option<i64>,
    pub uses: i64,
    /// `None`: never expires.
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// `None`: the creator's account was deleted, so the invite is invalid.
    pub created_by: Option<UserId>,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "crate::spaces::space::Entity",
        from = "Column::SpaceId",
        to = "crate::spaces::space::Column::Id"
    )]
    Space,
}

impl Related<crate::spaces::space::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Space.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}

/// An invite as members with the right to invite see it: everything but its token.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Invite)]
pub struct InviteView {
    pub id: InviteId,
    pub role: MembershipRole,
    pub max_uses: Option<i64>,
    pub uses: i64,
    pub expires_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub created_by: Option<UserId>,
}

impl Model {
    /// Returns the invite's document for members with the right to invite.
    pub fn view(&self) -> InviteView {
        InviteView {
            id: self.id,
            role: self.role,
            max_uses: self.max_uses,
            uses: self.uses,
            expires_at: self.expires_at,
            created_at: self.created_at,
            created_by: self.created_by,
        }
    }

    /// Returns whether the invite has expired or has no uses left.
    pub fn is_used_up(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|it| it <= now)
            || self.max_uses.is_some_and(|most| self.uses >= most)
    }
}

/// A validated invite to be created.
#[derive(Clone, Debug)]
pub struct NewInvite {
    pub space: SpaceId,
    pub role: MembershipRole,
    pub max_uses: Option<i64>,
    pub expires_at: Timestamp,
    pub created_by: UserId,
}

/// Creates an invite. Returns its token, which is not stored and cannot be read again.
pub async fn create(db: &Db, new: NewInvite, now: Timestamp) -> Result<(Model, String), DbErr> {
    let token = secret_token::generate();
    let row = ActiveModel {
        id: NotSet,
        space_id: Set(new.space),
        token_hash: Set(secret_token::hash(&token)),
        role: Set(new.role),
        max_uses: Set(new.max_uses),
        uses: Set(0),
        expires_at: Set(Some(new.expires_at)),
        revoked_at: Set(None),
        created_by: Set(Some(new.created_by)),
        created_at: Set(now),
    };
    let model = db
        .write(move |tx| Box::pin(async move { row.insert(tx).await }))
        .await?;
    Ok((model, token))
}

/// Returns a page of the invites of a space that were not revoked.
pub async fn list_for_space(
    db: &impl ConnectionTrait,
    space: SpaceId,
    page: PageQuery,
) -> Result<PageOf<Model>, DbErr> {
    let invites = Entity::find()
        .filter(Column::SpaceId.eq(space))
        .filter(Column::RevokedAt.is_null());
    page.load(invites, Column::Id, db).await
}

/// Returns an invite, even if it is revoked, expired or used up. The caller checks the access to its
/// space.
pub async fn find(db: &impl ConnectionTrait, id: InviteId) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(id).one(db).await
}

/// Returns the invite with this token, even if it is revoked, expired or used up.
pub async fn find_by_token(db: &impl ConnectionTrait, token: &str) -> Result<Option<Model>, DbErr> {
    Entity::find()
        .filter(Column::TokenHash.eq(secret_token::hash(token)))
        .one(db)
        .await
}

/// Revokes an invite. Returns `false` if it was already revoked or does not exist.
pub async fn revoke(db: &Db, id: InviteId, now: Timestamp) -> Result<bool, DbErr> {
    let revoked = db
        .write(move |tx| {
            Box::pin(async move {
                Entity::update_many()
                    .col_expr(Column::RevokedAt, Expr::value(now))
                    .filter(Column::Id.eq(id))
                    .filter(Column::RevokedAt.is_null())
                    .exec(tx)
                    .await
            })
        })
        .await?;
    Ok(revoked.rows_affected == 1)
}

/// Counts one use of an invite. Returns `false` if it is revoked, expired or has no uses left. A
/// rollback undoes the use.
pub async fn consume_use(
    tx: &impl ConnectionTrait,
    id: InviteId,
    now: Timestamp,
) -> Result<bool, DbErr> {
    let has_uses_left = Condition::any()
        .add(Column::MaxUses.is_null())
        .add(Expr::col(Column::Uses).lt(Expr::col(Column::MaxUses)));
    let is_not_expired = Condition::any()
        .add(Column::ExpiresAt.is_null())
        .add(Column::ExpiresAt.gt(now));
    let consumed = Entity::update_many()
        .col_expr(Column::Uses, Expr::col(Column::Uses).add(1))
        .filter(Column::Id.eq(id))
        .filter(Column::RevokedAt.is_null())
        .filter(has_uses_left)
        .filter(is_not_expired)
        .exec(tx)
        .await?;
    Ok(consumed.rows_affected == 1)
}
