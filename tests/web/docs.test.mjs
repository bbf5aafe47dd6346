// The API reference: how it reads the document.
import assert from "node:assert/strict"
import test from "node:test"
import { curlOf, quoted } from "../../static/js/docs/curl.js"
import Reference from "../../static/js/docs/reference.js"
import { exampleOf, shapeOf } from "../../static/js/docs/shape.js"

const DOCUMENT = {
  info: { title: "Troupe", version: "1.2.3", description: "It talks." },
  tags: [
    { name: "spaces", description: "Rooms." },
    { name: "empty", description: "Nobody." },
    { name: "server", description: "Health." },
  ],
  security: [{ session: [] }, { api_key: [] }],
  paths: {
    "/healthz": {
      get: operation("server_alive", "The process lives.", { security: [], responses: { 200: json("Health") } }),
    },
    "/api/spaces/{space_id}": {
      patch: operation("spaces_change", "Changes the rules.", {
        parameters: [
          { name: "space_id", in: "path", required: true, schema: { type: "integer", minimum: 1 } },
          { name: "limit", in: "query", required: false, schema: { type: "integer" } },
        ],
        requestBody: { ...json("Change"), required: true },
        responses: { 200: json("Space"), 404: { $ref: "#/components/responses/NotFound" } },
      }),
    },
  },
  components: {
    responses: { NotFound: { ...json("Error"), description: "Not there." } },
    schemas: {
      Health: object({ status: { type: "string" } }, ["status"]),
      Space: object({ id: { type: "integer" }, parent: { oneOf: [ref("Space"), { type: "null" }] } }, ["id"]),
      Change: { ...object({ name: ref("Name"), count: { type: ["integer", "null"] } }), additionalProperties: false },
      Name: { type: "string", minLength: 1, maxLength: 100, pattern: "^[^\\u0000]*$", description: "A line." },
      Error: object({ error: { type: "object" } }),
    },
  },
}

function operation(operationId, summary, rest) {
  return { operationId, summary, tags: [operationId.split("_")[0]], ...rest }
}

function json(name) {
  return { description: "", content: { "application/json": { schema: ref(name) } } }
}

function ref(name) {
  return { $ref: `#/components/schemas/${name}` }
}

function object(properties, required = []) {
  return { type: "object", properties, required }
}

const reference = new Reference(DOCUMENT)
const [alive, change] = reference.operations()

test("sections are in the order of the document, and only those with an operation", () => {
  assert.deepEqual(
    reference.sections().map(({ name, operations }) => [name, operations.map(({ id }) => id)]),
    [
      ["spaces", ["spaces_change"]],
      ["server", ["server_alive"]],
    ],
  )
})

test("a search looks for every word in path, method, name, summary and section", () => {
  const found = (words) => reference.sections(words).flatMap(({ operations }) => operations.map(({ id }) => id))

  assert.deepEqual(found("PATCH rules"), ["spaces_change"])
  assert.deepEqual(found("healthz"), ["server_alive"])
  assert.deepEqual(found("rules healthz"), [])
})

test("an operation without authentication is open", () => {
  assert.deepEqual([alive.isOpen, change.isOpen], [true, false])
})

test("a shared response is resolved", () => {
  const [, missing] = change.answers

  assert.deepEqual([missing.status, missing.about, missing.isError], ["404", "Not there.", true])
})

test("a shape has name, null and limits, without the limits of the type", () => {
  const { fields, isClosed } = shapeOf(change.body.schema, reference)
  const [name, count] = fields.map(({ schema }) => shapeOf(schema, reference))

  assert.equal(isClosed, true)
  assert.deepEqual([name.name, name.kind, name.about, name.isNullable], ["Name", "string", "A line.", false])
  assert.deepEqual([name.bounds.shortest, name.bounds.longest, name.bounds.pattern], [1, 100, null])
  assert.deepEqual([count.kind, count.isNullable], ["integer", true])
  const huge = shapeOf({ type: "integer", minimum: 1, maximum: 2 ** 63 }, reference)
  assert.deepEqual([huge.bounds.least, huge.bounds.most], [1, null])
})

test("a recursive schema has a finite example", () => {
  assert.deepEqual(exampleOf(ref("Space"), reference), { id: 1 })
})

test("a curl command has the method, the key and a valid body", () => {
  assert.equal(curlOf(alive, reference, "http://h:1"), "curl http://h:1/healthz")
  assert.equal(
    curlOf(change, reference, "http://h:1"),
    "curl -X PATCH http://h:1/api/spaces/1 -H \"authorization: bearer $TROUPE_KEY\" " +
      "-H 'content-type: application/json' -d '{\"name\":\"…\"}'",
  )
})

test("quoted text is passed unchanged by a shell", () => {
  assert.equal(quoted("a/b?c={d}"), "'a/b?c={d}'")
  assert.equal(quoted("it's"), "'it'\\''s'")
})
