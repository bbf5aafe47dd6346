//! Computes the random numbers and hashes of the lorebook engine from a seed and a text, such as
//! the key of an entry.
//!
//! **Invariant:** the roll of one entry does not depend on the others. So a preview agrees with the
//! run after it, and a new entry does not change the rolls of the rest.

/// Returns a number in 0.0..1.0.
pub fn roll(seed: u64, name: &str) -> f64 {
    const STEP: f64 = 1.0 / (1u64 << 53) as f64;
    (mix_hash(seed, name) >> 11) as f64 * STEP
}

/// Mixes a text into `hash`.
pub fn mix_hash(hash: u64, text: &str) -> u64 {
    // The length is mixed in first, so that ("ab", "c") and ("a", "bc") differ.
    let mut hash = splitmix64(hash ^ (text.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    for piece in text.as_bytes().chunks(8) {
        let mut bytes = [0; 8];
        bytes[..piece.len()].copy_from_slice(piece);
        hash = splitmix64(hash ^ u64::from_le_bytes(bytes));
    }
    hash
}

/// One round of SplitMix64.
fn splitmix64(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::roll;

    #[test]
    fn a_roll_depends_on_its_name_and_the_seed_alone() {
        assert_eq!(roll(1, "a").to_bits(), roll(1, "a").to_bits());
        assert_ne!(roll(1, "a").to_bits(), roll(1, "b").to_bits());
        assert_ne!(roll(1, "a").to_bits(), roll(2, "a").to_bits());
    }

    #[test]
    fn rolls_are_uniform() {
        let mut counts = [0_u32; 10];

        for seed in 0..10_000 {
            counts[(roll(seed, "7.12") * 10.0) as usize] += 1;
        }

        assert!(
            counts.iter().all(|it| (880..1_120).contains(it)),
            "{counts:?}"
        );
    }
}
