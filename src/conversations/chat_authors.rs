//! Whose the messages of a chat file are: from names to seats. Pure.
//!
//! Who imports may have said it name by name. Where they have not, a name belongs to the seat that
//! has it, as its name or as an alias, and one that left counts too. The first person whom nobody
//! here is called after is whoever imports: files of other frontends call their owner as they
//! please. Everybody else gets a seat of their own, which is empty: history keeps the name.

use crate::ids::MembershipId;
use crate::spaces::membership::MembershipKind;
use crate::spaces::membership::MembershipStatus;
use crate::spaces::membership::Model;
use std::collections::HashMap;
use unicode_normalization::UnicodeNormalization;

/// So many authors get seats of their own; all others share one.
const MAX_NEW: usize = 200;

/// Who shares it.
const OTHERS: &str = "Others";

/// What was said of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Seat(MembershipId),
    /// A seat of its own, whoever else has the name.
    New,
}

/// A person or a character by the name they have in the file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    pub name: String,
    pub is_user: bool,
}

/// Who wrote a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Author {
    Seated(MembershipId),
    /// Nobody yet: a seat is to be made, and told by [`Authors::seat`].
    New(Name),
}

impl Name {
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
pub struct Authors {
    seats: Vec<(MembershipKind, MembershipStatus, Vec<String>, MembershipId)>,
    /// Whoever imports, until a name is theirs.
    importer: Option<MembershipId>,
    chosen: HashMap<String, Choice>,
    known: HashMap<Name, Author>,
    n_new: usize,
}

impl Authors {
    /// The seats of a space, whoever imports, and what they said of the names.
    pub fn of(
        seats: &[Model],
        importer: Option<MembershipId>,
        chosen: HashMap<String, Choice>,
    ) -> Self {
        let named = seats.iter().map(|it| {
            let mut names = vec![folded(&it.cached_display_name)];
            names.extend(it.alias_list().iter().map(|it| folded(it)));
            (it.kind, it.status, names, it.id)
        });
        Self {
            seats: named.collect(),
            importer,
            chosen,
            known: HashMap::new(),
            n_new: 0,
        }
    }

    /// Whose a name is; the same one each time.
    pub fn of_name(&mut self, name: Name) -> Author {
        if let Some(author) = self.known.get(&name) {
            return author.clone();
        }
        let author = match self.chosen.get(&name.name) {
            Some(Choice::Seat(seat)) => Author::Seated(*seat),
            Some(Choice::New) => self.new_one(&name),
            None => self.by_itself(&name),
        };
        self.known.insert(name, author.clone());
        author
    }

    /// Tells which seat was made for a new author.
    pub fn seat(&mut self, new: &Name, seat: MembershipId) {
        for author in self.known.values_mut() {
            if *author == Author::New(new.clone()) {
                *author = Author::Seated(seat);
            }
        }
    }

    fn by_itself(&mut self, name: &Name) -> Author {
        let called = folded(&name.name);
        let mut so_called: Vec<_> = self
            .seats
            .iter()
            .filter(|(_, _, names, _)| names.contains(&called))
            .collect();
        // One of the right kind before any other, one who is here before one who left.
        so_called.sort_by_key(|(kind, status, _, _)| {
            (*kind != name.kind(), *status != MembershipStatus::Active)
        });
        if let Some((_, _, _, seat)) = so_called.first() {
            return Author::Seated(*seat);
        }
        match self.importer.take_if(|_| name.is_user) {
            Some(importer) => Author::Seated(importer),
            None => self.new_one(name),
        }
    }

    fn new_one(&mut self, name: &Name) -> Author {
        self.n_new += 1;
        if self.n_new <= MAX_NEW {
            return Author::New(name.clone());
        }
        let others = Name {
            name: OTHERS.to_owned(),
            is_user: false,
        };
        let shared = self.known.entry(others.clone());
        shared.or_insert(Author::New(others)).clone()
    }
}

fn folded(name: &str) -> String {
    let plain: String = name.trim().nfkc().collect();
    caseless::default_case_fold_str(&plain)
}

#[cfg(test)]
#[path = "chat_authors_tests.rs"]
mod tests;
