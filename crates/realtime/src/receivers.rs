//! Which subscribers of a topic receive an envelope.

use std::sync::Arc;

use base::ids::MembershipId;
use serde::{Deserialize, Serialize};

/// Which subscribers of a topic receive an envelope, by the membership under which they subscribed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receivers {
    #[default]
    Everyone,
    /// These memberships alone.
    Only(Arc<[MembershipId]>),
    /// All but these memberships, subscribers without a membership included.
    Except(Arc<[MembershipId]>),
}

impl Receivers {
    /// Returns whether a subscriber with this membership receives the envelope.
    pub fn include(&self, member: Option<MembershipId>) -> bool {
        let is_in = |list: &[MembershipId]| member.is_some_and(|it| list.contains(&it));
        match self {
            Self::Everyone => true,
            Self::Only(list) => is_in(list),
            Self::Except(list) => !is_in(list),
        }
    }
}
