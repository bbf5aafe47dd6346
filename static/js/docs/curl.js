// Returns the curl command of an operation. Independent of the DOM.
import { exampleOf } from "./shape.js"

const KEY = "$TROUPE_KEY"

export function curlOf(operation, reference, origin) {
  const words = ["curl"]
  if (operation.method !== "GET") words.push("-X", operation.method)
  words.push(quoted(origin + pathOf(operation, reference) + queryOf(operation, reference)))
  // In double quotes, so that the shell expands the variable.
  if (!operation.isOpen) words.push("-H", `"authorization: bearer ${KEY}"`)
  for (const { name, schema } of operation.parameters.filter(isOfHeader)) {
    words.push("-H", quoted(`${name.toLowerCase()}: ${headerExample(schema)}`))
  }
  if (operation.body) {
    words.push("-H", quoted("content-type: application/json"))
    words.push("-d", quoted(JSON.stringify(exampleOf(operation.body.schema, reference))))
  }
  return words.join(" ")
}

// In single quotes the shell expands nothing.
export function quoted(text) {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

function pathOf({ path, parameters }, reference) {
  return path.replace(/\{(\w+)\}/g, (_, name) => {
    const { schema } = parameters.find((it) => it.in === "path" && it.name === name)
    const example = exampleOf(schema, reference)
    return typeof example === "number" || schema.format ? example : name.toUpperCase()
  })
}

function queryOf({ parameters }, reference) {
  const needed = parameters.filter((it) => it.in === "query" && it.required)
  const pairs = needed.map(({ name, schema }) => [name, exampleOf(schema, reference)])
  return pairs.length > 0 ? `?${new URLSearchParams(pairs)}` : ""
}

function isOfHeader(parameter) {
  return parameter.in === "header" && parameter.required
}

// The pattern of a header with one value is that value.
function headerExample({ pattern = "" }) {
  const [, only] = /^\^([\w-]+)\$$/.exec(pattern) ?? []
  return only ?? "dGhlIHNhbXBsZSBub25jZQ=="
}
