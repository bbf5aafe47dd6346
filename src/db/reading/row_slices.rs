//! Groups large rows into slices that are small enough to be held in memory: SQL expressions for
//! the stored size of a column, and functions that split a list of rows by their sizes. Never
//! splits a row. No I/O.

use sea_orm::sea_query::{Expr, ExprTrait, Func, IntoColumnRef, SimpleExpr};

/// The maximum number of stored bytes held at the same time, unless a single row is larger.
pub const SLICE_BYTES: i64 = 256 * 1024;

/// Returns the stored bytes of a text or binary column. Neither database reads the value.
pub fn stored_bytes(column: impl IntoColumnRef) -> SimpleExpr {
    let length = Func::cust("octet_length").arg(Expr::col(column));
    length.cast_as("bigint")
}

/// Returns the bytes of a JSON column as text.
pub fn json_bytes(column: impl IntoColumnRef) -> SimpleExpr {
    let text = Expr::col(column).cast_as("text");
    Func::cust("octet_length").arg(text).cast_as("bigint")
}

/// Returns how many of the first rows, given by key and bytes, have at most `max_bytes` together.
/// The first one always counts.
pub fn n_fitting<K>(rows: &[(K, i64)], max_bytes: i64) -> usize {
    let mut total: i64 = 0;
    let fits = rows.iter().enumerate().take_while(|(at, (_, bytes))| {
        total = total.saturating_add(*bytes);
        *at == 0 || total <= max_bytes
    });
    fits.count()
}

/// Splits the rows into slices of at most `max_bytes`, or of one row.
pub fn split_into_slices<K>(mut rows: &[(K, i64)], max_bytes: i64) -> Vec<&[(K, i64)]> {
    let mut slices = Vec::new();
    while !rows.is_empty() {
        let (slice, rest) = rows.split_at(n_fitting(rows, max_bytes));
        slices.push(slice);
        rows = rest;
    }
    slices
}

#[cfg(test)]
mod tests {
    use super::{n_fitting, split_into_slices};

    #[test]
    fn a_slice_has_at_least_one_row_and_at_most_the_allowed_bytes() {
        let rows = [(1, 60), (2, 60), (3, 10), (4, 500), (5, 0)];

        assert_eq!(n_fitting::<i64>(&[], 100), 0);
        assert_eq!(n_fitting(&rows, 10), 1);
        assert_eq!(n_fitting(&rows, 130), 3);
        assert_eq!(n_fitting(&rows, i64::MAX), 5);
        let keys: Vec<Vec<i64>> = split_into_slices(&rows, 100)
            .into_iter()
            .map(|it| it.iter().map(|(key, _)| *key).collect())
            .collect();
        assert_eq!(keys, [vec![1], vec![2, 3], vec![4], vec![5]]);
    }
}
