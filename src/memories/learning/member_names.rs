//! The names of the members of a space, by which a model refers to them.

use std::collections::HashMap;

use base::ids::MembershipId;
use recall::content;

use crate::spaces::membership::{MembershipStatus, Model};

/// The maximum number of names in a request: enough for usual spaces, and few tokens.
const MAX_LISTED: usize = 100;

/// The members of a space by their names and aliases, regardless of case.
#[derive(Clone, Debug, Default)]
pub struct MemberNames {
    by_name: HashMap<String, MembershipId>,
    by_id: HashMap<MembershipId, String>,
    listed: Vec<String>,
}

impl MemberNames {
    /// Reads the names. If names are equal, a present member has priority over a former one, and a name
    /// over an alias.
    pub fn new(members: &[Model]) -> Self {
        let mut names = Self::default();
        let is_active = |it: &&Model| it.status == MembershipStatus::Active;
        let (active, former): (Vec<&Model>, Vec<&Model>) = members.iter().partition(is_active);
        for group in [&active, &former] {
            for it in group {
                names.add(&it.cached_display_name, it.id);
            }
            for it in group {
                let aliases = it.alias_list();
                aliases.iter().for_each(|alias| names.add(alias, it.id));
            }
        }
        let displayed = |it: &Model| (it.id, it.cached_display_name.clone());
        names.by_id = members.iter().map(displayed).collect();
        let listed = active.iter().take(MAX_LISTED);
        names.listed = listed.map(|it| it.cached_display_name.clone()).collect();
        names
    }

    /// Returns the member with this name or alias.
    pub fn find(&self, name: &str) -> Option<MembershipId> {
        self.by_name.get(&folded(name)).copied()
    }

    /// Returns the name of a member.
    pub fn name_of(&self, id: MembershipId) -> Option<&str> {
        self.by_id.get(&id).map(String::as_str)
    }

    /// Returns the names of the present members.
    pub fn listed(&self) -> &[String] {
        &self.listed
    }

    fn add(&mut self, name: &str, id: MembershipId) {
        self.by_name.entry(folded(name)).or_insert(id);
    }
}

fn folded(name: &str) -> String {
    content::folded(name.trim())
}
