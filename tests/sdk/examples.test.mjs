// Runs the examples of the API keys page of the client and of docs/responses-api.md.
import assert from "node:assert/strict"
import { execFile } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import test from "node:test"
import { promisify } from "node:util"

const { TROUPE_ROOT: root, TROUPE_DESK: desk, TROUPE_PYTHON: python } = process.env
const { TROUPE_URL: base, TROUPE_KEY: key } = process.env
const run = promisify(execFile)
const { apiExamples } = await import(join(root, "static/js/models/settings/api_examples.js"))

const RUNNERS = {
  curl: { file: "curl.sh", command: "bash", options: ["-eu"] },
  python: { file: "example.py", command: python, options: [] },
  javascript: { file: "example.mjs", command: process.execPath, options: [] },
}

// Runs a text in the folder with the SDK; returns what it printed.
async function ran(id, text) {
  const { file, command, options } = RUNNERS[id]
  writeFileSync(join(desk, file), text)
  const { stdout } = await run(command, [...options, file], { cwd: desk, timeout: 60_000 })
  return stdout
}

function page() {
  return readFileSync(join(root, "docs/responses-api.md"), "utf8")
}

// The blocks of one kind under a heading of the page.
function blocks(heading, kind) {
  const [, after] = page().split(`\n## ${heading}\n`)
  assert.ok(after, `the page has a part “${heading}”`)
  const [section] = after.split("\n## ")
  return [...section.matchAll(/```(\w+)\n([\s\S]*?)```/g)].filter(([, it]) => it === kind).map(([, , it]) => it)
}

const examples = apiExamples({ base, key, model: "demo" })

test("there is an example for every runner", () => {
  assert.deepEqual(
    examples.map(({ id }) => id),
    Object.keys(RUNNERS),
  )
})

for (const { id, name, text } of examples) {
  test(`the example for ${name} runs as it stands`, async () => {
    const printed = await ran(id, text)

    assert.match(printed, /demo model/)
    if (id === "curl") assert.match(printed, /"status":"completed"[^]*event: response\.completed\n/)
    // The second answer continues from the first: it does not introduce itself again.
    else assert.equal(printed.match(/demo model/g).length, 1, printed)
  })
}

test("a model's name and a key of any signs stay what they are", async () => {
  const odd = { base: "http://localhost:1", key: `a'b"c`, model: `m'$x"\\` }
  const [curl] = apiExamples(odd)
  const { stdout } = await run("bash", ["-c", `curl() { printf '%s\\n' "$@"; }\n${curl.text}`])

  const sent = stdout.split("\n").filter((line) => line.startsWith("{"))
  assert.equal(JSON.parse(sent[0]).model, odd.model)
  assert.ok(stdout.includes(`authorization: Bearer ${odd.key}\n`), stdout)
})

test("the page's example for Python runs as it stands", async () => {
  const [text, ...more] = blocks("Examples", "python")
  assert.deepEqual(more, [])
  const here = text.replace("http://localhost:8080", base).replace("trp_…", key)
  assert.notEqual(here, text)

  const printed = await ran("python", here)

  assert.equal(printed.match(/demo model/g).length, 1, "the second answer goes on from the first")
  assert.match(printed, /It rains in Oslo\./)
})

test("the page's calls with curl run as they stand", async () => {
  const text = blocks("Examples", "sh").join("\n")
  const here = text.replaceAll("localhost:8080", base.replace("http://", ""))

  const printed = await ran("curl", `KEY='${key}'\n${here}`)

  assert.match(printed, /"id":"demo"/)
  assert.match(printed, /"status":"completed"/)
})
