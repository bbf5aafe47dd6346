// The line with which a program calls an operation. Knows no DOM.
import { exampleOf } from "./shape.js"

const KEY = "$TROUPE_KEY"

export function curlOf(operation, reference, origin) {
  const words = ["curl"]
  if (operation.method !== "GET") words.push("-X", operation.method)
  words.push(quoted(origin + pathOf(operation, reference) + queryOf(operation, reference)))
  // In double quotes, so that the shell puts the key in.
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

// Single quotes keep everything from the shell but themselves.
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

// Headers of one value have a pattern that is that value.
function headerExample({ pattern = "" }) {
  const [, only] = /^\^([\w-]+)\$$/.exec(pattern) ?? []
  return only ?? "dGhlIHNhbXBsZSBub25jZQ=="
}
