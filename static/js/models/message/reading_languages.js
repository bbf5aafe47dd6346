// @ts-check
// Languages to choose from, and their names. Any other language tag can be set with the API.
import { locale } from "../../base/i18n.js"

const TAGS = (
  "ar bg bn ca cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv ms nl no pl pt-BR pt-PT ro ru sk sl " +
  "sr sv ta th tl tr uk ur vi zh-CN zh-TW"
).split(" ")

// Returns `[tag, name]` of each language by name, in the language of the page, with `chosen` if that is another
// one.
export function languageOptions(chosen) {
  const names = new Intl.DisplayNames([locale()], { type: "language" })
  const tags = !chosen || TAGS.includes(chosen) ? TAGS : [...TAGS, chosen]
  const options = tags.map((tag) => [tag, nameOf(names, tag)])
  return options.sort((a, b) => a[1].localeCompare(b[1], locale()))
}

function nameOf(names, tag) {
  try {
    return names.of(tag) ?? tag
  } catch {
    return tag
  }
}
