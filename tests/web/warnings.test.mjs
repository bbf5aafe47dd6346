// Every warning of the server about a file has a text.
import assert from "node:assert/strict"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import test from "node:test"
import { setLocale } from "../../static/js/base/i18n.js"
import { sentenceOf, sentencesOf } from "../../static/js/models/files/import_warnings.js"
import en from "../../static/js/strings/en.js"
import zh from "../../static/js/strings/zh-CN.js"

const FOLDERS = ["../../src", "../../crates"].map((it) => new URL(it, import.meta.url).pathname)

function sources(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return sources(path)
    const isCode = path.endsWith(".rs") && !path.endsWith("_tests.rs")
    return isCode ? [readFileSync(path, "utf8").split("#[cfg(test)]")[0]] : []
  })
}

const server = FOLDERS.flatMap(sources).join("\n")
const codes = [...new Set([...server.matchAll(/Warning::new\(\s*"([a-z_]+)"/g)].map(([, it]) => it))]

test("every code of a warning has a text in both languages, and every text has a code", () => {
  const said = (table) =>
    Object.keys(table)
      .filter((key) => key.startsWith("warning."))
      .map((key) => key.slice("warning.".length))
      .sort()

  assert.ok(codes.includes("kept_as_text") && codes.includes("chat_line_broken"), "codes are found")
  assert.deepEqual(said(en), [...codes].sort())
  assert.deepEqual(said(zh), [...codes].sort())
})

test("every warning of the server has a literal code", () => {
  const made = [...server.matchAll(/Warning::new\(/g)].length
  const read = [...server.matchAll(/Warning::new\(\s*"[a-z_]+"/g)].length

  assert.equal(read, made)
})

test("a warning is shown with its values in the language of the page", async () => {
  const found = {
    warnings: ["`tags` was text; it is kept as a list.", "Something newer.", "Without a code."],
    warnings_coded: [
      { code: "kept_as_list", params: { field: "tags", found: "text" } },
      { code: "of_tomorrow", params: {} },
    ],
  }

  const english = sentencesOf(found)
  await setLocale("zh-CN")
  const chinese = sentencesOf(found)
  const counted = sentenceOf({ code: "assets_missing", params: { n: 2 } })
  const named = sentenceOf({ code: "field_unused", params: { field: "function_calling" } })
  await setLocale("en")

  assert.deepEqual(english, found.warnings)
  assert.match(chinese[0], /tags.*文本.*列表/)
  assert.deepEqual(chinese.slice(1), found.warnings.slice(1))
  assert.match(counted, /2/)
  assert.match(named, /function_calling.*函数调用/)
})
