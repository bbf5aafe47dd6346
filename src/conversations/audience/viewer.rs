//! For whom messages are read: the condition by which a query leaves out what they may not see.

use base::ids::{MembershipId, UserId};
use sea_orm::sea_query::{Expr, ExprTrait, IntoColumnRef, SimpleExpr};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect, QueryTrait};

use crate::conversations::audience::message_audience::Audience;
use crate::spaces::membership;

/// For whom messages, runs and rounds are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// The server itself: sees everything, and shows it to no one.
    Server,
    /// A member; sees what is for everyone, and whispers in whose audience they are.
    Member(MembershipId),
    /// An admin without a membership: sees only what is for everyone.
    Outsider,
}

impl From<Option<MembershipId>> for Viewer {
    fn from(member: Option<MembershipId>) -> Self {
        member.map_or(Self::Outsider, Self::Member)
    }
}

impl Viewer {
    /// Returns whether they see what has this audience.
    pub fn sees(self, audience: Option<&Audience>) -> bool {
        match (audience, self) {
            (None, _) | (_, Self::Server) => true,
            (Some(audience), Self::Member(member)) => audience.contains(member),
            (Some(_), Self::Outsider) => false,
        }
    }

    /// Returns the pattern with which `LIKE` finds the audiences to which they belong.
    pub fn pattern(self) -> String {
        match self {
            Self::Server => "%".to_owned(),
            Self::Outsider => String::new(),
            Self::Member(member) => format!("%,{member},%"),
        }
    }

    /// Returns the condition that a row with this audience column is seen by them.
    pub fn condition(self, column: impl IntoColumnRef + Clone) -> SimpleExpr {
        let is_public = Expr::col(column.clone()).is_null();
        match self {
            Self::Server => Expr::value(true),
            Self::Outsider => is_public,
            Self::Member(_) => is_public.or(Expr::col(column).like(self.pattern())),
        }
    }
}

/// Returns the condition that a row with this audience column is seen by everyone who sees what has the
/// audience `readers`.
pub fn seen_by_all_of(
    readers: Option<&Audience>,
    column: impl IntoColumnRef + Clone,
) -> SimpleExpr {
    let members = readers.map(Audience::members).unwrap_or_default().iter();
    let includes = |it: &MembershipId| {
        let pattern = Viewer::Member(*it).pattern();
        Expr::col(column.clone()).like(pattern)
    };
    let is_public = Expr::col(column.clone()).is_null();
    match members.map(includes).reduce(ExprTrait::and) {
        None => is_public,
        Some(includes_all) => is_public.or(includes_all),
    }
}

/// Returns the condition that a message is seen by a user, in any space: it is for everyone, or names one
/// of their active memberships. It does not check that the user is in the space.
pub fn seen_by_user(user: UserId) -> SimpleExpr {
    let is_named = "messages.audience LIKE '%,' || CAST(space_memberships.id AS text) || ',%'";
    let own = membership::Entity::find()
        .select_only()
        .column(membership::Column::Id)
        .filter(membership::Column::UserId.eq(user))
        .filter(membership::is_active())
        .filter(Expr::cust(is_named));
    Expr::cust("messages.audience IS NULL").or(Expr::exists(own.into_query()))
}

#[cfg(test)]
mod tests {
    use base::ids::MembershipId;

    use super::Viewer;
    use crate::conversations::audience::message_audience::Audience;

    #[test]
    fn a_whisper_is_seen_by_its_audience_alone() {
        let audience = Audience::new([3, 7].map(MembershipId));
        let viewers = [
            Viewer::Server,
            Viewer::Member(MembershipId(3)),
            Viewer::Member(MembershipId(4)),
            Viewer::Outsider,
        ];

        assert_eq!(
            viewers.map(|it| it.sees(audience.as_ref())),
            [true, true, false, false]
        );
        assert!(viewers.iter().all(|it| it.sees(None)));
    }
}
