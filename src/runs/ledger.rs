//! All runs there are, whatever became of them: for those who look back.
//!
//! **Invariant:** reads only, and nothing on the way of a run waits for it.

use crate::conversations::conversation;
use crate::db::connect::Dialect;
use crate::db::dialect;
use crate::ids::ConversationId;
use crate::ids::SpaceId;
use crate::runs::run::Column;
use crate::runs::run::Entity;
use crate::runs::run::Kind;
use crate::runs::run::Status;
use sea_orm::ColumnTrait;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use sea_orm::QuerySelect;
use sea_orm::QueryTrait;
use sea_orm::Select;
use sea_orm::sea_query::Expr;
use sea_orm::sea_query::ExprTrait;

/// Which runs; `None` leaves nobody out.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub conversation: Option<ConversationId>,
    pub space: Option<SpaceId>,
    pub status: Option<Status>,
    pub kind: Option<Kind>,
    /// The code of their error.
    pub error_code: Option<String>,
}

impl Wanted {
    /// The runs that are wanted, in no order.
    pub fn runs(self, dialect: Dialect) -> Select<Entity> {
        let mut runs = Entity::find();
        if let Some(id) = self.conversation {
            runs = runs.filter(Column::ConversationId.eq(id));
        }
        if let Some(id) = self.space {
            let of_space = conversation::Entity::find()
                .select_only()
                .column(conversation::Column::Id)
                .filter(conversation::Column::SpaceId.eq(id));
            runs = runs.filter(Column::ConversationId.in_subquery(of_space.into_query()));
        }
        runs = match self.status {
            // Literals, so that the partial indexes are seen to fit.
            Some(Status::Queued) => runs.filter(Expr::cust("status = 'queued'")),
            Some(Status::Running) => runs.filter(Expr::cust("status = 'running'")),
            Some(status) => runs.filter(Column::Status.eq(status)),
            None => runs,
        };
        if let Some(kind) = self.kind {
            runs = runs.filter(Column::Kind.eq(kind));
        }
        if let Some(code) = self.error_code {
            runs = runs.filter(dialect::json_text(dialect, Column::Error, "code").eq(code));
        }
        runs
    }
}
