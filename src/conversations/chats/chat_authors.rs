//! Defines `AuthorMap`, which maps the author names of an imported chat file to memberships of the
//! space, or to new ones that the caller must create. No I/O.
//!
//! The importing user may choose a membership for each name. Otherwise a name belongs to the member
//! with this name or alias, former members included. The first unmatched user name is mapped to the
//! importing user, because files of other frontends use arbitrary names for their owner. All other
//! authors get new memberships with status removed, so that history keeps the name. The names in the
//! audience of a whisper are those of members only.

use std::collections::HashMap;

use base::ids::MembershipId;
use tavern::chats::message::{ChatHeader, ChatMessage};
use unicode_normalization::UnicodeNormalization;

use crate::spaces::membership::{MembershipKind, MembershipStatus, Model};

/// Maximum number of new memberships for authors; all further authors share one.
const MAX_NEW: usize = 200;

/// The name of the shared author.
const OTHERS_NAME: &str = "Others";

/// The importing user's choice for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorChoice {
    Membership(MembershipId),
    /// A new membership, even if a member has this name.
    New,
}

/// A user or character as named in the file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AuthorName {
    pub name: String,
    pub is_user: bool,
}

/// The author of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorTarget {
    Existing(MembershipId),
    /// A membership must be created and then reported to [`AuthorMap::set_membership`].
    New(AuthorName),
}

/// The members who see an imported whisper besides its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listeners {
    pub members: Vec<MembershipId>,
    /// Whether any of them is a character.
    pub has_character: bool,
}

impl AuthorName {
    /// Returns the author of a message; a line without a name has that of the header.
    pub fn of_message(message: &ChatMessage, header: &ChatHeader) -> Self {
        let default_name = match message.is_user {
            true => header.user_name.as_deref().unwrap_or("User"),
            false => header.character_name.as_deref().unwrap_or("Character"),
        };
        let name = message.name.as_deref().unwrap_or(default_name);
        Self {
            name: name.to_owned(),
            is_user: message.is_user,
        }
    }

    /// Returns the kind of the author's membership.
    pub fn kind(&self) -> MembershipKind {
        match self.is_user {
            true => MembershipKind::Human,
            false => MembershipKind::Character,
        }
    }
}

/// Resolves the authors of a file and remembers the results.
#[derive(Debug)]
pub struct AuthorMap {
    members: Vec<(MembershipKind, MembershipStatus, Vec<String>, MembershipId)>,
    /// The importing user, until a name is mapped to them.
    importer: Option<MembershipId>,
    /// The importing user, who sees the whispers whose names are unknown.
    reader: Option<MembershipId>,
    chosen: HashMap<String, AuthorChoice>,
    known: HashMap<AuthorName, AuthorTarget>,
    n_new: usize,
}

impl AuthorMap {
    /// Creates a map from the members of a space, the importing user, and their choices for names.
    pub fn new(
        memberships: &[Model],
        importer: Option<MembershipId>,
        chosen: HashMap<String, AuthorChoice>,
    ) -> Self {
        let named = memberships.iter().map(|it| {
            let mut names = vec![fold_name(&it.cached_display_name)];
            names.extend(it.alias_list().iter().map(|it| fold_name(it)));
            (it.kind, it.status, names, it.id)
        });
        Self {
            members: named.collect(),
            importer,
            reader: importer,
            chosen,
            known: HashMap::new(),
            n_new: 0,
        }
    }

    /// Returns the author for a name; the same one each time.
    pub fn resolve(&mut self, name: AuthorName) -> AuthorTarget {
        if let Some(author) = self.known.get(&name) {
            return author.clone();
        }
        let author = match self.chosen.get(&name.name) {
            Some(AuthorChoice::Membership(membership)) => AuthorTarget::Existing(*membership),
            Some(AuthorChoice::New) => self.new_author(&name),
            None => self.resolve_unchosen(&name),
        };
        self.known.insert(name, author.clone());
        author
    }

    /// Returns the members who see a whisper to these names: one for each name, an active one if possible,
    /// or the importing user alone if no name is known.
    pub fn listeners(&self, names: &[String]) -> Listeners {
        let known = names.iter().filter_map(|name| {
            let folded_name = fold_name(name);
            let members = self.members.iter();
            let named = members.filter(|(.., names, _)| names.contains(&folded_name));
            named.min_by_key(|(_, status, ..)| *status != MembershipStatus::Active)
        });
        let (kinds, members): (Vec<_>, Vec<_>) = known.map(|it| (it.0, it.3)).unzip();
        Listeners {
            members: match members.is_empty() {
                true => self.reader.into_iter().collect(),
                false => members,
            },
            has_character: kinds.contains(&MembershipKind::Character),
        }
    }

    /// Returns the persona that an existing human member has in the file: the author's name, if it is
    /// none of the member's names.
    pub fn persona_name(&self, name: &AuthorName, author: &AuthorTarget) -> Option<String> {
        let AuthorTarget::Existing(membership) = author else {
            return None;
        };
        let (kind, _, names, _) = self.members.iter().find(|it| it.3 == *membership)?;
        let plays = name.is_user
            && *kind == MembershipKind::Human
            && !names.contains(&fold_name(&name.name));
        plays.then(|| name.name.clone())
    }

    /// Records the membership that was created for a new author.
    pub fn set_membership(&mut self, new: &AuthorName, membership: MembershipId) {
        for author in self.known.values_mut() {
            if *author == AuthorTarget::New(new.clone()) {
                *author = AuthorTarget::Existing(membership);
            }
        }
    }

    fn resolve_unchosen(&mut self, name: &AuthorName) -> AuthorTarget {
        let folded_name = fold_name(&name.name);
        let mut matches: Vec<_> = self
            .members
            .iter()
            .filter(|(_, _, names, _)| names.contains(&folded_name))
            .collect();
        // Prefer members of the right kind, then active ones.
        matches.sort_by_key(|(kind, status, _, _)| {
            (*kind != name.kind(), *status != MembershipStatus::Active)
        });
        if let Some((_, _, _, membership)) = matches.first() {
            return AuthorTarget::Existing(*membership);
        }
        match self.importer.take_if(|_| name.is_user) {
            Some(importer) => AuthorTarget::Existing(importer),
            None => self.new_author(name),
        }
    }

    fn new_author(&mut self, name: &AuthorName) -> AuthorTarget {
        self.n_new += 1;
        if self.n_new <= MAX_NEW {
            return AuthorTarget::New(name.clone());
        }
        let others = AuthorName {
            name: OTHERS_NAME.to_owned(),
            is_user: false,
        };
        let shared = self.known.entry(others.clone());
        shared.or_insert(AuthorTarget::New(others)).clone()
    }
}

fn fold_name(name: &str) -> String {
    let plain: String = name.trim().nfkc().collect();
    caseless::default_case_fold_str(&plain)
}

#[cfg(test)]
#[path = "chat_authors_tests.rs"]
mod tests;
