//! Cards in PNG files: whatever the chunks are, they are read within their limits, and a card that
//! comes out of one is a card.

use std::io::Cursor;

use tavern::cards::{png, png_chunks};

use crate::card;

/// Reads the bytes as a file, and as what stands in the chunks of one.
pub fn is_held(data: &[u8]) {
    read(data);
    read(&framed(data));
}

fn read(file: &[u8]) {
    let Ok(found) = png::read(Cursor::new(file)) else {
        return;
    };
    for it in &found.assets {
        let bytes = png::read_asset(Cursor::new(file), it);
        assert!(bytes.is_none_or(|it| it.len() <= file.len()));
    }
    for json in [found.v2, found.v3].into_iter().flatten() {
        card::is_held(&json);
    }
}

/// A file whose chunks are right, each of a kind and a length that the bytes tell.
fn framed(mut data: &[u8]) -> Vec<u8> {
    const KINDS: [&[u8; 4]; 6] = [b"tEXt", b"zTXt", b"iTXt", b"IHDR", b"IDAT", b"IEND"];
    let mut file = png::SIGNATURE.to_vec();
    while let [kind, length, rest @ ..] = data {
        let (chunk, rest) = rest.split_at(rest.len().min(usize::from(*length) * 4));
        png_chunks::push_chunk(&mut file, KINDS[usize::from(*kind) % KINDS.len()], chunk);
        data = rest;
    }
    png_chunks::push_chunk(&mut file, b"IEND", b"");
    file
}
