//! Table `tool_approvals`: tool calls that a moderator must approve or refuse, with their JSON form
//! and event.
//!
//! **Invariant:** an approval is decided once. It is open only while its run executes under the
//! lease under which it was requested: another execution requests it again.
//!
//! The arguments may contain the text of a new memory, so they are stored only until the decision. The
//! message stores only the arguments that the tool records.

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, RunId, SpaceId, ToolApprovalId};
use realtime::envelope::Event;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::ExprTrait;
use sea_orm::{Condition, NotSet, QueryOrder, QuerySelect, QueryTrait, Set};
use serde::Serialize;
use utoipa::ToSchema;

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::conversation;
use crate::db::backend;
use crate::db::connect::Db;
use crate::db::string_enum::string_enum;
use crate::runs::store::{queue, run};

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "tool_approvals")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: ToolApprovalId,
    pub conversation_id: ConversationId,
    pub conversation_run_id: RunId,
    pub lease: i64,
    pub space_membership_id: MembershipId,
    pub tool: String,
    /// Empty once it is decided.
    pub arguments: String,
    pub status: ToolApprovalStatus,
    pub decided_by: Option<String>,
    pub created_at: Timestamp,
    pub decided_at: Option<Timestamp>,
    /// Who sees it: the audience of its run; `None`: everyone.
    pub audience: Option<Audience>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

string_enum! {
    /// The state of an approval.
    #[schema(as = ToolApprovalStatus)]
    ToolApprovalStatus { Pending, Approved, Refused, Expired }
}

/// A tool call of a character that needs approval.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ToolApproval)]
pub struct ToolApprovalView {
    pub id: ToolApprovalId,
    pub conversation_id: ConversationId,
    pub run_id: RunId,
    /// The character that wants to call the tool.
    pub membership_id: MembershipId,
    /// The tool's display name.
    pub tool: String,
    /// The arguments as a JSON text.
    pub arguments: String,
    pub status: ToolApprovalStatus,
    /// The display name of the user who decided.
    pub decided_by: Option<String>,
    pub created_at: Timestamp,
}

/// An approval was requested or decided.
#[derive(Debug, Serialize, ToSchema)]
pub struct ToolApprovalUpdated {
    pub conversation_id: ConversationId,
    pub approval: ToolApprovalView,
}

impl Event for ToolApprovalUpdated {
    fn name(&self) -> &'static str {
        "tool_approval_updated"
    }
}

impl Model {
    /// Returns the API document.
    pub fn view(&self) -> ToolApprovalView {
        ToolApprovalView {
            id: self.id,
            conversation_id: self.conversation_id,
            run_id: self.conversation_run_id,
            membership_id: self.space_membership_id,
            tool: self.tool.clone(),
            arguments: self.arguments.clone(),
            status: self.status,
            decided_by: self.decided_by.clone(),
            created_at: self.created_at,
        }
    }
}

/// A tool call for which approval is requested.
#[derive(Clone, Debug)]
pub struct ApprovalRequest {
    pub tool: String,
    pub arguments: String,
}

/// Maximum number of open approvals in one space.
pub const MAX_OPEN: u64 = 8;

/// Requests approvals for a run and marks the run as waiting. Returns the rows in the order of the
/// requests; requests above [`MAX_OPEN`] in the space are left out.
///
/// # Errors
/// Returns the database's error when it fails.
pub async fn request(
    db: &Db,
    run: &run::Model,
    questions: Vec<ApprovalRequest>,
    now: Timestamp,
) -> Result<Vec<Model>, DbErr> {
    let (space, this, kind) = (run.space_id, (run.id, run.lease), db.backend());
    let conversation = run.conversation_id;
    // A run calls tools only for its speaker.
    let Some(speaker) = run.speaker_space_membership_id else {
        return Ok(Vec::new());
    };
    let rows: Vec<ActiveModel> = questions
        .into_iter()
        .map(|it| ActiveModel {
            id: NotSet,
            conversation_id: Set(run.conversation_id),
            conversation_run_id: Set(run.id),
            lease: Set(run.lease),
            space_membership_id: Set(speaker),
            tool: Set(it.tool),
            arguments: Set(it.arguments),
            status: Set(ToolApprovalStatus::Pending),
            decided_by: Set(None),
            created_at: Set(now),
            decided_at: Set(None),
            audience: Set(run.audience.clone()),
        })
        .collect();
    db.write(move |tx| {
        Box::pin(async move {
            // The conversation may have been deleted meanwhile.
            if conversation::lock(tx, conversation).await?.is_none() {
                return Ok(Vec::new());
            }
            backend::serialized_in_space(tx, kind, space).await?;
            drop_abandoned_arguments(tx, conversation).await?;
            let n_open = Entity::find()
                .filter(is_open_in_space(space))
                .count(tx)
                .await?;
            let n_left = MAX_OPEN.saturating_sub(n_open);
            let n_left = usize::try_from(n_left).unwrap_or_default();
            let mut asked = Vec::new();
            for row in rows.into_iter().take(n_left) {
                asked.push(row.insert(tx).await?);
            }
            if !asked.is_empty() {
                queue::set_waiting_for(tx, this, Some(run::WaitingFor::Approval)).await?;
            }
            Ok(asked)
        })
    })
    .await
}

/// Removes the arguments of approvals whose execution ended without a decision.
async fn drop_abandoned_arguments(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Arguments, Expr::value(""))
        .filter(Column::ConversationId.eq(conversation))
        .filter(Column::Status.eq(ToolApprovalStatus::Pending))
        .filter(is_open().not())
        .exec(tx)
        .await
        .map(drop)
}

/// Returns an approval. The caller checks the access to its conversation.
///
/// # Errors
/// Returns the database's error when it fails.
pub async fn find(db: &impl ConnectionTrait, id: ToolApprovalId) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(id).one(db).await
}

/// Returns these approvals, in the order in which they were requested.
///
/// # Errors
/// Returns the database's error when it fails.
pub async fn find_many(
    db: &impl ConnectionTrait,
    ids: &[ToolApprovalId],
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::Id.is_in(ids.iter().copied()))
        .order_by_asc(Column::Id)
        .all(db)
        .await
}

/// Returns the open approvals of a conversation that the viewer sees, oldest first.
///
/// # Errors
/// Returns the database's error when it fails.
pub async fn list_open(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
    viewer: Viewer,
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::ConversationId.eq(conversation))
        .filter(is_open())
        .filter(viewer.condition((Entity, Column::Audience)))
        .order_by_asc(Column::Id)
        .all(db)
        .await
}

/// Decides an approval and returns it with its arguments, which are no longer stored. Returns `None` if
/// it was decided already or its run ended.
///
/// # Errors
/// Returns the database's error when it fails.
pub async fn decide(
    db: &Db,
    id: ToolApprovalId,
    status: ToolApprovalStatus,
    by: String,
    now: Timestamp,
) -> Result<Option<Model>, DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            let open = Entity::find_by_id(id).filter(is_open());
            let Some(row) = open.one(tx).await? else {
                return Ok(None);
            };
            let decided = Entity::update_many()
                .set(ActiveModel {
                    arguments: Set(String::new()),
                    status: Set(status),
                    decided_by: Set(Some(by.clone())),
                    decided_at: Set(Some(now)),
                    ..Default::default()
                })
                .filter(Column::Id.eq(id))
                .filter(is_open())
                .exec(tx)
                .await?;
            let decided = (decided.rows_affected == 1).then_some(Model {
                status,
                decided_by: Some(by),
                decided_at: Some(now),
                ..row
            });
            Ok(decided)
        })
    })
    .await
}

/// Expires approvals that were not decided in time or are no longer needed. Returns those that were
/// pending, with their arguments, which are no longer stored.
///
/// # Errors
/// Returns the database's error when it fails.
pub async fn expire(
    db: &Db,
    ids: Vec<ToolApprovalId>,
    now: Timestamp,
) -> Result<Vec<Model>, DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            let pending = Entity::find()
                .filter(Column::Id.is_in(ids))
                .filter(Column::Status.eq(ToolApprovalStatus::Pending))
                .order_by_asc(Column::Id)
                .all(tx)
                .await?;
            let mut expired = Vec::new();
            for row in pending {
                let changed = Entity::update_many()
                    .set(ActiveModel {
                        arguments: Set(String::new()),
                        status: Set(ToolApprovalStatus::Expired),
                        decided_at: Set(Some(now)),
                        ..Default::default()
                    })
                    .filter(Column::Id.eq(row.id))
                    .filter(Column::Status.eq(ToolApprovalStatus::Pending))
                    .exec(tx)
                    .await?;
                if changed.rows_affected == 1 {
                    expired.push(Model {
                        status: ToolApprovalStatus::Expired,
                        decided_at: Some(now),
                        ..row
                    });
                }
            }
            Ok(expired)
        })
    })
    .await
}

/// Condition: pending, and requested by an execution that continues.
fn is_open() -> Condition {
    is_open_where(Condition::all())
}

/// As [`is_open`], in one space.
fn is_open_in_space(space: SpaceId) -> Condition {
    is_open_where(Condition::all().add(run::Column::SpaceId.eq(space)))
}

fn is_open_where(asked_by: Condition) -> Condition {
    let asking = run::Entity::find()
        .select_only()
        .column(run::Column::Id)
        // The literal, because a bound parameter does not match the partial index of running runs.
        .filter(Expr::cust("status = 'running'"))
        .filter(asked_by)
        .filter(Expr::col((run::Entity, run::Column::Lease)).equals((Entity, Column::Lease)));
    Condition::all()
        .add(Column::Status.eq(ToolApprovalStatus::Pending))
        .add(Column::ConversationRunId.in_subquery(asking.into_query()))
}
