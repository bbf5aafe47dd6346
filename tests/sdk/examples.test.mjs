// Runs the examples of the API keys page of the client and of docs/responses-api.md.
import assert from "node:assert/strict"
import { execFile } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import test from "node:test"
import { promisify } from "node:util"

const { TROUPE_ROOT: root, TROUPE_EXAMPLES_DIR: folder, TROUPE_PYTHON: python } = process.env
const { TROUPE_URL: base, TROUPE_KEY: key } = process.env
const run = promisify(execFile)
const { apiExamples } = await import(join(root, "static/js/models/settings/api_examples.js"))

const RUNNERS = {
  curl: { file: "curl.sh", command: "bash", options: ["-eu"] },
  python: { file: "example.py", command: python, options: [] },
  javascript: { file: "example.mjs", command: process.execPath, options: [] },
}

// Runs a program in the folder with the SDK; returns its output.
async function runProgram(id, text) {
  const { file, command, options } = RUNNERS[id]
  writeFileSync(join(folder, file), text)
  const { stdout } = await run(command, [...options, file], { cwd: folder, timeout: 60_000 })
  return stdout
}

function page() {
  return readFileSync(join(root, "docs/responses-api.md"), "utf8")
}

// The code blocks of one language under a heading of the page.
function blocks(heading, kind) {
  const [, after] = page().split(`\n## ${heading}\n`)
  assert.ok(after, `the page has no section “${heading}”`)
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
  test(`the example for ${name} runs unchanged`, async () => {
    const printed = await runProgram(id, text)

    assert.match(printed, /demo model/)
    if (id === "curl") assert.match(printed, /"status":"completed"[^]*event: response\.completed\n/)
    // The second response continues from the first: the demo model introduces itself only once.
    else assert.equal(printed.match(/demo model/g).length, 1, printed)
  })
}

test("the curl example escapes special characters in the model name and the key", async () => {
  const odd = { base: "http://localhost:1", key: `a'b"c`, model: `m'$x"\\` }
  const [curl] = apiExamples(odd)
  const { stdout } = await run("bash", ["-c", `curl() { printf '%s\\n' "$@"; }\n${curl.text}`])

  const sent = stdout.split("\n").filter((line) => line.startsWith("{"))
  assert.equal(JSON.parse(sent[0]).model, odd.model)
  assert.ok(stdout.includes(`authorization: Bearer ${odd.key}\n`), stdout)
})

test("the Python example of the page runs unchanged", async () => {
  const [text, ...more] = blocks("Examples", "python")
  assert.deepEqual(more, [])
  const here = text.replace("http://localhost:8080", base).replace("trp_…", key)
  assert.notEqual(here, text)

  const printed = await runProgram("python", here)

  assert.equal(printed.match(/demo model/g).length, 1, "the second response does not continue from the first")
  assert.match(printed, /It rains in Oslo\./)
})

test("the curl examples of the page run unchanged", async () => {
  const text = blocks("Examples", "sh").join("\n")
  const here = text.replaceAll("localhost:8080", base.replace("http://", ""))

  const printed = await runProgram("curl", `KEY='${key}'\n${here}`)

  assert.match(printed, /"id":"demo"/)
  assert.match(printed, /"status":"completed"/)
})
