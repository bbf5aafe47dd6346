//! Cards in PNG files: any chunks are read within the limits, and extracted cards obey the rules of
//! cards.

use std::io::Cursor;

use tavern::cards::{png, png_chunks};

use crate::card;

/// Reads the bytes as a PNG file, and as the content of the chunks of one.
pub fn check(data: &[u8]) {
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
        card::check(&json);
    }
}

/// A PNG file with well-formed chunks, whose kinds and lengths come from the bytes.
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
