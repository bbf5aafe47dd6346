//! Turns untrusted Markdown into HTML that is safe to insert into a page.
//!
#![doc = include_str!("../README.md")]
//!
//! | module | contents |
//! | --- | --- |
//! | [`renderer`] | the renderer |
//! | [`limits`] | the limits of size and depth |
//! | [`plain_text`] | a text as HTML without Markdown |

pub mod limits;
pub mod plain_text;
pub mod renderer;
