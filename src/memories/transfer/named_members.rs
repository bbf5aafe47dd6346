//! Finds the members that a file of memories names.
//!
//! **Invariant:** an import creates no memory of another person.

use std::collections::HashMap;

use base::ids::MembershipId;
use recall::content::folded;

use crate::spaces::membership::{MembershipKind, MembershipStatus, Model as Membership};

/// The members of a space by their names, regardless of case.
#[derive(Debug)]
pub struct NamedMembers {
    /// The member with this name; of several ones, the one with the highest rank.
    members: HashMap<String, NamedMember>,
}

#[derive(Clone, Copy, Debug)]
struct NamedMember {
    id: MembershipId,
    /// Whether it is a character, or the person themselves.
    can_own: bool,
    is_active: bool,
}

/// Why a member cannot be the owner of an imported memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerError {
    Unknown,
    AnotherPerson,
}

impl NamedMembers {
    /// Reads the names of the members of a space; `own` is the member that imports.
    pub fn new(members: &[Membership], own: Option<MembershipId>) -> Self {
        let mut by_name: HashMap<String, NamedMember> = HashMap::new();
        for it in members {
            let member = NamedMember {
                id: it.id,
                can_own: it.kind == MembershipKind::Character || Some(it.id) == own,
                is_active: it.status == MembershipStatus::Active,
            };
            let known = by_name
                .entry(key(&it.cached_display_name))
                .or_insert(member);
            if member.rank() > known.rank() {
                *known = member;
            }
        }
        Self { members: by_name }
    }

    /// Returns the member with this name as the owner of a memory.
    ///
    /// # Errors
    /// Returns `Unknown` if there is none, and `AnotherPerson` if it is another person.
    pub fn owner(&self, name: &str) -> Result<MembershipId, OwnerError> {
        match self.members.get(&key(name)) {
            Some(it) if it.can_own => Ok(it.id),
            Some(_) => Err(OwnerError::AnotherPerson),
            None => Err(OwnerError::Unknown),
        }
    }

    /// Returns the member with this name.
    pub fn find(&self, name: &str) -> Option<MembershipId> {
        self.members.get(&key(name)).map(|it| it.id)
    }
}

impl NamedMember {
    /// Returns the rank of a member. Of members with the same name, the highest rank is chosen.
    fn rank(self) -> (bool, bool) {
        (self.can_own, self.is_active)
    }
}

fn key(name: &str) -> String {
    folded(name.trim())
}
