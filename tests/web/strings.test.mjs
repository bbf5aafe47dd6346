// Every key that the code names is in the table, and no text stands in the table for nothing.
import assert from "node:assert/strict"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import test from "node:test"
import { t } from "../../static/js/base/i18n.js"
import en from "../../static/js/strings/en.js"

const ROOT = new URL("../../static/js", import.meta.url).pathname

function sources(folder = ROOT) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return entry.name === "strings" ? [] : sources(path)
    return path.endsWith(".js") ? [readFileSync(path, "utf8")] : []
  })
}

const code = sources().join("\n")
const named = new Set(
  [...code.matchAll(/\bt\("([a-z_.]+)"/g)].map(([, key]) => key).filter((key) => key !== "x"),
)
const families = [...code.matchAll(/[`]([a-z_]+\.(?:[a-z_]+_)?)\$\{/g)].map(([, prefix]) => prefix)

test("every key in the code is in the table", () => {
  assert.deepEqual(
    [...named].filter((key) => !(key in en)),
    [],
  )
})

test("every text in the table is used", () => {
  const unused = Object.keys(en).filter(
    (key) => !named.has(key) && !families.some((prefix) => key.startsWith(prefix)),
  )
  assert.deepEqual(unused, [])
})

test("one and many are different words", () => {
  assert.equal(t("rail.unread", { n: 1 }), "1 unread message")
  assert.equal(t("rail.unread", { n: 2 }), "2 unread messages")
})

test("a right-to-left name does not turn the sentence around it", () => {
  assert.equal(t("queue.speak", { name: "שרה" }), "Let \u2068שרה\u2069 speak")
  assert.equal(t("queue.speak", { name: "Mina" }), "Let Mina speak")
})
