// index.html names every module and stylesheet there is, and nothing that is not there.
import assert from "node:assert/strict"
import { readdirSync, readFileSync } from "node:fs"
import test from "node:test"

const ROOT = new URL("../../static", import.meta.url).pathname
const html = readFileSync(`${ROOT}/index.html`, "utf8")

function files(folder, ending) {
  const found = readdirSync(`${ROOT}/${folder}`, { recursive: true })
  return found
    .filter((name) => name.endsWith(ending))
    .map((name) => `/${folder}/${name}`)
    .sort()
}

// Fetched by those who read it.
function isOtherLanguage(name) {
  return name.startsWith("/js/strings/") && !/^\/js\/strings\/en[./]/.test(name)
}

function named(pattern) {
  return [...html.matchAll(pattern)].map(([, name]) => name).sort()
}

test("every module is loaded ahead, so that none waits for the one that names it", () => {
  const modules = files("js", ".js").filter((name) => name !== "/js/theme.js" && !isOtherLanguage(name))

  assert.deepEqual(named(/rel="modulepreload" href="([^"]+)"/g), modules)
})

test("every stylesheet is loaded", () => {
  assert.deepEqual(named(/rel="stylesheet" href="([^"]+)"/g), files("css", ".css"))
})

test("no script and no style stands in the page itself", () => {
  assert.equal(/<style|style="|<script>|\son\w+="/.test(html), false)
})

test("every picture that the code names is in the sprite", () => {
  const pictures = new Set(named(/<symbol id="icon-([a-z-]+)"/g))
  const code = files("js", ".js")
    .map((name) => readFileSync(`${ROOT}${name}`, "utf8"))
    .join("\n")
  const used = [...code.matchAll(/(?:icon\(|iconButton\(|icon: )"([a-z-]+)"/g)].map(([, name]) => name)

  assert.deepEqual(
    used.filter((name) => !pictures.has(name)),
    [],
  )
})

test("HTML enters the page in one place only", () => {
  const code = files("js", ".js").filter((name) =>
    /innerHTML|outerHTML|insertAdjacentHTML/.test(readFileSync(`${ROOT}${name}`, "utf8")),
  )

  assert.deepEqual(code, ["/js/base/server_html.js"])
})

test("only the API client fetches, only the socket opens sockets", () => {
  const naming = (pattern) =>
    files("js", ".js").filter((name) => pattern.test(readFileSync(`${ROOT}${name}`, "utf8")))

  assert.deepEqual(naming(/\bfetch\b/), ["/js/api.js"])
  assert.deepEqual(naming(/\bWebSocket\b.*\(/), ["/js/socket.js"])
})
