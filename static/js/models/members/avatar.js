// The address of a small picture, and the avatar of someone without a picture: up to two initials and a
// hue that depends on the name only.
const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" })

export function initials(name) {
  const words = (name ?? "").trim().split(/\s+/).filter(Boolean)
  const first = words.length > 1 ? [words[0], words.at(-1)] : words
  return first.map(firstGrapheme).join("").toLocaleUpperCase() || "?"
}

// `url` is that of the API, with the hash of the picture.
export function thumbnailUrl(url) {
  return `${url}&size=thumbnail`
}

// Returns 0–11: an index into the twelve hues of the design.
export function hue(name) {
  let sum = 7
  for (const sign of (name ?? "").normalize("NFKC")) sum = (sum * 31 + sign.codePointAt(0)) % 1_000_003
  return sum % 12
}

function firstGrapheme(word) {
  for (const { segment } of segmenter.segment(word)) return segment
  return ""
}
