//! Modules of the headers that every answer under `/v1` has: ids and limits (`answer_headers`), and
//! those for pages of other sites (`cors`).

pub mod answer_headers;
pub mod cors;
