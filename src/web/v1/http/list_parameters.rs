//! Describes the parameters of lists and of requests that create something for the API document. `pagination`
//! parses those of lists.

use utoipa::IntoParams;

/// The page of a list.
#[derive(Clone, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListParameters {
    /// The maximum number of objects; 20 by default.
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<i64>,
    /// `desc`: newest first (default); `asc`: oldest first.
    #[param(pattern = "^(asc|desc)$")]
    pub order: Option<String>,
    /// The id of the object before the page.
    pub after: Option<String>,
}

/// The page of a list of assistants, messages, runs or steps.
#[derive(Clone, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RangeParameters {
    /// The maximum number of objects; 20 by default.
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<i64>,
    /// `desc`: newest first (default); `asc`: oldest first.
    #[param(pattern = "^(asc|desc)$")]
    pub order: Option<String>,
    /// The id of the object before the page.
    pub after: Option<String>,
    /// The id of the object after the page.
    pub before: Option<String>,
}
