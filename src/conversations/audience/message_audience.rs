//! The audience of a whisper: the memberships that see it, in one text column of the message, so that
//! a read needs no further statement.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use base::ids::MembershipId;
use sea_orm::DeriveValueType;
use serde::Serialize;
use utoipa::ToSchema;

/// The memberships that see a message, a run or a round; sorted, each once, at least one. What has no
/// audience is seen by everyone. In the database `,3,7,`, so that `LIKE '%,3,%'` finds a membership.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, ToSchema, DeriveValueType)]
#[sea_orm(value_type = "String")]
#[serde(transparent)]
#[schema(value_type = Vec<MembershipId>)]
pub struct Audience(Arc<[MembershipId]>);

impl Audience {
    /// Returns the audience of these memberships; `None` if there are none.
    pub fn new(members: impl IntoIterator<Item = MembershipId>) -> Option<Self> {
        let mut members: Vec<MembershipId> = members.into_iter().collect();
        members.sort_unstable();
        members.dedup();
        (!members.is_empty()).then(|| Self(members.into()))
    }

    /// Returns the memberships, ascending.
    pub fn members(&self) -> &[MembershipId] {
        &self.0
    }

    /// Returns whether this membership sees it.
    pub fn contains(&self, member: MembershipId) -> bool {
        self.0.binary_search(&member).is_ok()
    }

    /// Returns whether everyone who sees what has the audience `readers` sees what has `shown`, too.
    pub fn is_seen_by_all_of(shown: Option<&Self>, readers: Option<&Self>) -> bool {
        match (shown, readers) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(shown), Some(readers)) => readers.members().iter().all(|it| shown.contains(*it)),
        }
    }
}

impl fmt::Display for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(",")?;
        self.0.iter().try_for_each(|it| write!(f, "{it},"))
    }
}

/// A stored audience that is no list of memberships.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a stored audience is not a list of memberships")]
pub struct InvalidAudience;

impl FromStr for Audience {
    type Err = InvalidAudience;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let list = text.strip_prefix(',').and_then(|it| it.strip_suffix(','));
        let members = list.ok_or(InvalidAudience)?.split(',').map(str::parse);
        let members: Vec<MembershipId> = members
            .collect::<Result<_, _>>()
            .map_err(|_| InvalidAudience)?;
        Self::new(members).ok_or(InvalidAudience)
    }
}

#[cfg(test)]
mod tests {
    use base::ids::MembershipId;

    use super::Audience;

    #[test]
    fn an_audience_is_stored_sorted_and_read_back() {
        let audience = Audience::new([7, 3, 7].map(MembershipId)).unwrap();

        assert_eq!(audience.to_string(), ",3,7,");
        assert_eq!(audience.to_string().parse::<Audience>().unwrap(), audience);
        assert_eq!(
            [3, 4].map(|it| audience.contains(MembershipId(it))),
            [true, false]
        );
    }

    #[test]
    fn not_all_of_a_wider_audience_see_what_is_for_some_of_them() {
        let audience = |members: &[i64]| Audience::new(members.iter().copied().map(MembershipId));
        let (pair, one) = (audience(&[3, 7]), audience(&[3]));
        let (pair, one) = (pair.as_ref(), one.as_ref());
        let cases = [
            (None, None),
            (None, one),
            (pair, one),
            (one, pair),
            (pair, pair),
            (one, None),
        ];

        let seen = cases.map(|(shown, readers)| Audience::is_seen_by_all_of(shown, readers));

        assert_eq!(seen, [true, true, true, false, true, false]);
    }

    #[test]
    fn text_that_is_no_list_is_no_audience() {
        for text in ["", ",", ",,", "3", ",x,", ",3"] {
            assert!(text.parse::<Audience>().is_err(), "{text:?}");
        }
        assert_eq!(Audience::new([]), None);
    }
}
