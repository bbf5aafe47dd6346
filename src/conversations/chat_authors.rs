//! Whose the messages of a chat file are: from names to seats. Pure.
//!
//! Who imports may have said it name by name. Where they have not, a name belongs to the seat that
//! has it, as its name or as an alias, and one that left counts too. The first person whom nobody
//! here is called after is whoever imports: files of other frontends call their owner as they
//! please. Everybody else gets a seat of their own, which is empty: history keeps the name.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;

use crate::ids::MembershipId;
use crate::spaces::membership::{MembershipKind, MembershipStatus, Model};

/// So many authors get seats of their own; all others share one.
const MAX_NEW: usize = 200;

/// Who shares it.
const OTHERS_NAME: &str = "Others";

/// What was said of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorChoice {
    Membership(MembershipId),
    /// A seat of its own, whoever else has the name.
    New,
}

/// A person or a character by the name they have in the file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AuthorName {
    pub name: String,
    pub is_user: bool,
}

/// Who wrote a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorTarget {
    Existing(MembershipId),
    /// Nobody yet: a seat is to be made, and told by [`Authors::seat`].
    New(AuthorName),
}

impl AuthorName {
    /// Which kind of seat they get.
    pub fn kind(&self) -> MembershipKind {
        match self.is_user {
            true => MembershipKind::Human,
            false => MembershipKind::Character,
        }
    }
}

/// Everybody who may have written something.
#[derive(Debug)]
pub struct AuthorMap {
    members: Vec<(MembershipKind, MembershipStatus, Vec<String>, MembershipId)>,
    /// Whoever imports, until a name is theirs.
    importer: Option<MembershipId>,
    chosen: HashMap<String, AuthorChoice>,
    known: HashMap<AuthorName, AuthorTarget>,
    n_new: usize,
}

impl AuthorMap {
    /// The seats of a space, whoever imports, and what they said of the names.
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
            chosen,
            known: HashMap::new(),
            n_new: 0,
        }
    }

    /// Whose a name is; the same one each time.
    pub fn resolve(&mut self, name: AuthorName) -> AuthorTarget {
        if let Some(author) = self.known.get(&name) {
            return author.clone();
        }
        let author = match self.chosen.get(&name.name) {
            Some(AuthorChoice::Membership(seat)) => AuthorTarget::Existing(*seat),
            Some(AuthorChoice::New) => self.new_author(&name),
            None => self.resolve_unchosen(&name),
        };
        self.known.insert(name, author.clone());
        author
    }

    /// Tells which seat was made for a new author.
    pub fn set_membership(&mut self, new: &AuthorName, seat: MembershipId) {
        for author in self.known.values_mut() {
            if *author == AuthorTarget::New(new.clone()) {
                *author = AuthorTarget::Existing(seat);
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
        // One of the right kind before any other, one who is here before one who left.
        matches.sort_by_key(|(kind, status, _, _)| {
            (*kind != name.kind(), *status != MembershipStatus::Active)
        });
        if let Some((_, _, _, seat)) = matches.first() {
            return AuthorTarget::Existing(*seat);
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
