//! What all doors share: who calls, how an error looks, how lists are paged.

pub mod error;
