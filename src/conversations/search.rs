//! Full-text search of messages: parses the search input, and returns the ids of the matching
//! messages, page by page.
//!
//! **Invariant:** search terms are data. They reach the database as bound values: quoted for FTS5,
//! and with wildcards escaped for `LIKE`; no input is interpreted as an expression.
//!
//! Results are limited to the shown text of messages that are not hidden and that the user sees, in the
//! given spaces.
//! Each of the first `MAX_TERMS` words must occur in the text, also as part of another word, in any
//! order.

use base::ids::{SpaceId, UserId};
use sea_orm::sea_query::{Expr, ExprTrait, LikeExpr, SelectStatement, SimpleExpr};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, JoinType, QueryFilter, QueryOrder,
    QuerySelect, QueryTrait, RelationTrait, Select,
};

use crate::conversations::audience::viewer::{Viewer, seen_by_user};
use crate::conversations::message::{Column, Entity, Visibility};
use crate::conversations::{conversation, message, timeline_page};
use crate::db::backend::Backend;
use crate::db::reading::page::{PageKeys, PageQuery};
use crate::spaces::{lifecycle, space};

/// Maximum length of the search input, in characters.
pub const MAX_CHARS: usize = 200;

/// Maximum number of words; more hardly narrow the results.
const MAX_TERMS: usize = 16;

/// Minimum length of words that the trigram index can find.
const INDEXED_CHARS: usize = 3;

/// A search without indexed words scans only this many of the newest messages.
const MAX_SCANNED_MESSAGES: u64 = 50_000;

/// The words to search for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchTerms(Vec<String>);

impl SearchTerms {
    /// Parses the search input; returns `None` if it has no words.
    pub fn parse(text: &str) -> Option<Self> {
        let mut terms: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            if terms.len() < MAX_TERMS && !terms.iter().any(|it| it == word) {
                terms.push(word.to_owned());
            }
        }
        (!terms.is_empty()).then_some(Self(terms))
    }

    /// Returns the words.
    pub fn words(&self) -> &[String] {
        &self.0
    }

    fn indexed_words(&self) -> impl Iterator<Item = &String> {
        self.0
            .iter()
            .filter(|it| it.chars().count() >= INDEXED_CHARS)
    }

    fn has_indexed_word(&self) -> bool {
        self.indexed_words().next().is_some()
    }

    /// Returns an FTS5 expression: quoted strings, all of which must match.
    fn to_fts_query(&self) -> String {
        let quoted: Vec<String> = self
            .indexed_words()
            .map(|it| format!("\"{}\"", it.replace('"', "\"\"")))
            .collect();
        quoted.join(" AND ")
    }
}

/// The spaces whose messages are searched, and for whom.
#[derive(Clone, Copy, Debug)]
pub enum SearchScope {
    Space(SpaceId, Viewer),
    /// All spaces in which the user is an active member.
    SpacesOfUser(UserId),
}

impl SearchScope {
    /// Selects the ids of the spaces.
    fn space_ids(self) -> SelectStatement {
        let spaces = match self {
            Self::Space(id, _) => space::Entity::find_by_id(id),
            Self::SpacesOfUser(user) => lifecycle::select_for_user(user),
        };
        spaces.select_only().column(space::Column::Id).into_query()
    }

    /// Returns the condition that a message is not a whisper to others.
    fn audience_condition(self) -> SimpleExpr {
        match self {
            Self::Space(_, viewer) => viewer.condition((Entity, Column::Audience)),
            Self::SpacesOfUser(user) => seen_by_user(user),
        }
    }
}

/// Returns the keys of a page of the messages that match all terms, newest first or, towards the
/// newest, oldest first.
pub async fn load_keys(
    db: &impl ConnectionTrait,
    backend: Backend,
    terms: &SearchTerms,
    scope: SearchScope,
    page: PageQuery,
) -> Result<PageKeys<i64>, DbErr> {
    let select = query(terms, scope, backend);
    let key = (Column::Id, timeline_page::stored_bytes());
    page.load_keys(select, key, !page.is_towards_newest(), db)
        .await
}

/// Selects the messages of a scope that match all terms.
fn query(terms: &SearchTerms, scope: SearchScope, backend: Backend) -> Select<Entity> {
    let mut all = Condition::all();
    if backend == Backend::Sqlite && terms.has_indexed_word() {
        all = all.add(matches_index(terms.to_fts_query()));
    }
    for word in terms.words() {
        // SQLite: the index condition above already covers these words. PostgreSQL: this condition
        // uses the index.
        let is_indexed = word.chars().count() >= INDEXED_CHARS;
        if backend == Backend::Postgres || !is_indexed {
            all = all.add(contains(word, backend));
        }
    }
    if !terms.has_indexed_word() {
        let newest = visible(scope)
            .select_only()
            .column(Column::Id)
            .order_by_desc(Column::Id)
            .limit(MAX_SCANNED_MESSAGES);
        all = all.add(Column::Id.in_subquery(newest.into_query()));
    }
    visible(scope).filter(all)
}

fn visible(scope: SearchScope) -> Select<Entity> {
    Entity::find()
        .join(JoinType::InnerJoin, message::Relation::Conversation.def())
        .filter(conversation::Column::SpaceId.in_subquery(scope.space_ids()))
        .filter(conversation::Column::IsHidden.eq(false))
        .filter(Column::Visibility.ne(Visibility::Hidden))
        .filter(scope.audience_condition())
}

fn matches_index(matching: String) -> SimpleExpr {
    let ids =
        "\"messages\".\"id\" IN (SELECT rowid FROM message_search WHERE message_search MATCH ?)";
    Expr::cust_with_values(ids, [matching])
}

fn contains(word: &str, backend: Backend) -> SimpleExpr {
    let mut pattern = String::from("%");
    for c in word.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    let content = Expr::col((Entity, Column::Content));
    match backend {
        Backend::Sqlite => content.like(LikeExpr::new(pattern).escape('\\')),
        Backend::Postgres => {
            // Backslash is the default escape character; with an `ESCAPE` clause the index is not
            // used.
            Expr::cust_with_exprs("($1 ILIKE $2)", [content, Expr::value(pattern)])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SearchTerms;

    fn words(text: &str) -> Vec<String> {
        SearchTerms::parse(text).map_or_else(Vec::new, |it| it.words().to_vec())
    }

    #[test]
    fn a_query_is_split_into_words() {
        assert_eq!(words("  the  red the door "), ["the", "red", "door"]);
        assert_eq!(words(" \u{3000}\t"), Vec::<String>::new());
        assert_eq!(words("a b c d e f g h i j k l m n o p q r").len(), 16);
    }

    #[test]
    fn words_are_quoted_and_never_act_as_query_operators() {
        let terms = SearchTerms::parse("say\"hi OR NEAR(a content:x* no").unwrap();

        assert_eq!(
            terms.to_fts_query(),
            "\"say\"\"hi\" AND \"NEAR(a\" AND \"content:x*\""
        );
    }

    #[test]
    fn the_minimum_word_length_counts_characters_and_not_bytes() {
        assert!(!SearchTerms::parse("月亮").unwrap().has_indexed_word());
        assert!(SearchTerms::parse("月亮湖").unwrap().has_indexed_word());
    }
}
