// No visible or spoken text is in the code: all of it is in the tables.
import assert from "node:assert/strict"
import { readdirSync, readFileSync } from "node:fs"
import test from "node:test"
import { literals } from "./literals.mjs"

const ROOT = new URL("../../static", import.meta.url).pathname

// Attributes, properties and arguments whose values are visible or spoken.
const SHOWN = new Set([
  "action",
  "alt",
  "aria-description",
  "aria-label",
  "aria-roledescription",
  "aria-valuetext",
  "hint",
  "innerText",
  "label",
  "lead",
  "placeholder",
  "text",
  "textContent",
  "title",
])

// A capitalized word, a sentence, and non-ASCII letters count as text everywhere.
const LIKE_TEXT = /(?<!\p{L})\p{Lu}\p{Ll}|\p{L}[,.!?…] \p{L}|\p{L}[!?…](?:\s|$)|(?!\p{ASCII})\p{L}/u
const WORD = /\p{L}/u

// The arguments of these calls are keys of the tables or browser features.
const NOT_SHOWN = new Set(["t", "has", "querySelector", "querySelectorAll", "closest", "matches"])

// Exceptions, each with its reason.
const EXCEPTIONS = [
  // Stands for a picture in quotations, as the server and prompts write it.
  /^\[Picture: \0\]$/,
  // Names of keys.
  /^(Alt\+)?(Escape|Enter|Tab|Home|End|Delete|Backspace|Page(Up|Down)|Arrow(Up|Down|Left|Right))$/,
  // Names and addresses are the same in every language.
  /^(Ollama|KoboldCpp|OpenAI|Anthropic|Google Gemini|OpenAI (o200k|cl100k)_base|Claude|Mistral|Llama 3|Gemma|Qwen|DeepSeek|English|简体中文|https:\/\/…\/v1)$/,
  /^(Edge|Opera|Samsung Internet|Firefox|Chrome|Safari|Android|Windows|ChromeOS|Linux)$/,
  // Default names for a chat file.
  /^(User|Character)$/,
  // Events, states and methods of the browser.
  /^(AbortError|TimeoutError|Files|Emulation\..*)$/,
]

// Returns the visible literals of a script.
function visible(code) {
  const isShown = ({ text, name, call, argument }) =>
    LIKE_TEXT.test(text) ||
    (WORD.test(text) && (SHOWN.has(name) || (call === "el" && argument >= 2 && name === null)))
  return literals(code)
    .filter(({ call, isCompared }) => !NOT_SHOWN.has(call) && !isCompared)
    .filter(isShown)
    .map(({ text }) => text)
    .filter((text) => !EXCEPTIONS.some((pattern) => pattern.test(text)))
}

// Example programs are not translated, and the words by which emoji are found are not shown.
const NOT_TRANSLATED = ["models/settings/api_examples.js", "models/message/emoji.js"]

function scripts() {
  return readdirSync(`${ROOT}/js`, { recursive: true })
    .filter((name) => name.endsWith(".js") && !name.startsWith("strings/") && !NOT_TRANSLATED.includes(name))
    .map((name) => [name, visible(readFileSync(`${ROOT}/js/${name}`, "utf8"))])
}

test("literals are found with their use", () => {
  const code =
    'f(1, "a", [`b${g("c") + "}"}d`]); /* "no" */ x.title = y ? "e" : /"/ // "no"\nel("p", {}, z && "f")'

  const found = literals(code).map(({ text, name, call, argument }) => [text, name ?? call, argument])

  assert.deepEqual(found, [
    ["a", "f", 1],
    ["c", "g", 0],
    ["}", null, 0],
    ["b\u0000d", "f", 2],
    ["e", "title", 0],
    ["p", "el", 0],
    ["f", "el", 2],
  ])
})

test("a visible text in a view is found", () => {
  const views = [
    'el("p", {}, "then")',
    'el("p", { class: "a b" }, icon("more"), [isOld && "did not fit"])',
    'el("button", { "aria-label": "close" })',
    'button(name, { title: isMuted ? "muted" : t("x") })',
    "node.textContent = `${n} new`",
    'toasts.show("Saved.")',
    'confirm({ action: "delete", title: t("x") })',
    'toasts.show("删除")',
  ]

  assert.deepEqual(
    views.filter((code) => visible(code).length !== 1),
    [],
  )
})

test("other literals are ignored", () => {
  const code = `
    el("p", { class: "card card--slim", "data-card": "failed", role: "alert" }, t("failed.title", { name }))
    button(t("retry"), { look: "small quiet", icon: "retry", click })
    if (event.key === "Escape") node.querySelector("button, a, [tabindex='0']")?.focus()
    el("span", {}, order === "manual" && t("queue.your_turn_manual"))
    this.#say("good", t(\`run_status.\${run.status}\`))`

  assert.deepEqual(visible(code), [])
})

test("no visible text is in the code", () => {
  assert.deepEqual(
    scripts().filter(([, texts]) => texts.length > 0),
    [],
  )
})

test("the pages contain no text except their name", () => {
  for (const page of readdirSync(ROOT).filter((name) => name.endsWith(".html"))) {
    const html = readFileSync(`${ROOT}/${page}`, "utf8")
      .replace(/<!--.*?-->/gs, "")
      // Shown without scripts, in both languages, because none can be selected.
      .replace(/<noscript>.*?<\/noscript>/gs, "")
      // The client replaces it in the language of the page.
      .replace(/<meta name="description"[^>]*>/, "")
    const said = [
      ...html.matchAll(/>([^<]*\p{L}[^<]*)</gu),
      ...html.matchAll(/ (?:aria-label|title|alt|placeholder)="([^"]+)"/g),
    ]

    assert.deepEqual(
      said.map(([, text]) => text.trim()).filter((text) => text !== "Troupe"),
      [],
      page,
    )
  }
})
