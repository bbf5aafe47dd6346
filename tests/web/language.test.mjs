// The language of the page and its formats.
import assert from "node:assert/strict"
import test from "node:test"
import { has, LANGUAGES, locale, matchLocale, setLocale, t } from "../../static/js/base/i18n.js"
import Language from "../../static/js/language.js"
import { dayName, list, listParts, seconds, timeOfDay } from "../../static/js/base/time.js"
import { readSpeakerReason } from "../../static/js/models/queue/speaker_reason.js"
import en from "../../static/js/strings/en.js"
import zh from "../../static/js/strings/zh-CN.js"
import { explain, explainSpeakerReason, explainRun } from "../../static/js/views/components/error_messages.js"
import { MemoryStorage } from "./support.mjs"

// Sets this language until the test ends.
async function useLanguage(context, tag) {
  context.after(() => setLocale("en"))
  await setLocale(tag)
}

test("the first supported language is selected", () => {
  assert.equal(matchLocale(["fr", "zh", "en"]), "zh-CN")
  assert.equal(matchLocale(["en-GB", "zh-CN"]), "en")
  assert.equal(matchLocale(["zh-SG"]), "zh-CN")
  assert.equal(matchLocale(["ja", "fr"]), null)
})

test("the traditional script does not match the simplified one", () => {
  assert.equal(matchLocale(["zh-TW", "en-US"]), "en")
  assert.equal(matchLocale(["zh-Hant", "zh-HK"]), null)
})

test("invalid language tags are ignored", () => {
  assert.equal(matchLocale([null, undefined, "", "a language", "en"]), "en")
})

test("the language changes at once, also for times", async (context) => {
  const noon = new Date(2026, 0, 5, 12, 30).getTime()
  const later = new Date(2026, 5, 5).getTime()

  assert.deepEqual([t("save"), dayName(noon, later)], ["Save", "Monday, January 5"])
  await useLanguage(context, "zh-CN")

  assert.equal(locale(), "zh-CN")
  assert.deepEqual([t("save"), dayName(noon, later), timeOfDay(noon)], ["保存", "1月5日星期一", "12:30"])
  assert.equal(dayName(later, later), "今天")
})

test("a language whose table cannot be loaded changes nothing", async (context) => {
  const broken = { tag: "xx", dir: "ltr", load: () => Promise.reject(new TypeError("offline")) }
  LANGUAGES.push(broken)
  context.after(() => LANGUAGES.pop())

  await assert.rejects(setLocale("xx"), { message: "offline" })

  assert.deepEqual([locale(), t("save")], ["en", "Save"])
})

test("a missing text is shown in English", async (context) => {
  const { save } = zh
  delete zh.save
  context.after(() => {
    zh.save = save
  })
  await useLanguage(context, "zh-CN")

  assert.deepEqual([t("save"), has("save")], ["Save", true])
  assert.deepEqual([t("no.such.key"), has("no.such.key")], ["no.such.key", false])
})

test("singular and plural differ", () => {
  assert.equal(t("sidebar.unread", { n: 1 }), "1 unread message")
  assert.equal(t("sidebar.unread", { n: 2 }), "2 unread messages")
})

test("numbers have the format of the language", () => {
  assert.equal(t("sidebar.unread", { n: 12345 }), "12,345 unread messages")
  assert.equal(seconds(1234), "1.2")
})

test("lists have the format of the language", async (context) => {
  assert.equal(list(["Ann", "Bob", "Eve"]), "Ann, Bob, and Eve")
  assert.equal(
    listParts(["Ann", "Bob"])
      .map(({ value }) => value)
      .join(""),
    "Ann, Bob",
  )
  await useLanguage(context, "zh-CN")

  assert.equal(list(["甲", "乙", "丙"]), "甲、乙和丙")
  assert.equal(
    listParts(["甲", "乙"])
      .map(({ value }) => value)
      .join(""),
    "甲、乙",
  )
})

test("a right-to-left name is isolated from the sentence around it", () => {
  assert.equal(t("queue.trigger", { name: "שרה" }), "Trigger \u2068שרה\u2069")
  assert.equal(t("queue.trigger", { name: "Mina" }), "Trigger Mina")
})

test("spaces are added between Chinese and Latin only", async (context) => {
  await useLanguage(context, "zh-CN")

  assert.equal(t("queue.trigger", { name: "Mina" }), "触发 Mina 发言")
  assert.equal(t("queue.trigger", { name: "米娜" }), "触发米娜发言")
  assert.equal(t("sidebar.unread", { n: 3 }), "3 条未读消息")
  assert.equal(t("member.moved", { name: "小 A", n: 2 }), "小 A 现在排在第 2 位。")
  assert.equal(t("speaker_reason.mentioned", { name: "Mina" }), "提到了“Mina”")
})

test("an error is explained by its field, else by its code, else by the server's message", () => {
  const server = { message: "The server's words." }

  assert.equal(
    explain({ ...server, code: "invalid_value", param: "username" }),
    en["error.invalid_value.username"],
  )
  assert.equal(explain({ ...server, code: "invalid_value", param: "base_url" }), server.message)
  assert.equal(explain({ ...server, code: "username_taken", param: "username" }), en["error.username_taken"])
  assert.equal(explain({ ...server, code: "brand_new" }), server.message)
  assert.equal(explain({ code: "invalid_value" }), en["error.unexpected"])
  assert.equal(explain(undefined), en["error.unexpected"])
  assert.equal(explain({ code: "rate_limited", retryAfter: 90 }), "Too many requests. Please wait 90 seconds.")
})

test("a message of the server is introduced in the language of the page", async (context) => {
  await useLanguage(context, "zh-CN")

  const found = explain({ code: "invalid_value", param: "base_url", message: "This is no URL." })

  assert.equal(found, "填写的内容不符合要求：This is no URL.")
})

test("a failed run is explained by its code", () => {
  assert.equal(explainRun({ error: { code: "no_provider" } }), en["run_error.no_provider"])
  assert.equal(explainRun({ error: { code: "brand_new" } }), en["run_error.unexpected"])
})

test("the reason of a speaker is shown in the language of the page", async (context) => {
  await useLanguage(context, "zh-CN")

  assert.equal(explainSpeakerReason("forced by Ann"), "由 Ann 触发")
  assert.equal(explainSpeakerReason('mentioned "米娜"'), "提到了“米娜”")
  assert.equal(explainSpeakerReason("a reason that is new"), "a reason that is new")
})

test("every reason of the server is known", async () => {
  const { readdirSync, readFileSync } = await import("node:fs")
  const folder = new URL("../../src/speakers/", import.meta.url)
  const code = readdirSync(folder)
    .filter((name) => !name.endsWith("_tests.rs"))
    .map((name) => readFileSync(new URL(name, folder), "utf8"))
    .join("\n")
  const reasons = [
    ...code.matchAll(/(?:Choice|Self)::new\(\s*[\w.]+,\s*(?:format!\()?"((?:[^"\\]|\\.)*)"/g),
  ].map(([, reason]) => reason.replace(/\\"/g, '"').replace(/\{[^}]*\}/g, "Ann"))

  assert.ok(reasons.length >= 6, "reasons are found")
  assert.deepEqual(
    reasons.filter((reason) => readSpeakerReason(reason) === null),
    [],
  )
})

test("a language that is chosen just before the sign-in is loaded first and saved to the account", async (context) => {
  const page = { documentElement: {}, querySelector: () => ({}) }
  context.after(() => {
    delete globalThis.document
    LANGUAGES.pop()
    return setLocale("en")
  })
  globalThis.document = page
  let arrive
  const table = new Promise((resolve) => {
    arrive = () => resolve({ default: { save: "Enregistrer" } })
  })
  LANGUAGES.push({ tag: "fr", dir: "ltr", load: () => table })
  const saved = []
  const session = { changeLocale: async (tag) => saved.push(tag) }
  const language = new Language({ local: new MemoryStorage(), session })
  const order = []

  const choice = language.chooseSignedOut("fr", () => order.push("redrawn"))
  const signedIn = language.useLanguageOf({ locale: "en" }).then(() => order.push("signed in"))
  arrive()
  await Promise.all([choice, signedIn])

  assert.deepEqual([locale(), t("save"), saved], ["fr", "Enregistrer", ["fr"]])
  assert.deepEqual(order, ["redrawn", "signed in"])
})
