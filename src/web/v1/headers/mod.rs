//! Modules of the headers of answers under `/v1`: ids and limits (`answer_headers`), those for pages of
//! other sites (`cors`), the remaining tokens of a space (`space_tokens`), and the names of parameters
//! without effect (`ignored_parameters`).

pub mod answer_headers;
pub mod cors;
pub mod ignored_parameters;
pub mod space_tokens;
