//! SHA-256 of short material in pieces, a part of which is always the same.
//!
//! A job ID is a hash of two to four blocks. A hasher of the library copies its buffer, takes ten short pieces one by one
//! and pads in a block of its own, which together cost as much as the hashing. Here the pieces are gathered into whole
//! blocks, padded in place (FIPS 180-4, section 5.1.1), and compressed by the library in one call. The published vectors
//! and the tests below hold it to the library's digest.

use sha2::block_api::compress256;

/// Bytes in a block.
const BLOCK: usize = 64;
/// Blocks that fit on the stack: more than most material has.
const STACK: usize = 6;
/// What padding adds at least: a one bit, and the length in bits.
const PADDING: usize = 1 + 8;

/// The beginning that all material has: whole blocks compressed already, and the rest, which is less than a block.
#[derive(Debug, Clone)]
pub(super) struct Prefix {
    state: [u32; 8],
    compressed: usize,
    rest: [u8; BLOCK],
    rest_len: usize,
}

impl Prefix {
    /// No beginning: the state that FIPS 180-4, section 5.3.3, starts from.
    pub(super) const NONE: Self = Self {
        state: [
            0x6a09_e667,
            0xbb67_ae85,
            0x3c6e_f372,
            0xa54f_f53a,
            0x510e_527f,
            0x9b05_688c,
            0x1f83_d9ab,
            0x5be0_cd19,
        ],
        compressed: 0,
        rest: [0; BLOCK],
        rest_len: 0,
    };

    /// Material that begins with these bytes.
    pub(super) fn new(bytes: &[u8]) -> Self {
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        let mut prefix = Self {
            compressed: bytes.len() - rest.len(),
            rest_len: rest.len(),
            ..Self::NONE
        };
        compress256(&mut prefix.state, blocks);
        prefix.rest[..rest.len()].copy_from_slice(rest);
        prefix
    }

    /// The digest of the beginning and what `write` adds, which is at most `most` bytes.
    #[inline]
    pub(super) fn digest(&self, most: usize, write: impl FnOnce(&mut Run<'_>)) -> [u8; 32] {
        let blocks = (self.rest_len + most + PADDING).div_ceil(BLOCK);
        let mut stack = [[0; BLOCK]; STACK];
        let mut heap = Vec::new();
        let blocks = match stack.get_mut(..blocks) {
            Some(blocks) => blocks,
            None => {
                heap.resize(blocks, [0; BLOCK]);
                &mut heap
            }
        };
        // The whole block of the rest: what follows it is written over.
        blocks[0] = self.rest;
        let mut run = Run {
            space: blocks.as_flattened_mut(),
            filled: self.rest_len,
        };
        write(&mut run);
        let filled = run.filled;
        let blocks = &mut blocks[..(filled + PADDING).div_ceil(BLOCK)];
        let padded = blocks.as_flattened_mut();
        padded[filled] = 0x80;
        let bits = u64::try_from(self.compressed + filled)
            .unwrap_or(u64::MAX)
            .wrapping_mul(8);
        let end = padded.len();
        padded[end - 8..].copy_from_slice(&bits.to_be_bytes());
        let mut state = self.state;
        compress256(&mut state, blocks);
        let mut digest = [0; 32];
        for (bytes, word) in digest.as_chunks_mut::<4>().0.iter_mut().zip(state) {
            *bytes = word.to_be_bytes();
        }
        digest
    }
}

/// Material on its way.
pub(super) struct Run<'a> {
    space: &'a mut [u8],
    filled: usize,
}

impl Run<'_> {
    /// Adds a piece. All pieces together are no more than was said.
    #[inline]
    pub(super) fn add(&mut self, piece: &[u8]) {
        let end = self.filled + piece.len();
        self.space[self.filled..end].copy_from_slice(piece);
        self.filled = end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sha2::{Digest as _, Sha256};

    use super::*;

    /// The digest of material that is cut at these places, the first piece as the beginning.
    fn cut(material: &[u8], beginning: usize, piece: usize, most: usize) -> [u8; 32] {
        let (beginning, rest) = material.split_at(beginning.min(material.len()));
        Prefix::new(beginning).digest(rest.len() + most, |run| {
            rest.chunks(piece).for_each(|piece| run.add(piece))
        })
    }

    #[test]
    fn every_length_around_a_block_s_end_is_padded_as_the_library_pads() {
        for len in 0..600_usize {
            let material: Vec<u8> = (0..len).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let expected: [u8; 32] = Sha256::digest(&material).into();
            for beginning in [0, 1, 54, 63, 64, 65, 118, 128, len] {
                assert_eq!(
                    cut(&material, beginning, 7, 0),
                    expected,
                    "{len} bytes, {beginning} of them the beginning"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn any_material_cut_anyhow_has_the_library_s_digest(
            material in proptest::collection::vec(any::<u8>(), 0..3_000),
            beginning in 0..400_usize,
            piece in 1..200_usize,
            most in 0..300_usize,
        ) {
            let expected: [u8; 32] = Sha256::digest(&material).into();
            prop_assert_eq!(cut(&material, beginning, piece, most), expected);
        }
    }
}
