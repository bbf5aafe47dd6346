//! Pads a list of ids for `IN (…)` to a power of two by repeating the last id, so that lists of
//! different lengths share few prepared statements. No I/O.

/// Repeats the last id until their number is a power of two. Each number of ids is a statement of
/// its own, and a connection keeps only 100 prepared statements.
pub fn padded<T: Copy>(ids: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut ids: Vec<T> = ids.into_iter().collect();
    if let Some(last) = ids.last().copied() {
        ids.resize(ids.len().next_power_of_two(), last);
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::padded;

    #[test]
    fn the_last_id_is_repeated_up_to_a_power_of_two() {
        assert_eq!(padded([1, 2, 3]), [1, 2, 3, 3]);
        assert_eq!(padded([1]), [1]);
        assert_eq!(padded([0; 0]), [0; 0]);
    }
}
