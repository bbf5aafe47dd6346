//! In which seat a caller sits: proved once at the door, carried on as a type.
//!
//! **Invariant:** who may not see a space gets the same 404 as for one that does not exist.

use crate::app::App;
use crate::conversations::conversation;
use crate::http::auth::CurrentUser;
use crate::http::error::ApiError;
use crate::http::error::ApiResult;
use crate::ids::ConversationId;
use crate::ids::SpaceId;
use crate::spaces::membership;
use crate::spaces::permissions::Act;
use crate::spaces::permissions::Standing;
use crate::spaces::space;
use actix_web::FromRequest;
use actix_web::HttpRequest;
use actix_web::dev::Payload;
use actix_web::web::Data;
use futures::future::LocalBoxFuture;
use sea_orm::EntityTrait;
use std::str::FromStr;

/// A caller who may see a space; what else they may do there is asked of it. As an extractor it
/// reads `{space_id}`.
#[derive(Clone, Debug)]
pub struct Seat {
    pub caller: CurrentUser,
    pub space: space::Model,
    /// Their own seat. `None`: an admin who does not sit here.
    pub membership: Option<membership::Model>,
    pub standing: Standing,
}

/// A caller who may see a conversation. As an extractor it reads `{conversation_id}`.
#[derive(Clone, Debug)]
pub struct ConversationSeat {
    pub seat: Seat,
    pub conversation: conversation::Model,
}

impl Seat {
    /// # Errors
    /// 404.
    pub async fn in_space(app: &App, caller: CurrentUser, id: SpaceId) -> ApiResult<Self> {
        let space = space::Entity::find_by_id(id).one(app.db.reader()).await?;
        let space = space.ok_or_else(ApiError::not_found)?;
        let membership = membership::of_user(app.db.reader(), id, caller.id()).await?;
        let membership = membership.filter(|it| it.status == membership::Status::Active);
        let standing = Standing::of(membership.as_ref(), caller.is_admin());
        Ok(Self {
            caller,
            space,
            membership,
            standing: standing.ok_or_else(ApiError::not_found)?,
        })
    }

    /// For what changes nothing.
    ///
    /// # Errors
    /// 403 `forbidden`.
    pub fn may(&self, act: Act) -> ApiResult<()> {
        match self.standing.may(act) {
            true => Ok(()),
            false => Err(ApiError::forbidden(
                "Your role in this space does not allow this.",
            )),
        }
    }

    /// For what changes something: an archived space stays as it is.
    ///
    /// # Errors
    /// 403 `forbidden`, 403 `space_archived`.
    pub fn may_change(&self, act: Act) -> ApiResult<()> {
        self.may(act)?;
        match self.space.status {
            space::Status::Active => Ok(()),
            space::Status::Archived => Err(ApiError::new(
                403,
                "space_archived",
                "This space is archived. Its owner can bring it back.",
            )),
        }
    }

    /// The caller's own seat, for what needs a mouth.
    ///
    /// # Errors
    /// 403 `forbidden` for an admin who does not sit here.
    pub fn own(&self) -> ApiResult<&membership::Model> {
        self.membership
            .as_ref()
            .ok_or_else(|| ApiError::forbidden("Take a seat in this space first."))
    }
}

impl ConversationSeat {
    /// # Errors
    /// 404.
    pub async fn of(app: &App, caller: CurrentUser, id: ConversationId) -> ApiResult<Self> {
        let found = conversation::Entity::find_by_id(id)
            .one(app.db.reader())
            .await?;
        let conversation = found.ok_or_else(ApiError::not_found)?;
        let seat = Seat::in_space(app, caller, conversation.space_id).await?;
        Ok(Self { seat, conversation })
    }
}

impl FromRequest for Seat {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, ApiResult<Self>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let parts = parts(request, payload, "space_id");
        Box::pin(async move {
            let (app, caller, id) = parts?;
            Self::in_space(&app, caller, id).await
        })
    }
}

impl FromRequest for ConversationSeat {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, ApiResult<Self>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let parts = parts(request, payload, "conversation_id");
        Box::pin(async move {
            let (app, caller, id) = parts?;
            Self::of(&app, caller, id).await
        })
    }
}

/// The app, the caller, and the id in the path; what is no number is nowhere.
fn parts<I: FromStr>(
    request: &HttpRequest,
    payload: &mut Payload,
    name: &'static str,
) -> ApiResult<(Data<App>, CurrentUser, I)> {
    let caller = CurrentUser::from_request(request, payload).into_inner()?;
    let id = request.match_info().get(name).and_then(|it| it.parse().ok());
    let app = request.app_data::<Data<App>>().cloned();
    let app = app.ok_or_else(|| ApiError::internal("the server was built without its parts"))?;
    Ok((app, caller, id.ok_or_else(ApiError::not_found)?))
}
