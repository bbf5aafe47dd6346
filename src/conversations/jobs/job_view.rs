//! Jobs as the API returns them, from rows of the table `jobs` or from imports: their JSON form,
//! the event `job_updated`, and the list of a user's jobs.

use base::clock::Timestamp;
use base::ids::{ConversationId, JobId, RunId, SpaceId, UserId};
use realtime::envelope::{Envelope, Event};
use realtime::topic::Topic;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};
use serde::Serialize;
use tavern::chats::line_report::LineReport;
use utoipa::ToSchema;

use crate::conversations::chats::import_job;
use crate::conversations::jobs::job;
use crate::conversations::jobs::job::{JobStatus, Model, StoredJobKind};

/// Maximum number of jobs in a list.
const MAX_LISTED: u64 = 50;

/// What a job does, imports included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = JobKind)]
pub enum JobKind {
    ImportChat,
    ImportSpace,
    Branch,
    RegenerateBranch,
    DeleteConversation,
    DeleteSpace,
}

/// A job, visible only to the user who started it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Job)]
pub struct JobView {
    pub id: JobId,
    pub kind: JobKind,
    pub status: JobStatus,
    pub space_id: Option<SpaceId>,
    /// The branch, or the imported or deleted conversation.
    pub conversation_id: Option<ConversationId>,
    /// For a regenerate: its run, once it is queued.
    pub run_id: Option<RunId>,
    /// In messages; for an import, in bytes of the file.
    pub n_done: i64,
    pub n_total: i64,
    /// For an import: lines that were skipped or repaired.
    pub report: Option<LineReport>,
    /// Why the job failed.
    pub error: Option<import_job::ImportFailure>,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

/// A job started, progressed or ended; sent to the sockets of the user who started it.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobUpdated {
    pub job: JobView,
}

impl Event for JobUpdated {
    fn name(&self) -> &'static str {
        "job_updated"
    }
}

impl StoredJobKind {
    fn to_job_kind(self) -> JobKind {
        match self {
            Self::Branch => JobKind::Branch,
            Self::RegenerateBranch => JobKind::RegenerateBranch,
            Self::DeleteConversation => JobKind::DeleteConversation,
            Self::DeleteSpace => JobKind::DeleteSpace,
        }
    }
}

impl Model {
    /// Returns the document of the job.
    pub fn view(&self) -> JobView {
        JobView {
            id: self.id,
            kind: self.kind.to_job_kind(),
            status: self.status,
            space_id: self.space_id,
            conversation_id: self.conversation_id,
            run_id: self.run_id,
            n_done: self.n_done,
            n_total: self.n_total,
            report: None,
            error: self
                .error
                .clone()
                .and_then(|it| serde_json::from_value(it).ok()),
            created_at: self.created_at,
            finished_at: self.finished_at,
        }
    }

    /// Returns the event about the job; `None` if the account of its user was deleted.
    pub fn update_event(&self) -> Option<Envelope> {
        let event = JobUpdated { job: self.view() };
        Some(Envelope::plain(Topic::User(self.user_id?), &event))
    }
}

/// Returns the document of an import as a job.
pub fn import_as_job(row: &import_job::Model) -> JobView {
    let view = row.view();
    JobView {
        id: JobId(view.id.0),
        kind: match view.kind {
            import_job::ImportKind::Chat => JobKind::ImportChat,
            import_job::ImportKind::Space => JobKind::ImportSpace,
        },
        status: match view.status {
            import_job::ImportStatus::Running => JobStatus::Running,
            import_job::ImportStatus::Succeeded => JobStatus::Succeeded,
            import_job::ImportStatus::Failed => JobStatus::Failed,
            import_job::ImportStatus::Canceled => JobStatus::Canceled,
        },
        space_id: view.space_id,
        conversation_id: view.conversation_id,
        run_id: None,
        n_done: view.bytes_read,
        n_total: view.bytes_total,
        report: Some(view.report),
        error: view.error,
        created_at: view.created_at,
        finished_at: view.finished_at,
    }
}

/// Returns the newest jobs and imports of a user, newest first.
pub async fn list_for_user(db: &impl ConnectionTrait, user: UserId) -> Result<Vec<JobView>, DbErr> {
    let jobs = job::Entity::find()
        .filter(job::Column::UserId.eq(user))
        .order_by_desc(job::Column::Id)
        .limit(MAX_LISTED)
        .all(db)
        .await?;
    let imports = import_job::Entity::find()
        .filter(import_job::Column::UserId.eq(user))
        .order_by_desc(import_job::Column::Id)
        .limit(MAX_LISTED)
        .all(db)
        .await?;
    let mut views: Vec<JobView> = jobs.iter().map(Model::view).collect();
    views.extend(imports.iter().map(import_as_job));
    views.sort_by_key(|it| std::cmp::Reverse((it.created_at, it.id)));
    Ok(views)
}
