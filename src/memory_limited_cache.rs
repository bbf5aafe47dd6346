//! Builds caches whose entries may use a given number of bytes together.

use std::hash::Hash;

use moka::sync::Cache;

/// Returns an empty cache. It evicts entries when the sum of what `n_bytes` returns for them exceeds
/// `max_bytes`; `n_bytes` is called once for each insertion.
pub fn memory_limited_cache<K, V>(
    max_bytes: u64,
    n_bytes: impl Fn(&K, &V) -> usize + Send + Sync + 'static,
) -> Cache<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    let weight = move |key: &K, value: &V| u32::try_from(n_bytes(key, value)).unwrap_or(u32::MAX);
    Cache::builder()
        .max_capacity(max_bytes)
        .weigher(weight)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_evicted_when_they_exceed_the_limit() {
        let cache = memory_limited_cache(100, |_: &u32, text: &String| text.len());

        for key in 0..10 {
            cache.insert(key, "x".repeat(30));
        }
        cache.run_pending_tasks();

        assert_eq!(cache.weighted_size(), 90);
        assert_eq!(cache.entry_count(), 3);
    }

    #[test]
    fn an_entry_larger_than_the_limit_is_not_kept() {
        let cache = memory_limited_cache(100, |_: &u32, text: &String| text.len());

        cache.insert(1, "x".repeat(101));
        cache.run_pending_tasks();

        assert_eq!(cache.get(&1), None);
    }
}
