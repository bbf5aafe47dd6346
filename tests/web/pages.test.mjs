// Every page lists the stylesheets it needs, and starts the modules of the client. The build of the server
// packs them.
import assert from "node:assert/strict"
import { readdirSync, readFileSync } from "node:fs"
import test from "node:test"

const ROOT = new URL("../../static", import.meta.url).pathname
const PAGES = readdirSync(ROOT)
  .filter((name) => name.endsWith(".html"))
  .map((name) => ({ name, html: readFileSync(`${ROOT}/${name}`, "utf8") }))

function files(folder, ending) {
  const found = readdirSync(`${ROOT}/${folder}`, { recursive: true })
  return found
    .filter((name) => name.endsWith(ending))
    .map((name) => `/${folder}/${name}`)
    .sort()
}

function read(name) {
  return readFileSync(`${ROOT}${name}`, "utf8")
}

function named(html, pattern) {
  return [...html.matchAll(pattern)].map(([, name]) => name).sort()
}

const styles = (html) => named(html, /rel="stylesheet" href="([^"]+)"/g)

const AT_ONCE = /^import [^"]*"(\.[^"]+)"/gms
const LATER = /\bimport\("(\.[^"]+)"\)/g

// Returns the modules that a page imports, directly or indirectly, by imports of these forms.
function reached(html, forms = [AT_ONCE, LATER]) {
  const waiting = named(html, /<script type="module" src="([^"]+)"/g)
  const found = new Set()
  while (waiting.length > 0) {
    const name = waiting.pop()
    if (found.has(name)) continue
    found.add(name)
    for (const form of forms) {
      for (const [, path] of read(name).matchAll(form)) waiting.push(new URL(path, `file://${name}`).pathname)
    }
  }
  return [...found].sort()
}

test("every module and every stylesheet belongs to a page", () => {
  const modules = files("js", ".js").filter((name) => name !== "/js/theme.js")
  const all = (of) => [...new Set(PAGES.flatMap(({ html }) => of(html)))].sort()

  assert.deepEqual(all((html) => reached(html)), modules)
  assert.deepEqual(all(styles), files("css", ".css"))
})

test("the first screen needs no editor, no settings, no administration and no other language", () => {
  const { html } = PAGES.find(({ name }) => name === "index.html")
  const parts = /^\/js\/(admin|docs|strings\/zh-CN|views\/(lorebooks|presets|providers|prompt|settings))\b/

  assert.deepEqual(
    reached(html, [AT_ONCE]).filter((name) => parts.test(name)),
    [],
  )
})

test("the CSS layers are in order", () => {
  for (const { name, html } of PAGES) {
    const order = [...html.matchAll(/href="\/css\/([^"]+)"/g)].map(([, file]) => file)
    assert.equal(order[0], "tokens.css", name)
    assert.equal(order.at(-1), "utilities.css", name)
  }
})

test("no page contains inline scripts or styles", () => {
  for (const { name, html } of PAGES) {
    assert.equal(/<style|style="|<script>|\son\w+="/.test(html), false, name)
  }
})

test("every icon that the code uses is in the sprite of its page", () => {
  for (const { name, html } of PAGES) {
    const pictures = new Set(named(html, /<symbol id="icon-([a-z-]+)"/g))
    const code = reached(html).map(read).join("\n")
    const used = [...code.matchAll(/(?:icon\(|iconButton\(|icon: )"([a-z-]+)"/g)].map(([, it]) => it)

    assert.deepEqual(
      used.filter((it) => !pictures.has(it)),
      [],
      name,
    )
  }
})

test("HTML is inserted in one module only", () => {
  const code = files("js", ".js").filter((name) => /innerHTML|outerHTML|insertAdjacentHTML/.test(read(name)))

  assert.deepEqual(code, ["/js/base/server_html.js"])
})

test("only the API client sends requests, only the socket opens sockets", () => {
  const naming = (pattern) => files("js", ".js").filter((name) => pattern.test(read(name)))

  assert.deepEqual(naming(/\bfetch\b/), ["/js/api.js"])
  assert.deepEqual(naming(/\bWebSocket\b.*\(/), ["/js/socket.js"])
})
