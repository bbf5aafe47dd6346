// Every key in the code is in the tables, every text is used, and all languages have the same keys.
import assert from "node:assert/strict"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import test from "node:test"
import en from "../../static/js/strings/en.js"
import zh from "../../static/js/strings/zh-CN.js"

const ROOT = new URL("../../static/js", import.meta.url).pathname
const SERVER = new URL("../../src", import.meta.url).pathname
const CRATES = new URL("../../crates", import.meta.url).pathname

function sources(folder, ending) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return entry.name === "strings" ? [] : sources(path, ending)
    return path.endsWith(ending) ? [readFileSync(path, "utf8")] : []
  })
}

const code = sources(ROOT, ".js").join("\n")
const named = new Set(
  [...code.matchAll(/\bt\("([a-z_.]+)"/g)].map(([, key]) => key).filter((key) => key !== "x"),
)
const quoted = new Set([...code.matchAll(/"([a-z_]+\.[a-z_.]+)"/g)].map(([, key]) => key))
const families = [...code.matchAll(/[`]([a-z_]+\.(?:[a-z_]+_)?)\$\{/g)].map(([, prefix]) => prefix)

// A text is a string, or one string for each plural form.
function forms(text) {
  return typeof text === "string" ? [text] : Object.values(text)
}

function blanks(text) {
  return [...new Set(forms(text).flatMap((it) => it.match(/\{\w+\}/g) ?? []))].sort()
}

function keysWhere(table, isWrong) {
  return Object.keys(table).filter((key) => isWrong(table[key], key))
}

test("every key in the code is in the table", () => {
  assert.deepEqual(
    [...named].filter((key) => !(key in en)),
    [],
  )
})

test("every text in the table is used", () => {
  const isUsed = (key) =>
    named.has(key) || quoted.has(key) || families.some((prefix) => key.startsWith(prefix))

  assert.deepEqual(
    Object.keys(en).filter((key) => !isUsed(key)),
    [],
  )
})

// Codes that only programs receive: the client does not send such requests.
const FOR_PROGRAMS = [
  "invalid_json",
  "invalid_type",
  "method_not_allowed",
  "misdirected_request",
  "missing_field",
  "unknown_field",
  "unsupported_media_type",
]

test("every error code of the server has a text", () => {
  const folders = ["api", "extract", "live", "middleware", "ws"]
  const server = [
    readFileSync(join(SERVER, "web/error.rs"), "utf8"),
    ...folders.flatMap((folder) => sources(join(SERVER, "web", folder), ".rs")),
  ].join("\n")
  const codes = [...server.matchAll(/(?:\(\s*[45]\d\d,\s*|conflict\(\s*)"([a-z_]+)"/g)].map(([, it]) => it)

  assert.ok(codes.includes("generation_locked") && codes.includes("username_taken"), "codes are found")
  assert.deepEqual(
    [...new Set(codes)].filter((it) => !(`error.${it}` in en) && !FOR_PROGRAMS.includes(it)).sort(),
    [],
  )
})

test("every code of a failed run has a text", () => {
  const outcome = readFileSync(join(CRATES, "agent/src/outcome.rs"), "utf8")
  const codes = [...outcome.matchAll(/Self::\w+ => "([a-z_]+)"/g)].map(([, it]) => it)

  assert.ok(codes.length >= 12, "codes are found")
  assert.deepEqual(
    codes.filter((it) => !(`run_error.${it}` in en)),
    [],
  )
})

// Returns each part of a language with its keys.
async function parts(tag) {
  const names = readdirSync(join(ROOT, "strings", tag)).sort()
  const tables = names.map((name) => import(join(ROOT, "strings", tag, name)))
  return (await Promise.all(tables)).map((it, at) => [names[at], Object.keys(it.default)])
}

test("both languages have the same keys, in the same parts and the same order", async () => {
  assert.deepEqual(await parts("zh-CN"), await parts("en"))
  assert.deepEqual(Object.keys(zh), Object.keys(en))
})

test("no key is in two parts", async () => {
  const keys = (await parts("en")).flatMap(([, found]) => found)

  assert.deepEqual(
    keys.filter((key, at) => keys.indexOf(key) !== at),
    [],
  )
  assert.ok(keys.length > 0 && keys.every((key) => key in en))
})

test("both languages have the same placeholders", () => {
  const differ = keysWhere(en, (text, key) => blanks(text).join() !== blanks(zh[key] ?? "").join())

  assert.deepEqual(differ, [])
})

test("every plural form is present", () => {
  const lacking = (table, tag) => {
    const ways = new Intl.PluralRules(tag).resolvedOptions().pluralCategories
    return keysWhere(table, (text) => typeof text === "object" && ways.some((way) => !(way in text)))
  }

  assert.deepEqual([lacking(en, "en"), lacking(zh, "zh-CN")], [[], []])
})

test("a text with plural forms has them in both languages", () => {
  assert.deepEqual(
    keysWhere(en, (text, key) => typeof text !== typeof zh[key]),
    [],
  )
})

// Names, and words that are not translated.
const LATIN = new Set(
  (
    "Troupe AI API JSON JSONL JavaScript OpenAI SillyTavern V1 V2 V3 v1 Token PNG CHARX Backyard Responses " +
    "START Ctrl K Alt HTTP MCP Char EM AN D d6 Top Typical Min P A " +
    "DRY XTC Mirostat Tau Eta nsigma GBNF " +
    "YAML UTF U FFFD Risu risum risup"
  ).split(" "),
)

function words(text) {
  return forms(text).flatMap((it) => it.replace(/\{\w+\}/g, "").match(/[A-Za-z][A-Za-z0-9]*/g) ?? [])
}

test("no English word is left in the Chinese table", () => {
  assert.deepEqual(
    keysWhere(zh, (text) => words(text).some((word) => !LATIN.has(word))),
    [],
  )
})

// SillyTavern does not translate these labels.
const SAMPLERS = ["top_p", "top_k", "min_p", "top_a", "typical_p"].map((it) => `preset.${it}`)
const LOCAL_SAMPLERS = ["mirostat_tau", "mirostat_eta", "top_n_sigma"].map((it) => `preset.${it}`)

// Texts without Chinese characters: names and punctuation only.
const SAME_IN_BOTH = ["app.name", "sidebar.many", "announce.message", "message.label", "models.act"]

test("every Chinese text is Chinese", () => {
  const isForeign = (text) =>
    forms(text).some((it) => !/\p{Script=Han}/u.test(it) && /\p{Letter}/u.test(it.replace(/\{\w+\}/g, "")))

  assert.deepEqual(
    keysWhere(zh, (text, key) => isForeign(text) && !SAME_IN_BOTH.includes(key)),
    ["prompt.summary", "prompt.tokens", "runs.tokens", ...SAMPLERS, ...LOCAL_SAMPLERS],
  )
})

test("Chinese is written with its own punctuation", () => {
  const HALF = /\p{Script=Han}[,.;:?!()"'](?!\d)|[,;:?!()"']\p{Script=Han}|\.\.\.|--/u

  assert.deepEqual(
    keysWhere(zh, (text) => forms(text).some((it) => HALF.test(it))),
    [],
  )
})

test("a space is between Chinese and Latin, and none at placeholders", () => {
  const TIGHT = /\p{Script=Han}[A-Za-z0-9]|[A-Za-z0-9]\p{Script=Han}/u
  const LOOSE = /\p{Script=Han} \{|\} \p{Script=Han}/u

  assert.deepEqual(
    keysWhere(zh, (text) => forms(text).some((it) => TIGHT.test(it) || LOOSE.test(it))),
    [],
  )
})
