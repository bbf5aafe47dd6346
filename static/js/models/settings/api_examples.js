// Example programs for the API: a response, and a streamed follow-up. Independent of the DOM. The page
// shows these texts, and a test runs them.
const HELLO = "Hello!"
const MORE = "And then?"

// The placeholder for the user's own key.
export const NO_KEY = "YOUR_API_KEY"

// `base` is the address of the server without a trailing slash; `key` may be null.
export function apiExamples({ base, key, model }) {
  const options = { url: `${base}/v1`, key: key ?? NO_KEY, model }
  return [
    { id: "curl", name: "curl", text: curl(options) },
    { id: "python", name: "Python", text: python(options) },
    { id: "javascript", name: "JavaScript", text: javascript(options) },
  ]
}

function curl({ url, key, model }) {
  return `curl -sS ${quoted(`${url}/responses`)} \\
  -H ${quoted(`authorization: Bearer ${key}`)} \\
  -H 'content-type: application/json' \\
  -d ${quoted(JSON.stringify({ model, input: HELLO }))}

# The same, word by word.
curl -sSN ${quoted(`${url}/responses`)} \\
  -H ${quoted(`authorization: Bearer ${key}`)} \\
  -H 'content-type: application/json' \\
  -d ${quoted(JSON.stringify({ model, input: MORE, stream: true }))}
`
}

function python({ url, key, model }) {
  return `# pip install openai
from openai import OpenAI

client = OpenAI(base_url=${text(url)}, api_key=${text(key)})

first = client.responses.create(model=${text(model)}, input=${text(HELLO)})
print(first.output_text)

with client.responses.stream(
    model=${text(model)}, input=${text(MORE)}, previous_response_id=first.id
) as stream:
    for event in stream:
        if event.type == "response.output_text.delta":
            print(event.delta, end="", flush=True)
`
}

function javascript({ url, key, model }) {
  return `// npm install openai
import OpenAI from "openai"

const client = new OpenAI({ baseURL: ${text(url)}, apiKey: ${text(key)} })

const first = await client.responses.create({ model: ${text(model)}, input: ${text(HELLO)} })
console.log(first.output_text)

const stream = await client.responses.create({
  model: ${text(model)},
  input: ${text(MORE)},
  previous_response_id: first.id,
  stream: true,
})
for await (const event of stream) {
  if (event.type === "response.output_text.delta") process.stdout.write(event.delta)
}
`
}

// A string literal that is valid in all three languages.
function text(value) {
  return JSON.stringify(value)
}

// In single quotes the shell expands nothing.
function quoted(value) {
  return `'${value.replaceAll("'", `'\\''`)}'`
}
